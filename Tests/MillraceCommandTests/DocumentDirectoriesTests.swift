import BlobKit
import Foundation
import Testing

@testable import MillraceCommand

/// Which files a worker reads because SQL names them.
@Suite struct DocumentDirectoriesTests {
    /// A directory with a file, one in a folder, links of each kind, a pipe, and a neighbour of nearly the same name.
    private static func withFiles(_ body: (String) throws -> Void) throws {
        let top = NSTemporaryDirectory() + "millrace-dirs-\(UUID().uuidString)"
        let files = FileManager.default
        for folder in ["/in/sub", "/inside"] {
            try files.createDirectory(atPath: top + folder, withIntermediateDirectories: true)
        }
        defer { try? files.removeItem(atPath: top) }
        for file in ["/in/a", "/in/sub/b", "/inside/c"] {
            try Data(file.utf8).write(to: URL(fileURLWithPath: top + file))
        }
        for (link, target) in [
            ("file", "a"), ("folder", "sub"), ("out", "/etc"), ("passwd", "/etc/passwd"), ("self", "/proc/self"),
            ("loop", "loop"),
        ] {
            try files.createSymbolicLink(atPath: top + "/in/" + link, withDestinationPath: target)
        }
        try #require(mkfifo(top + "/in/pipe", 0o600) == 0)
        try body(top)
    }

    private static func content(
        _ path: String, _ directories: DocumentDirectories, _ asksKernel: Bool
    ) -> Result<String, FileProblem> {
        do throws(FileProblem) {
            let chunks = FileChunks(descriptor: try directories.open(path, asksKernel: asksKernel))
            return .success(String(decoding: try chunks.next(), as: UTF8.self))
        } catch {
            return .failure(error)
        }
    }

    @Test(arguments: [true, false])
    func `only regular files beneath the listed directories are read, and no link is followed`(
        _ asksKernel: Bool
    ) throws {
        try Self.withFiles { top in
            let directories = try #require(DocumentDirectories("/srv/nowhere:\(top)/in/"))
            for (path, text) in [("/in/a", "/in/a"), ("/in/sub/b", "/in/sub/b"), ("/in//sub/b", "/in/sub/b")] {
                #expect(Self.content(top + path, directories, asksKernel) == .success(text))
            }
            for path in ["file", "folder/b", "out/passwd", "passwd", "self/environ", "loop", "a/b"] {
                let outcome = Self.content("\(top)/in/\(path)", directories, asksKernel)
                let sentence = "has a link in its path, or something that is not a directory"
                #expect(outcome == .failure(FileProblem(complaint: sentence)), "\(path)")
            }
            for path in ["/in/pipe", "/in/sub"] {
                let outcome = Self.content(top + path, directories, asksKernel)
                #expect(outcome == .failure(FileProblem(complaint: "is not a regular file")), "\(path)")
            }
            for path in [
                "\(top)/inside/c", "\(top)/in/../inside/c", "\(top)/in/./a", "\(top)/in", "/etc/passwd",
                "/proc/self/environ", "in/a", "", "\(top)/in/a\0",
            ] {
                let outcome = Self.content(path, directories, asksKernel)
                let sentence = "is not in a directory of MILLRACE_DOCUMENT_DIRS"
                #expect(outcome == .failure(FileProblem(complaint: sentence)), "\(path)")
            }
            let none = Self.content(top + "/in/a", DocumentDirectories(), asksKernel)
            let sentence = "is not read: MILLRACE_DOCUMENT_DIRS names no directory of this machine"
            #expect(none == .failure(FileProblem(complaint: sentence)))
        }
    }

    @Test(arguments: [true, false])
    func `what the kernel makes up is not read, whatever way leads there`(_ asksKernel: Bool) throws {
        try Self.withFiles { top in
            // As if the check of the setting had let it through: a link to it, or it itself.
            try FileManager.default.createSymbolicLink(atPath: top + "/made-up", withDestinationPath: "/proc/self")
            for directory in [top + "/made-up", "/proc/self"] {
                let outcome = Self.content(
                    directory + "/environ", DocumentDirectories(paths: [directory]), asksKernel)
                let sentence = "lies in a directory that the kernel makes up"
                #expect(outcome == .failure(FileProblem(complaint: sentence)), "\(directory)")
            }
            // And as if procfs were mounted elsewhere.
            for (path, isRegular) in [
                (top + "/in/a", true), ("/proc/version", false), ("/sys/kernel/uevent_seqnum", false),
            ] {
                let file = open(path, O_RDONLY | O_CLOEXEC)
                try #require(file >= 0)
                defer { close(file) }
                #expect(DocumentDirectories.isRegular(file) == isRegular, "\(path)")
            }
        }
    }

    @Test func `the setting takes absolute paths, and neither the root nor what the kernel makes up`() {
        #expect(DocumentDirectories("/srv/a:/srv//b/")?.paths == ["/srv/a", "/srv/b"])
        for text in ["", "a", "/srv:", "/", "//", "/proc", "/proc/self", "/sys/", "/dev/shm", "/srv/../proc", "/srv/."]
        {
            #expect(DocumentDirectories(text) == nil, "\(text)")
        }
    }
}
