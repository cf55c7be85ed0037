import CLinux
import Foundation
import Sandbox
import Testing

/// What a child can still do, tried from inside its sandbox.
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

    /// Everything that one process can do to another, by a call or through a descriptor.
    private static let deeds: [(name: String, number: Int32, arguments: String)] = [
        ("own a pipe for the parent", SYS_fcntl, "0 8 parent"), ("the same, F_SETOWN_EX", SYS_fcntl, "0 15 0"),
        ("choose a pipe's signal", SYS_fcntl, "0 10 9"), ("ask for signals", SYS_fcntl, "0 4 8192"),
        ("ask for signals without waits", SYS_fcntl, "0 4 10240"), ("watch a folder", SYS_fcntl, "0 1026 1"),
        ("take a lease", SYS_fcntl, "0 1024 0"), ("FIOASYNC", SYS_ioctl, "0 21586 0"),
        ("FIOSETOWN", SYS_ioctl, "0 35073 0"), ("SIOCSPGRP", SYS_ioctl, "0 35074 0"),
        ("kill", SYS_kill, "parent 0"), ("kill all", SYS_kill, "-1 0"), ("tkill", SYS_tkill, "parent 0"),
        ("tgkill", SYS_tgkill, "parent parent 0"), ("queue a signal", SYS_rt_sigqueueinfo, "parent 0 0"),
        ("queue one for a thread", SYS_rt_tgsigqueueinfo, "parent parent 0 0"),
        ("open a process", SYS_pidfd_open, "parent 0"), ("signal by a descriptor", SYS_pidfd_send_signal, "0 0 0 0"),
        ("take a descriptor", SYS_pidfd_getfd, "0 0 0"), ("trace", SYS_ptrace, "16 parent 0 0"),
        ("read another's memory", SYS_process_vm_readv, "parent 0 0 0 0 0"),
        ("write another's memory", SYS_process_vm_writev, "parent 0 0 0 0 0"),
        ("read another's limits", SYS_prlimit64, "parent 7 0 0"), ("set its own limits", SYS_prlimit64, "0 7 1 0"),
        ("outlive its parent", SYS_prctl, "1 0 0 0 0"), ("be dumped", SYS_prctl, "4 1 0 0 0"),
        ("let others trace it", SYS_prctl, "1499557217 -1 0 0 0"), ("set a timer", SYS_timer_create, "0 0 0"),
        ("push others back", SYS_setpriority, "0 parent 19"),
        ("bind another to a core", SYS_sched_setaffinity, "parent 0 0"),
        ("leave its group", SYS_setpgid, "0 0"), ("leave its session", SYS_setsid, ""),
        ("another namespace", SYS_unshare, "268435456"), ("go into a namespace", SYS_setns, "0 0"),
        ("a ring of calls", SYS_io_uring_setup, "1 0"), ("watch a processor", SYS_perf_event_open, "0 parent -1 -1 0"),
        ("run in the kernel", SYS_bpf, "0 0 0"), ("share memory", SYS_shmget, "1 4096 1023"),
        ("another's robust locks", SYS_get_robust_list, "parent 0 0"),
    ]

    @Test(arguments: [[], ["without-layers"]])
    func `it does nothing to another process, nor by way of a descriptor`(_ arguments: [String]) async throws {
        let child = try await SandboxedChild.start(SandboxedChild.Program(prisoner().path, arguments))
        for deed in Self.deeds {
            let answer = try await child.ask(Array("call \(deed.number) \(deed.arguments)".utf8)).payload
            #expect(String(decoding: answer, as: UTF8.self) == "Operation not permitted", "\(deed.name)")
        }
        // The calls that a library needs still work.
        for (name, number, rest) in [
            ("F_GETFD", SYS_fcntl, "0 1"), ("F_GETFL", SYS_fcntl, "0 3"), ("F_SETFL", SYS_fcntl, "1 4 0"),
            ("its own limits", SYS_prlimit64, "0 7 0 0"), ("a signal to itself", SYS_tgkill, "self self 0"),
        ] {
            let answer = try await child.ask(Array("call \(number) \(rest)".utf8)).payload
            #expect(String(decoding: answer, as: UTF8.self) == "done", "\(name)")
        }
        await child.end()
    }

    @Test func `one that root starts has a user of its own, which no other child has`() async throws {
        guard getuid() == 0 else { return }
        func owner(_ child: SandboxedChild) throws -> uid_t {
            var about = stat()
            try #require(stat("/proc/\(try #require(child.pid))/status", &about) == 0)
            let status = try String(contentsOfFile: "/proc/\(try #require(child.pid))/status", encoding: .utf8)
            let line = status.split(separator: "\n").first { $0.hasPrefix("Uid:") }
            let users = Set(try #require(line).split(separator: "\t").dropFirst().compactMap { uid_t($0) })
            try #require(users.count == 1)
            return try #require(users.first)
        }
        let first = try await SandboxedChild.start(prisoner())
        let second = try await SandboxedChild.start(prisoner())
        let users = [try owner(first), try owner(second)]
        #expect(!users.contains(0) && users[0] != users[1], "\(users)")
        #expect(first.refusedLayers & 2 == 0)
        await first.end()
        await second.end()
    }

    /// 1. A parent, root or not, starts a child, which shuts itself in. 2. The parent is killed. 3. The child is gone as well.
    @Test func `it does not outlive its parent, root or not`() async throws {
        let parent = Process()
        let (said, heard) = (Pipe(), Pipe())
        parent.executableURL = URL(fileURLWithPath: prisoner().path)
        parent.arguments = ["starts-another"]
        parent.standardError = said
        parent.standardOutput = heard
        try parent.run()
        let line = String(decoding: said.fileHandleForReading.availableData, as: UTF8.self)
        let child = try #require(pid_t(line.trimmingCharacters(in: .whitespacesAndNewlines)))
        // Its first words: it is shut in.
        #expect(!heard.fileHandleForReading.availableData.isEmpty)
        let watch = millrace_pidfd(child)
        try #require(watch >= 0)
        defer { close(watch) }
        kill(parent.processIdentifier, SIGKILL)
        var ended = pollfd(fd: watch, events: Int16(POLLIN), revents: 0)
        #expect(poll(&ended, 1, 60_000) == 1, "it lives on")
        if ended.revents == 0 { kill(child, SIGKILL) }
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
        // As far up as it takes, wherever temporary folders are.
        let up = String(repeating: "../", count: folder.count { $0 == "/" })
        #expect(try await ask("open \(folder)/\(up)etc/passwd", reads) == "Permission denied")
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
        var limits = SandboxedChild.Limits()
        limits.niceness = 7
        let child = try await SandboxedChild.start(prisoner(), limits: limits)
        let pid = try #require(child.pid)
        #expect(getpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(pid)) == max(7, ours))
        #expect(sched_getscheduler(pid) == SCHED_OTHER)
        await child.end()
        limits.niceness = 20
        let last = try await SandboxedChild.start(prisoner(), limits: limits)
        #expect(sched_getscheduler(try #require(last.pid)) == 5, "SCHED_IDLE")
        await last.end()
    }

    @Test func `what the kernel refuses is known, and what is left holds`() async throws {
        let whole = try await SandboxedChild.run(prisoner(), Array("echo".utf8))
        #expect(whole.refusedLayers == 0, "this kernel lacks layers: \(whole.refusedLayers)")
        let without = try await SandboxedChild.run(prisoner("without-layers"), Array("echo".utf8))
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
