import FoundationEssentials
import Glibc

/// The environment of the process as closures, so that a test needs neither files nor real variables.
package struct Surroundings: Sendable {
    package var environment: [String: String]
    package var workingDirectory: String
    package var isWritableDirectory: @Sendable (_ path: String) -> Bool
    /// Reads a whole file of at most `limit` bytes; `-` is standard input.
    package var read: @Sendable (_ path: String, _ limit: Int) throws(FileProblem) -> [UInt8]
    /// Reads a file, or standard input for `-`, piece by piece.
    package var chunks: @Sendable (_ path: String) throws(FileProblem) -> FileChunks
    /// Asks the person at the terminal; nil when there is none, or no answer came.
    package var ask: @Sendable (_ question: String) -> String?
    /// Takes variables out of the process's environment, and values out of its command line, where others could see them.
    package var forget: @Sendable (_ variables: [String], _ values: [String]) -> Void = { _, _ in }

    package init(
        environment: [String: String], workingDirectory: String,
        isWritableDirectory: @escaping @Sendable (_ path: String) -> Bool,
        read: @escaping @Sendable (_ path: String, _ limit: Int) throws(FileProblem) -> [UInt8],
        chunks: @escaping @Sendable (_ path: String) throws(FileProblem) -> FileChunks,
        ask: @escaping @Sendable (_ question: String) -> String?,
        forget: @escaping @Sendable (_ variables: [String], _ values: [String]) -> Void = { _, _ in }
    ) {
        self.environment = environment
        self.workingDirectory = workingDirectory
        self.isWritableDirectory = isWritableDirectory
        self.read = read
        self.chunks = chunks
        self.ask = ask
        self.forget = forget
    }
}

/// Why a file could not be read; the sentence names the cause, never the content.
package struct FileProblem: Error, Equatable {
    package let complaint: String

    package init(complaint: String) {
        self.complaint = complaint
    }
}

extension Surroundings {
    package static func live() -> Surroundings {
        Surroundings(
            environment: ProcessInfo.processInfo.environment,
            workingDirectory: FileManager.default.currentDirectoryPath,
            isWritableDirectory: { path in access(path, W_OK | X_OK) == 0 && isDirectory(path) },
            read: { path, limit throws(FileProblem) in try readWhole(path, limit: limit) },
            chunks: { path throws(FileProblem) in try FileChunks(path: path) },
            ask: { question in
                guard isatty(STDIN_FILENO) == 1, isatty(STDERR_FILENO) == 1 else { return nil }
                _ = Descriptor.write(Array(question.utf8), to: STDERR_FILENO)
                return readLine()
            }, forget: { variables, values in SecretVariables.forget(variables, values) })
    }

    private static func isDirectory(_ path: String) -> Bool {
        var info = stat()
        return stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFDIR
    }

    private static func readWhole(_ path: String, limit: Int) throws(FileProblem) -> [UInt8] {
        var descriptor = STDIN_FILENO
        if path != "-" {
            guard !isDirectory(path) else { throw FileProblem(complaint: "is a directory") }
            descriptor = open(path, O_RDONLY | O_CLOEXEC)
            guard descriptor >= 0 else { throw FileProblem(complaint: Descriptor.sentence(errno)) }
        }
        defer { if path != "-" { close(descriptor) } }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count == 0 { return bytes }
            if count < 0 {
                if errno == EINTR { continue }
                throw FileProblem(complaint: Descriptor.sentence(errno))
            }
            bytes += chunk.prefix(count)
            guard bytes.count <= limit else { throw FileProblem(complaint: "is larger than \(Humane.bytes(limit))") }
        }
    }
}

/// File descriptors without buffers in between.
package enum Descriptor {
    /// If we are started with a standard descriptor closed, a database connection would get its number, and results would be written
    /// into that connection. So the descriptor is opened, for reading only: a write to it fails, as it should.
    package static func fillStandard() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) < 0 {
            _ = open("/dev/null", O_RDONLY)  // takes the lowest free number
        }
    }

    /// Writes all of it; the error number of the first failure, or nil.
    package static func write(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
        var start = 0
        while start < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.write(descriptor, buffer.baseAddress.map { $0 + start }, bytes.count - start)
            }
            if count >= 0 {
                start += count
            } else if errno == EAGAIN {
                // A terminal shared with a non-blocking process: wait until it takes more.
                var ready = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&ready, 1, 1000)
            } else if errno != EINTR {
                return errno
            }
        }
        return nil
    }

    package static func sentence(_ number: Int32) -> String {
        // glibc keeps the text in thread-local storage, so no other thread can change it under us.
        String(cString: strerror(number)).lowercased()
    }
}
