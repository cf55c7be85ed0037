import Foundation
import Sandbox
import Testing

/// What a child can still do, tried from inside.
@Suite struct PrisonTests {
    @Test(arguments: [[], ["without-layers"]])
    func `it opens no socket, reads no file, starts nothing, and signals nobody`(_ arguments: [String]) async throws {
        let refused = "Operation not permitted"
        #expect(try await ask("socket", arguments) == refused)
        #expect(try await ask("fork", arguments) == refused)
        #expect(try await ask("exec", arguments) == refused)
        #expect(try await ask("kill", arguments) == refused)
        #expect(try await ask("uncage", arguments) == refused)
        for path in ["/etc/passwd", "/proc/self/environ", "/", "/dev/null"] {
            #expect(try await ask("open \(path)", arguments) == refused)
        }
        #expect(try await ask("create /tmp/millrace-prisoner", arguments) == refused)
        #expect(!FileManager.default.fileExists(atPath: "/tmp/millrace-prisoner"))
    }

    @Test func `it reads the folders that it was given, and no other`() async throws {
        let folder = NSTemporaryDirectory() + "millrace-prison-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        try Data("x".utf8).write(to: URL(fileURLWithPath: folder + "/model"))
        try FileManager.default.createSymbolicLink(atPath: folder + "/link", withDestinationPath: "/etc/passwd")
        let reads = ["reads=\(folder)"]
        #expect(try await ask("open \(folder)/model", reads) == "done")
        #expect(try await ask("open /etc/passwd", reads) == "Permission denied")
        #expect(try await ask("open \(folder)/link", reads) == "Permission denied")
        #expect(try await ask("open \(folder)/../../etc/passwd", reads) == "Permission denied")
        #expect(try await ask("create \(folder)/new", reads) == "Permission denied")
        #expect(try await ask("socket", reads) == "Operation not permitted")
    }

    @Test func `it has the files that it was given, in their order, and nothing else of ours`() async throws {
        let ends = try Ends()
        defer { ends.close() }
        #expect(try await ask("descriptors", files: [ends.second, ends.first]) == "0 1 2 3 4")
        #expect(try await ask("descriptors") == "0 1 2")
        #expect(try await ask("file", files: [ends.first]) == "the first")
        #expect(try await ask("file", files: [ends.second, ends.first]) == "the second")
        #expect(try await ask("environment") == "LC_ALL=C.UTF-8\nOMP_THREAD_LIMIT=1\nSWIFT_BACKTRACE=enable=no")
    }

    @Test func `it stands back for others as far as it was told to, and never less than we do`() async throws {
        let ours = getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0)
        var limits = Child.Limits()
        limits.niceness = 7
        let child = try await Child.start(prisoner(), limits: limits)
        let pid = try #require(child.pid)
        #expect(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(pid)) == max(7, ours))
        #expect(sched_getscheduler(pid) == SCHED_OTHER)
        await child.end()
        limits.niceness = 20
        let last = try await Child.start(prisoner(), limits: limits)
        #expect(sched_getscheduler(try #require(last.pid)) == 5, "SCHED_IDLE")
        await last.end()
    }

    @Test func `what the kernel refuses is known, and what is left holds`() async throws {
        let whole = try await Child.run(prisoner(), Array("echo".utf8))
        #expect(whole.refusedLayers == 0, "this kernel lacks layers: \(whole.refusedLayers)")
        let without = try await Child.run(prisoner("without-layers"), Array("echo".utf8))
        #expect(without.refusedLayers == 8 | 16)  // namespaces and files
    }
}

/// Two files with a content each.
private struct Ends {
    let first: Int32
    let second: Int32

    init() throws {
        func file(_ text: String) throws -> Int32 {
            let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString)"
            try Data(text.utf8).write(to: URL(fileURLWithPath: path))
            defer { unlink(path) }
            let descriptor = open(path, O_RDONLY | O_CLOEXEC)
            try #require(descriptor >= 0)
            return descriptor
        }
        first = try file("the first")
        second = try file("the second")
    }

    func close() {
        Glibc.close(first)
        Glibc.close(second)
    }
}
