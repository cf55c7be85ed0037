import CLinux
import Glibc
package import SettingsKit

/// The directories whose files a worker reads when SQL names one: none, unless an operator has listed them. A caller that may name a file
/// may name any path, so only a regular file beneath one of these directories is opened, and no link on the way is followed.
package struct DocumentDirectories: Sendable, Equatable {
    package let paths: [String]

    package static let expectation = "absolute paths of directories, separated by :"

    package init(paths: [String] = []) {
        self.paths = paths
    }

    /// nil when a path is not absolute, or leads to a file system that the kernel makes up.
    package init?(_ text: String) {
        var paths: [String] = []
        for part in text.split(separator: ":", omittingEmptySubsequences: false) {
            guard let names = Self.names(part), !Self.isMadeUp(names) else { return nil }
            paths.append("/" + names.joined(separator: "/"))
        }
        self.paths = paths
    }

    /// A file to read, which the caller closes.
    ///
    /// - Parameter asksKernel: false: as on a kernel that has no openat2, or refuses it.
    package func open(_ path: String, asksKernel: Bool = true) throws(FileProblem) -> Int32 {
        guard !paths.isEmpty else {
            throw FileProblem(complaint: "is not read: MILLRACE_DOCUMENT_DIRS names no directory of this machine")
        }
        guard let names = Self.names(path[...]),
            let (directory, rest) = paths.lazy.compactMap({ path in Self.rest(of: names, beneath: path) }).first
        else { throw FileProblem(complaint: "is not in a directory of MILLRACE_DOCUMENT_DIRS") }
        guard let real = realpath(directory, nil) else { throw FileProblem(complaint: Descriptor.sentence(errno)) }
        defer { free(real) }
        guard let realNames = Self.names(String(cString: real)[...]), !Self.isMadeUp(realNames) else {
            throw FileProblem(complaint: "lies in a directory that the kernel makes up")
        }
        let top = Glibc.open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard top >= 0 else { throw FileProblem(complaint: Descriptor.sentence(errno)) }
        defer { close(top) }
        let file = Self.open(rest, in: top, asksKernel: asksKernel)
        guard file >= 0 else {
            let isNoWay = errno == ELOOP || errno == ENOTDIR
            throw FileProblem(
                complaint: isNoWay
                    ? "has a link in its path, or something that is not a directory" : Descriptor.sentence(errno))
        }
        guard Self.isRegular(file) else {
            close(file)
            throw FileProblem(complaint: "is not a regular file")
        }
        return file
    }

    /// Non-blocking, because a pipe without a writer must not block us.
    private static let reading = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY

    private static func open(_ names: [String], in top: Int32, asksKernel: Bool) -> Int32 {
        if asksKernel {
            let file = millrace_open_beneath(top, names.joined(separator: "/"), reading)
            // A container's filter may say EPERM of a call it does not know.
            if file >= 0 || ![ENOSYS, EPERM, EINVAL, E2BIG].contains(errno) { return file }
        }
        var folder = dup(top)
        for (index, name) in names.enumerated() {
            guard folder >= 0 else { return -1 }
            let isLast = index == names.count - 1
            let next = openat(folder, name, isLast ? reading : O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW)
            let problem = errno
            close(folder)
            folder = next
            errno = problem
        }
        return folder
    }

    package static func isRegular(_ file: Int32) -> Bool {
        var about = stat()
        return fstat(file, &about) == 0 && about.st_mode & S_IFMT == S_IFREG
            && !madeUp.contains(millrace_file_system(file))
    }

    /// File systems with the kernel's own information about processes, devices and itself: procfs, sysfs, debugfs, tracefs, securityfs,
    /// cgroup, cgroup2, bpf, configfs, pstore, efivarfs, selinuxfs, smackfs, binfmt_misc, nsfs, devpts.
    private static let madeUp: Set<Int> = [
        0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163, 0x7363_6673, 0x27_e0eb, 0x6367_7270, 0xcafe_4a11, 0x6265_6570,
        0x6165_676c, 0xde5e_81e4, 0xf97c_ff8c, 0x4341_5d53, 0x4249_4e4d, 0x6e73_6673, 0x1cd1, -1,
    ]

    /// The root is refused as well: it has all of these beneath it, and every secret of the machine.
    private static func isMadeUp(_ names: [String]) -> Bool {
        names.isEmpty || ["proc", "sys", "dev"].contains(names[0])
    }

    /// The names of an absolute path; nil for another one, and for one that goes back.
    private static func names(_ path: Substring) -> [String]? {
        guard path.hasPrefix("/"), !path.utf8.contains(0) else { return nil }
        let names = path.split(separator: "/").map(String.init)
        return names.contains("..") || names.contains(".") ? nil : names
    }

    private static func rest(of names: [String], beneath directory: String) -> (directory: String, rest: [String])? {
        let above = directory.split(separator: "/").map(String.init)
        return names.count > above.count && names.starts(with: above)
            ? (directory, Array(names.dropFirst(above.count))) : nil
    }
}
