import Glibc

/// A file that a verb writes. One that is there already stays as it is.
package enum NewFile {
    /// - Parameter body: writes the content. If it fails the file is removed: half a file is worse than none.
    package static func write(at path: String, _ body: (_ descriptor: Int32) async throws -> Void) async throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else {
            throw Failure("\(Secrets.quoted(path)) cannot be made: \(Descriptor.sentence(errno))")
        }
        defer { close(descriptor) }
        do {
            try await body(descriptor)
        } catch {
            unlink(path)
            throw error
        }
    }
}
