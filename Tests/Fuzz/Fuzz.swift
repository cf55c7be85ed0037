import Glibc

private let target: Target = {
    guard let name = getenv("MILLRACE_FUZZ_TARGET").map({ String(cString: $0) }), let target = Target(rawValue: name)
    else {
        fatalError("MILLRACE_FUZZ_TARGET takes one of \(Target.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return target
}()

/// libFuzzer calls this with every input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    if let complaint = target.take(Array(UnsafeBufferPointer(start: start, count: count))) { fatalError(complaint) }
    return 0
}
