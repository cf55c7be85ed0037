import Digests
import Encodings
import Glibc

/// Which build of the program this process runs, where nobody has said it: the first 12 digits of the SHA-256 of its executable.
enum ProgramBuild {
    /// Read once, at the start of a worker, by a thread that may wait for the disk. Empty: the file cannot be read.
    static let hash = digest(of: "/proc/self/exe")

    static func digest(of path: String) -> String {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return "" }
        defer { close(file) }
        let sum = SHA256Digest()
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 16)
        defer { buffer.deallocate() }
        while true {
            let count = read(file, buffer.baseAddress, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { return "" }
            if count == 0 { break }
            sum.update(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
        }
        return String(Hexadecimal.text(sum.finish()).prefix(12))
    }
}
