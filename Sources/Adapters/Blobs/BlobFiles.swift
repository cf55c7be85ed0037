import Glibc
import Threads

/// A file's blocking calls, on their own thread.
actor FileHand {
    private let thread = ThreadExecutor(name: "blob-file")
    private var descriptor: Int32 = -1
    nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    deinit {
        if descriptor >= 0 { close(descriptor) }
        thread.stop()
    }

    /// Creates the file, readable by nobody else; it must not exist yet.
    func create(_ path: String) throws(BlobError) {
        descriptor = Glibc.open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        if descriptor < 0 { throw .system("creating a file among the blobs", number: errno) }
    }

    /// Its size; nil when there is none.
    func open(_ path: String) throws(BlobError) -> Int? {
        descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        if descriptor < 0, errno == ENOENT { return nil }
        var info = stat()
        guard descriptor >= 0, fstat(descriptor, &info) == 0 else { throw .system("opening a blob", number: errno) }
        return Int(info.st_size)
    }

    func write(_ bytes: [UInt8]) throws(BlobError) {
        var start = 0
        while start < bytes.count {
            let count = bytes.withUnsafeBytes { buffer in
                Glibc.write(descriptor, buffer.baseAddress.map { $0 + start }, bytes.count - start)
            }
            if count < 0, errno != EINTR { throw .system("writing a blob", number: errno) }
            start += max(count, 0)
        }
    }

    /// Reads at most `most` bytes at `offset`; empty at the end of the file.
    func read(_ most: Int, at offset: Int) throws(BlobError) -> [UInt8] {
        var failure: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: most) { buffer, count in
            var result = pread(descriptor, buffer.baseAddress, most, offset)
            while result < 0, errno == EINTR { result = pread(descriptor, buffer.baseAddress, most, offset) }
            failure = result < 0 ? errno : 0
            count = max(result, 0)
        }
        if failure != 0 { throw .system("reading a blob", number: failure) }
        return bytes
    }

    /// All of it is on the disk.
    func settle() throws(BlobError) {
        guard fsync(descriptor) == 0 else { throw .system("writing a blob to the disk", number: errno) }
        let number = close(descriptor) == 0 ? 0 : errno
        descriptor = -1
        if number != 0 { throw .system("closing a blob", number: number) }
    }

    /// In one step, and still so after a power cut.
    func move(_ path: String, to place: String, in directory: String) throws(BlobError) {
        guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
            throw .system("making a directory for blobs", number: errno)
        }
        guard rename(path, place) == 0 else { throw .system("putting a blob in its place", number: errno) }
        try BlobFiles.settle(directory: directory)
        try BlobFiles.settle(directory: BlobFiles.parent(of: directory))
    }

    func remove(_ path: String) throws(BlobError) {
        guard unlink(path) == 0 || errno == ENOENT else { throw .system("deleting a blob", number: errno) }
    }

    /// Makes the directories, ours alone.
    func prepare(_ directories: [String]) throws(BlobError) {
        for directory in directories {
            guard mkdir(directory, 0o700) == 0 || errno == EEXIST else {
                throw .system("making the directory for blobs", number: errno)
            }
        }
    }

    /// Removes files that have not changed for `age`; returns how many.
    func removeOld(in directory: String, age: Duration) throws(BlobError) -> Int {
        guard let entries = opendir(directory) else {
            if errno == ENOENT { return 0 }
            throw .system("looking for remains of blobs", number: errno)
        }
        defer { closedir(entries) }
        let limit = time(nil) - Int(age.components.seconds)
        var removed = 0
        while let entry = readdir(entries) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { start in
                start.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            var info = stat()
            let path = directory + "/" + name
            guard lstat(path, &info) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_mtim.tv_sec <= limit else {
                continue
            }
            if unlink(path) == 0 { removed += 1 }
        }
        return removed
    }
}

enum BlobFiles {
    static func sentence(_ number: Int32) -> String { String(cString: strerror(number)).lowercased() }

    static func parent(of path: String) -> String {
        String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
    }

    /// Makes renames in the directory survive a power cut.
    static func settle(directory: String) throws(BlobError) {
        let descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .system("opening a directory of blobs", number: errno) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw .system("writing a directory of blobs to the disk", number: errno) }
    }
}
