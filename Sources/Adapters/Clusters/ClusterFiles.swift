import Glibc

// The few file calls this room needs, without Foundation.

func describe(errno code: Int32) -> String {
    strerror(code).map { String(cString: $0) } ?? "error \(code)"
}

func environment(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }
}

/// The last lines of a text, as many as fit in an error message.
func lastLines(of text: String, count: Int = 12) -> [String] {
    text.split(whereSeparator: \.isNewline).suffix(count).map(String.init)
}

enum ClusterFiles {
    struct Status {
        let owner: uid_t
        let group: gid_t
        let permissions: mode_t
        let size: Int
        let isDirectory: Bool
    }

    /// Follows no symbolic link: as root we act in directories that another user can write to.
    static func status(_ path: String) -> Status? {
        var found = stat()
        guard lstat(path, &found) == 0 else { return nil }
        return Status(
            owner: found.st_uid, group: found.st_gid, permissions: found.st_mode & 0o7777, size: Int(found.st_size),
            isDirectory: found.st_mode & S_IFMT == S_IFDIR)
    }

    static func exists(_ path: String) -> Bool { status(path) != nil }

    static func isProgram(_ path: String) -> Bool { access(path, X_OK) == 0 }

    /// The path without symbolic links, or nil when there is nothing.
    static func resolved(_ path: String) -> String? {
        guard let found = realpath(path, nil) else { return nil }
        defer { free(found) }
        return String(cString: found)
    }

    static func list(_ directory: String) -> [String]? {
        guard let stream = opendir(directory) else { return nil }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// The text of a file from an offset, at most a bound; nil when it cannot be read.
    static func read(_ path: String, from offset: Int = 0, bound: Int = 65_536) -> String? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        guard lseek(descriptor, off_t(offset), SEEK_SET) >= 0 else { return nil }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while bytes.count < bound {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            guard count >= 0 else { return nil }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Replaces a file as a whole: a reader, or a start after a crash, sees the old text or the new one.
    static func replace(_ path: String, with text: String, owner: User, in directory: String) throws(ClusterError) {
        let draft = path + ".new"
        unlink(draft)
        let descriptor = open(draft, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { throw trouble(with: directory) }
        defer { close(descriptor) }
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
            guard count > 0 else { throw trouble(with: directory) }
            rest = rest.dropFirst(count)
        }
        guard fchown(descriptor, owner.id, owner.group) == 0, rename(draft, path) == 0 else {
            throw trouble(with: directory)
        }
    }

    /// Makes the parents that are missing, open to all as usual directories are.
    static func makeParents(of path: String) throws(ClusterError) {
        var missing: [String] = []
        var parent = parent(of: path)
        while parent != "/", access(parent, F_OK) != 0 {
            missing.append(parent)
            parent = self.parent(of: parent)
        }
        for directory in missing.reversed() {
            guard mkdir(directory, 0o755) == 0 || errno == EEXIST else { throw trouble(with: directory) }
            chmod(directory, 0o755)  // whatever the umask: the user that Postgres runs as must get through
        }
    }

    /// Makes a directory, or takes one, that only `user` and root can enter.
    static func makePrivate(_ path: String, for user: User) throws(ClusterError) {
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw trouble(with: path) }
        let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { throw trouble(with: path) }
        defer { close(descriptor) }
        guard fchown(descriptor, user.id, user.group) == 0, fchmod(descriptor, 0o700) == 0 else {
            throw trouble(with: path)
        }
    }

    /// The topmost parent that `user` may not enter.
    static func firstClosed(above path: String, to user: User) -> String? {
        var parents: [String] = []
        var parent = parent(of: path)
        while parent != "/" {
            parents.append(parent)
            parent = self.parent(of: parent)
        }
        return parents.reversed().first { parent in
            guard let status = status(parent) else { return false }
            let bit: mode_t = status.owner == user.id ? 0o100 : status.group == user.group ? 0o010 : 0o001
            return status.permissions & bit == 0
        }
    }

    private static func parent(of path: String) -> String {
        let parent = path[..<(path.lastIndex(of: "/") ?? path.startIndex)]
        return parent.isEmpty ? "/" : String(parent)
    }

    /// The end of a file, from an offset if that is later.
    static func tail(_ path: String, from offset: Int = 0) -> String {
        let size = status(path)?.size ?? 0
        return read(path, from: max(offset, size - 8192)) ?? ""
    }

    /// The current `errno` as an error about a directory.
    static func trouble(with directory: String) -> ClusterError {
        let code = errno
        return code == ENOSPC || code == EDQUOT
            ? .diskFull(directory: directory) : .unusableDirectory(directory, reason: describe(errno: code))
    }

    /// Whether the disk is so full that an ordinary user could write almost nothing.
    static func isFull(_ directory: String) -> Bool {
        var found = statvfs()
        guard statvfs(directory, &found) == 0 else { return false }
        return found.f_bavail * found.f_frsize < 1_048_576
    }
}
