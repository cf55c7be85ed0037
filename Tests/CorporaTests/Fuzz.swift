import Glibc

private let target: Target = {
    guard let name = getenv("MILLRACE_FUZZ_TARGET").map({ String(cString: $0) }), let target = Target(rawValue: name)
    else {
        fatalError("MILLRACE_FUZZ_TARGET takes one of \(Target.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return target
}()

private typealias Test = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

@_silgen_name("LLVMFuzzerRunDriver")
private func drive(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>,
    _ test: Test
) -> CInt

/// The build makes this the program's main: libFuzzer's own would need to be linked into the tools of the build, too.
@_cdecl("Fuzz_main")
public func main(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    var (count, arguments) = (count, arguments)
    return drive(&count, &arguments) { start, count in
        // Called with every input.
        if let complaint = target.take(Array(UnsafeBufferPointer(start: start, count: count))) { fatalError(complaint) }
        return 0
    }
}
