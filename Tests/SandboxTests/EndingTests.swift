import Foundation
import Sandbox
import Synchronization
import Testing

@Suite struct EndingTests {
    private func limits(_ change: (inout SandboxedChild.Limits) -> Void) -> SandboxedChild.Limits {
        var limits = SandboxedChild.Limits()
        change(&limits)
        return limits
    }

    @Test func `each way to die has its name`() async throws {
        #expect(await failure(of: "spin", [], limits { $0.cpu = .seconds(1) })?.reason == .cpu)
        // CPU time is not tested here: on a busy machine this much memory takes a second of it.
        let eaten = await failure(of: "eat", [], limits { $0.memory = 400 << 20 })
        #expect(eaten?.reason == .memory, "\(eaten.map { "\($0)" } ?? "it lives")")
        #expect(await failure(of: "dereference")?.reason == .crash(signal: SIGSEGV))
        #expect(await failure(of: "abort")?.reason == .crash(signal: SIGABRT))
        #expect(await failure(of: "exit 3")?.reason == .exited(3))
        #expect(await failure(of: "half")?.reason == .exited(0))
        #expect(await failure(of: "sleep", [], limits { $0.wall = .milliseconds(300) })?.reason == .timeout)
        #expect(
            await failure(of: "echo", ["says-nothing"], limits { $0.start = .milliseconds(300) })?.reason == .timeout)
        #expect(await failure(of: "nonsense")?.reason == .refused("unsupported"))
        let refused = await failure(of: "refuse")
        #expect(refused?.reason == .refused("malformed") && refused?.sentence == "the second page is missing")
        #expect(refused?.isDeterministic == true)
    }

    @Test func `memory that ran out has its name beside a parent that has more of it`() async throws {
        // The kernel's figures of a child start with its parent's: they say nothing here, only the child's last words do.
        let ballast = [UInt8](repeating: 1, count: 600 << 20)
        let eaten = await failure(of: "eat", [], limits { $0.memory = 400 << 20 })
        #expect(eaten?.reason == .memory, "\(eaten.map { "\($0)" } ?? "it lives")")
        #expect(ballast[ballast.count - 1] == 1)
    }

    @Test func `what it says is bounded and checked`() async throws {
        let small = limits { $0.answer = 1 << 20 }
        for request in ["oversize", "lie", "gibberish"] {
            #expect(await failure(of: request, [], small)?.reason == .misspoke, "\(request)")
        }
        #expect(try await ask("babble") == "babbled")  // 200 MB of messages
        let hurt = await failure(of: "complain")
        #expect(hurt?.messages == "\u{FFFD}[31mit hurts\u{FFFD}\n")
    }

    @Test func `a file that grows too large ends it`() async throws {
        let path = NSTemporaryDirectory() + "millrace-\(UUID().uuidString)"
        let descriptor = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        unlink(path)
        defer { close(descriptor) }
        let small = limits { $0.fileSize = 1 << 20 }
        #expect(try await ask("write 16", [], small, files: [descriptor, descriptor]) == "")
        #expect(await failure(of: "write 1000", [], small, files: [descriptor, descriptor])?.reason == .fileSize)
        var about = stat()
        fstat(descriptor, &about)
        #expect(about.st_size <= 1 << 20)
    }

    @Test func `a warm child answers one after the other, and says what it has used`() async throws {
        let child = try await SandboxedChild.start(prisoner())
        for number in 0..<50 {
            let answer = try await child.ask(Array("echo \(number)".utf8))
            #expect(answer.payload == Array("\(number)".utf8))
        }
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for number in 0..<20 {
                group.addTask { try await child.ask(Array("echo \(number)".utf8)).payload == Array("\(number)".utf8) }
            }
            for try await isRight in group { #expect(isRight) }
        }
        let ending = await child.end()
        #expect(ending?.status == 0)
        #expect((ending?.usage.peak ?? 0) > 1 << 20)
        await #expect(throws: ChildFailure.self) { try await child.ask(Array("echo".utf8)) }
    }

    @Test func `notes come in their order, before the answer`() async throws {
        let seen = Mutex<[String]>([])
        _ = try await SandboxedChild.run(
            prisoner(), Array("notes 200".utf8),
            note: { note in seen.withLock { $0.append(String(decoding: note, as: UTF8.self)) } })
        #expect(seen.withLock { $0 } == (1...200).map(String.init))
    }

    @Test func `a caller that stops waiting leaves no child behind`() async throws {
        for request in ["sleep", "spin"] {
            let child = try await SandboxedChild.start(prisoner())
            let asking = Task { try await child.ask(Array(request.utf8)) }
            try await Task.sleep(for: .milliseconds(50))
            asking.cancel()
            let outcome = await asking.result
            #expect(throws: ChildFailure.self) { try outcome.get() }
            let ending = await child.end()
            #expect(ending?.status == SIGKILL)
        }
        let starting = Task { try await SandboxedChild.start(prisoner("says-nothing")) }
        try await Task.sleep(for: .milliseconds(50))
        starting.cancel()
        let outcome = await starting.result
        #expect(throws: ChildFailure.self) { try outcome.get() }
    }

    @Test func `one that is killed from outside is no fault of its input`() async throws {
        let child = try await SandboxedChild.start(prisoner())
        let pid = try #require(child.pid)
        let asking = Task { try await child.ask(Array("sleep".utf8)) }
        try await Task.sleep(for: .milliseconds(50))
        kill(pid, SIGKILL)
        let outcome = await asking.result
        #expect(throws: ChildFailure.self) { try outcome.get() }
        if case .failure(let failure as ChildFailure) = outcome {
            #expect(failure.reason == .killed && !failure.isDeterministic)
        }
    }

    @Test func `what can not be started is said`() async {
        await #expect(throws: ChildFailure.self) {
            try await SandboxedChild.start(SandboxedChild.Program("/nonexistent/child"))
        }
        #expect(
            await failure(of: "echo", ["says-nothing"], limits { $0.start = .milliseconds(100) })?.reason == .timeout)
    }
}
