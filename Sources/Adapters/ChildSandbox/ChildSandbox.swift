import CCage
package import ChildProtocol
import Glibc

/// The child's side: its sandbox and its protocol. A child reads no foreign bytes before `enter`.
package struct ChildSandbox: Sendable {
    /// The descriptors that a child gets.
    package enum Descriptor {
        package static let requests: Int32 = 0
        package static let answers: Int32 = 1
        /// The first of the files handed over.
        package static let files: Int32 = 3
    }

    package var memory: UInt64
    package var cpuSeconds: UInt64
    package var fileSize: UInt64
    package var descriptors: UInt64 = 64
    package var niceness = 0
    /// Folders to read; none: nothing can be opened.
    package var readable: [String] = []
    package var startsThreads = false

    package init(memory: UInt64, cpuSeconds: UInt64, fileSize: UInt64) {
        self.memory = memory
        self.cpuSeconds = cpuSeconds
        self.fileSize = fileSize
    }

    /// From the arguments that the parent wrote: `memory=… cpu=… file=… nice=… parent=…`.
    package init(arguments: [String] = CommandLine.arguments) {
        func number(_ name: String) -> UInt64 {
            arguments.lazy.filter { $0.hasPrefix("\(name)=") }.compactMap { UInt64($0.dropFirst(name.utf8.count + 1)) }
                .first ?? 0
        }
        self.init(memory: number("memory"), cpuSeconds: number("cpu"), fileSize: number("file"))
        niceness = Int(min(20, number("nice")))
        parent = pid_t(truncatingIfNeeded: number("parent"))
    }

    private var parent: pid_t = 0

    /// Goes in, and says so. There is no way out.
    package func enter() {
        let words = readable.map { strdup($0) }
        let refused = words.map { $0.map { UnsafePointer($0) } }.withUnsafeBufferPointer { pointers in
            pointers.withMemoryRebound(to: UnsafePointer<CChar>.self) { folders in
                var layers = millrace_cage()
                layers.address_space = memory
                layers.cpu_seconds = cpuSeconds
                layers.file_size = fileSize
                layers.descriptors = descriptors
                layers.niceness = Int32(niceness)
                layers.parent = parent
                layers.opens_files = !readable.isEmpty
                layers.starts_threads = startsThreads
                layers.readable = folders.baseAddress
                layers.readable_count = Int32(folders.count)
                return millrace_cage_enter(&layers)
            }
        }
        Self.answer(.hello, withUnsafeBytes(of: refused.littleEndian, Array.init))
    }

    /// The next request, or nil at the end.
    package static func request(longest: Int) -> [UInt8]? {
        guard let header = read(Frame.headerSize) else { return nil }
        func number(at index: Int) -> UInt32 {
            header[index..<index + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
        }
        guard number(at: 0) == Frame.Kind.request.rawValue, number(at: 4) <= longest else { _exit(Self.misspoken) }
        return number(at: 4) == 0 ? [] : read(Int(number(at: 4)))
    }

    package static func answer(_ kind: Frame.Kind, _ payload: [UInt8] = []) {
        var bytes = Frame(kind, payload).bytes[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { write(Descriptor.answers, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                _exit(Self.misspoken)  // nobody listens
            }
            bytes = bytes.dropFirst(count)
        }
    }

    /// Reports why the request failed; the sentence is for an operator.
    package static func fail(_ reason: String, _ sentence: String) {
        answer(.failure, Array("\(reason)\n\(sentence)".utf8))
    }

    private static let misspoken: Int32 = 64

    private static func read(_ count: Int) -> [UInt8]? {
        let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            guard let base = buffer.baseAddress else { return }
            while filled < count {
                let more = Glibc.read(Descriptor.requests, base + filled, count - filled)
                if more < 0, errno == EINTR { continue }
                if more <= 0 { break }
                filled += more
            }
        }
        return bytes.count == count ? bytes : nil
    }
}
