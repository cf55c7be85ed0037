import Synchronization
import Telemetry
import TestSupport
import Testing
import Threads

@testable import Supervision

@Suite struct CoalescerTests {
    private final class Source: Sendable {
        let requests = Mutex(0)
        let cancelled = Mutex(0)
        let gate = Wakeup()

        func token() async throws -> String {
            let number = requests.withLock { requests in
                requests += 1
                return requests
            }
            await gate.wait()
            if Task.isCancelled {
                cancelled.withLock { $0 += 1 }
                throw CancellationError()
            }
            return "token \(number)"
        }
    }

    private struct Broken: Error, Equatable {}

    @Test func `ten thousand callers make one request, and the cancelled first one harms nobody`() async throws {
        let coalescer = Coalescer<String, String>()
        let source = Source()
        let first = Task {
            try await coalescer.value(for: "token") { try await source.token() }
        }
        try await eventually("one request is made") { source.requests.withLock { $0 } == 1 }
        let answers = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<10_000 {
                group.addTask { @Sendable in
                    try await coalescer.value(for: "token") { try await source.token() }
                }
            }
            try await eventually("all wait for it") { coalescer.waiting == 10_001 }
            first.cancel()
            await #expect(throws: CancellationError.self) { try await first.value }
            source.gate.fire()
            var answers: [String: Int] = [:]
            for try await answer in group { answers[answer, default: 0] += 1 }
            return answers
        }
        #expect(answers == ["token 1": 10_000])
        #expect(source.requests.withLock { $0 } == 1)
        #expect(coalescer.inFlight == 0)
    }

    @Test func `a supervisor reads a thing once for all who ask, and keeps nothing`() async throws {
        let supervisor = Supervisor(Supervisor.Options(), log: .silent)
        let source = Source()
        let answers = try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<100 {
                group.addTask { try await supervisor.read("flag:x") { try await source.token() } }
            }
            try await eventually("a hundred wait") { supervisor.waitingForReads == 100 }
            source.gate.fire()
            return try await group.reduce(into: Set<String>()) { $0.insert($1) }
        }
        #expect(answers == ["token 1"])
        source.gate.fire()
        #expect(try await supervisor.read("flag:x") { try await source.token() } == "token 2")
    }

    @Test func `calls of several providers share a read and its error, and the next call reads again`() async throws {
        let supervisor = Supervisor(Supervisor.Options(), log: .silent)
        let gate = Wakeup()
        let reads = Mutex(0)
        let load: @Sendable () async throws -> String = {
            let number = reads.withLock { reads in
                reads += 1
                return reads
            }
            guard number == 1 else { return "token \(number)" }
            await gate.wait()
            throw Broken()
        }
        let token: @Sendable (String) async throws -> String = { provider in
            try await supervisor.call(provider) { call in try await call.read("token:x", load) }
        }
        let waiting = (0..<20).map { number in Task { try await token("provider-\(number % 2)") } }
        let leaving = Task { try await token("provider-0") }
        try await eventually("all wait") { supervisor.waitingForReads == 21 }
        leaving.cancel()
        await #expect(throws: CancellationError.self) { try await leaving.value }
        try await eventually("one has left") { supervisor.waitingForReads == 20 }
        gate.fire()
        for one in waiting { await #expect(throws: Broken.self) { try await one.value } }
        #expect(reads.withLock { $0 } == 1)
        #expect(try await token("provider-1") == "token 2")
    }

    @Test func `the work is cancelled when nobody waits, and the next caller starts it again`() async throws {
        let coalescer = Coalescer<Int, String>()
        let source = Source()
        let alone = Task { try await coalescer.value(for: 1) { try await source.token() } }
        try await eventually("the request is made") { source.requests.withLock { $0 } == 1 }
        alone.cancel()
        await #expect(throws: CancellationError.self) { try await alone.value }
        try await eventually("it is cancelled") { source.cancelled.withLock { $0 } == 1 }
        let next = Task { try await coalescer.value(for: 1) { try await source.token() } }
        try await eventually("another is made") { source.requests.withLock { $0 } == 2 }
        source.gate.fire()
        #expect(try await next.value == "token 2")
    }

    @Test func `an error goes to those who wait, and is not kept`() async throws {
        let coalescer = Coalescer<Int, String>()
        let gate = Wakeup()
        let tries = Mutex(0)
        let load: @Sendable () async throws -> String = {
            let first = tries.withLock { tries in
                tries += 1
                return tries == 1
            }
            guard first else { return "well again" }
            await gate.wait()
            throw Broken()
        }
        let one = Task { try await coalescer.value(for: 1, load) }
        try await eventually("it is tried once") { tries.withLock { $0 } == 1 }
        let two = Task { try await coalescer.value(for: 1, load) }
        try await eventually("two wait") { coalescer.waiting == 2 }
        gate.fire()
        await #expect(throws: Broken.self) { try await one.value }
        await #expect(throws: Broken.self) { try await two.value }
        #expect(try await coalescer.value(for: 1, load) == "well again")
    }

    @Test func `a caller that is cancelled already asks nobody`() async {
        let coalescer = Coalescer<Int, Int>()
        let task = Task {
            try? await Task.sleep(for: .seconds(60))
            return try await coalescer.value(for: 1) { 1 }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
