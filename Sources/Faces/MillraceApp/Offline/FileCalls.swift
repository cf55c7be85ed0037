import Foundation

#if canImport(Darwin)
    import Darwin
#elseif canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#endif

/// The system's calls for files that must be on the disk. They block.
enum FileCalls {
    static func open(_ path: String, _ flags: Int32) throws -> Int32 {
        while true {
            #if canImport(Darwin)
                let file = Darwin.open(path, flags | O_CLOEXEC, 0o600)
            #elseif canImport(Glibc)
                let file = Glibc.open(path, flags | O_CLOEXEC, 0o600)
            #else
                let file = Musl.open(path, flags | O_CLOEXEC, 0o600)
            #endif
            if file >= 0 { return file }
            guard errno == EINTR else { throw failure("open", path, errno) }
        }
    }

    /// One that nobody else may read, and, where the system protects files, nobody at all before the device was unlocked once: check-ins are told
    /// while it is locked.
    static func makeDirectory(_ path: String) throws {
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
        #if canImport(Darwin)
            // A volume that protects no files is used all the same.
            try? FileManager.default.setAttributes(
                [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication], ofItemAtPath: path)
        #endif
    }

    static func close(_ file: Int32) {
        #if canImport(Darwin)
            _ = Darwin.close(file)
        #elseif canImport(Glibc)
            _ = Glibc.close(file)
        #else
            _ = Musl.close(file)
        #endif
    }

    static func write(_ file: Int32, _ bytes: Data, at offset: Int64) throws {
        var done = 0
        while done < bytes.count {
            let count = bytes.withUnsafeBytes { raw in
                let rest = UnsafeRawBufferPointer(rebasing: raw[done...])
                return pwrite(file, rest.baseAddress, rest.count, off_t(offset) + off_t(done))
            }
            if count < 0 {
                guard errno == EINTR else { throw failure("write", "the queue", errno) }
            } else {
                done += count
            }
        }
    }

    /// Writes a file as a whole, to the disk.
    static func keep(_ bytes: Data, at path: String) throws {
        let file = try open(path, O_RDWR | O_CREAT | O_TRUNC)
        defer { close(file) }
        try write(file, bytes, at: 0)
        try sync(file)
    }

    static func keep(_ document: DocumentFile, at path: String) throws {
        switch document.content {
        case .data(let data): try keep(data, at: path)
        case .file(let other):
            try FileManager.default.copyItem(at: other, to: URL(fileURLWithPath: path))
            let file = try open(path, O_RDWR)
            defer { close(file) }
            try sync(file)
        }
    }

    /// Apple's fsync only hands the bytes to the disk.
    static func sync(_ file: Int32) throws {
        #if canImport(Darwin)
            if fcntl(file, F_FULLFSYNC) == 0 { return }
        #endif
        guard fsync(file) == 0 else { throw failure("fsync", "the queue", errno) }
    }

    static func truncate(_ file: Int32, _ length: Int64) throws {
        guard ftruncate(file, off_t(length)) == 0 else { throw failure("ftruncate", "the queue", errno) }
        try sync(file)
    }

    static func rename(_ old: String, _ new: String) throws {
        #if canImport(Darwin)
            let outcome = Darwin.rename(old, new)
        #elseif canImport(Glibc)
            let outcome = Glibc.rename(old, new)
        #else
            let outcome = Musl.rename(old, new)
        #endif
        guard outcome == 0 else { throw failure("rename", new, errno) }
    }

    static func syncDirectory(_ path: String) throws {
        let directory = try open(path, O_RDONLY)
        defer { close(directory) }
        guard fsync(directory) == 0 else { throw failure("fsync", path, errno) }
    }

    static func failure(_ call: String, _ path: String, _ code: Int32) -> AppError {
        AppError(
            code == ENOSPC || code == EDQUOT ? .quota : .internal,
            "\(call) failed for \(path): \(String(cString: strerror(code)))",
            userMessage: code == ENOSPC
                ? "There is no room left on this device." : "This could not be saved on this device.")
    }
}
