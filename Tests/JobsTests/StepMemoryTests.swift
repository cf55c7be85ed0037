import FoundationEssentials
import Synchronization
import Testing

@testable import MillraceJobs

/// What a run records, in memory, and how often it was asked for.
private final class Memory: Sendable {
    struct State {
        var values: [String: [UInt8]] = [:]
        var reads = 0
        var refuses = false
        var progress: [JobProgress] = []
        var lines: [LogLine] = []
    }

    let state = Mutex(State())

    var reads: Int { state.withLock { $0.reads } }
    var names: [String] { state.withLock { $0.values.keys.sorted() } }

    var backend: RunBackend {
        RunBackend(
            steps: { _ in
                self.state.withLock {
                    $0.reads += 1
                    return $0.values
                }
            },
            record: { _, name, value in
                try self.state.withLock {
                    if $0.refuses { throw StepError.leaseLost(name: name) }
                    if let earlier = $0.values[name] { return earlier }
                    $0.values[name] = value
                    return value
                }
            },
            progress: { _, progress in self.state.withLock { $0.progress.append(progress) } },
            line: { _, line in self.state.withLock { $0.lines.append(line) } },
            spawn: RunBackend.unimplemented.spawn, recordUndoable: RunBackend.unimplemented.recordUndoable,
            undone: RunBackend.unimplemented.undone, wait: RunBackend.unimplemented.wait,
            publish: RunBackend.unimplemented.publish, putState: RunBackend.unimplemented.putState,
            earlier: RunBackend.unimplemented.earlier)
    }

    func run() -> Context {
        Context(
            id: 7, kind: "test", queue: "default", attempt: 1, maxAttempts: 20, crashes: 0, enqueuedAt: Date(),
            claimedAt: Date(), session: 1, number: 8, tenant: nil, tags: [], metadata: nil, backend: backend)
    }
}

private struct Charge: Codable, Equatable {
    var id: String
    var cents: Int?
}

private struct Broken: Error {}

@Suite struct StepMemoryTests {
    @Test func `a second run is given what the first recorded, and asks once for all steps`() async throws {
        let memory = Memory()
        let first = memory.run()
        #expect(memory.reads == 0)
        let charge = try await first.step("charge") { Charge(id: "c1", cents: 5) }
        try await first.step("mail") {}
        let none = try await first.step("none") { Int?.none }
        #expect(charge == Charge(id: "c1", cents: 5) && none == nil && memory.reads == 1)
        let second = memory.run()
        #expect(try await second.step("charge") { Charge(id: "never") } == charge)
        try await second.step("mail") { Issue.record("it was done again") }
        #expect(try await second.step("none") { Int?.some(3) } == nil)
        #expect(memory.reads == 2 && memory.names == ["charge", "mail", "none"])
    }

    @Test func `the same name twice in one run gives the recorded value`() async throws {
        let run = Memory().run()
        #expect(try await run.step("n") { 1 } == 1)
        #expect(try await run.step("n") { 2 } == 1)
    }

    @Test func `a step that throws is not recorded, and may be tried again in the same run`() async throws {
        let memory = Memory()
        let run = memory.run()
        await #expect(throws: Broken.self) { try await run.step("n") { () -> Int in throw Broken() } }
        #expect(memory.names.isEmpty)
        #expect(try await run.step("n") { 2 } == 2)
    }

    @Test func `two of one name at once are refused, two of different names are not`() async throws {
        let run = Memory().run()
        let error = await #expect(throws: StepError.self) {
            try await run.step("outer") { try await run.step("outer") { 1 } }
        }
        #expect(error == .overlapping(name: "outer"))
        #expect(try await run.step("outer") { try await run.step("inner") { 1 } + 1 } == 2)
    }

    @Test func `what cannot be recorded is said before or after, and is no reason to try again`() async throws {
        let memory = Memory()
        let run = memory.run()
        for name in ["", String(repeating: "x", count: 129), "a\0b"] {
            let error = await #expect(throws: StepError.self) {
                try await run.step(name) { Issue.record("it began all the same") }
            }
            #expect(error == .malformedName(name) && error?.retry == .never)
        }
        let large = await #expect(throws: StepError.self) {
            try await run.step("large") { String(repeating: "x", count: StoredJSON.largest) }
        }
        #expect(large == .tooLarge(name: "large", bytes: StoredJSON.largest + 2) && large?.retry == .never)
        for (name, value) in [("nul", "a\0b"), ("slash", "\\u0000"), ("both", "\\\0")] {
            let error = try? await run.step(name) { value }
            #expect((error == nil) == value.contains("\0"), "\(name)")
        }
        let endless = await #expect(throws: StepError.self) { try await run.step("endless") { Double.infinity } }
        #expect(endless?.retry == .never)
        #expect(memory.names == ["slash"])
    }

    @Test func `a value that no longer fits the type is an error that a later version may mend`() async throws {
        let memory = Memory()
        _ = try await memory.run().step("n") { "text" }
        let error = await #expect(throws: StepError.self) { try await memory.run().step("n") { 1 } }
        #expect(error?.retry == .usual && error?.description.contains("text") == false)
    }

    @Test func `there are no more than a thousand`() async throws {
        let memory = Memory()
        memory.state.withLock { state in for n in 1...999 { state.values["\(n)"] = [UInt8(ascii: "1")] } }
        let run = memory.run()
        #expect(try await run.step("last") { 1 } == 1)
        let error = await #expect(throws: StepError.self) {
            try await run.step("more") { Issue.record("it began all the same") }
        }
        #expect(error == .tooMany(name: "more"))
        #expect(try await run.step("5") { 2 } == 1)
    }

    @Test func `a refused record is thrown, and nothing is remembered`() async throws {
        let memory = Memory()
        let run = memory.run()
        memory.state.withLock { $0.refuses = true }
        let error = await #expect(throws: StepError.self) { try await run.step("n") { 1 } }
        #expect(error == .leaseLost(name: "n"))
        memory.state.withLock { $0.refuses = false }
        #expect(try await run.step("n") { 2 } == 2)
    }

    @Test func `a cancelled run begins no step, and records the one it has done`() async throws {
        let memory = Memory()
        let run = memory.run()
        let task = Task {
            try await run.step("first") {
                withUnsafeCurrentTask { $0?.cancel() }
                return 1
            }
            try await run.step("second") { Issue.record("it began all the same") }
        }
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(memory.names == ["first"])
    }

    @Test func `a step that could not be undone is not done`() async throws {
        let run = Context(
            id: 7, kind: "test", queue: "default", attempt: 1, maxAttempts: 20, crashes: 0, enqueuedAt: Date(),
            claimedAt: Date(), session: 1, number: 8, tenant: nil, tags: [], metadata: nil, takesUndos: false,
            backend: Memory().backend)
        await #expect(throws: StepError.notUndoable(name: "charge")) {
            try await run.step("charge", undo: { (_: Int) in }) {
                Issue.record("it was done")
                return 1
            }
        }
        #expect(StepError.notUndoable(name: "charge").retry == .never)
    }

    @Test func `a context without backend says which is missing`() async throws {
        let run = Context(
            id: 7, kind: "test", queue: "default", attempt: 1, maxAttempts: 20, crashes: 0, enqueuedAt: Date(),
            claimedAt: Date(), session: 1, number: 8, tenant: nil, tags: [], metadata: nil)
        await #expect(throws: RunBackend.Unimplemented.self) { try await run.step("n") { 1 } }
    }

    @Test func `progress and lines are brought within their bounds`() {
        let memory = Memory()
        let run = memory.run()
        run.progress(-1, stage: "a\0b")
        run.progress(.nan, note: String(repeating: "ä", count: 2000))
        run.progress(2)
        run.log(String(repeating: "x", count: 5000), .warning)
        run.log("plain")
        let (progress, lines) = memory.state.withLock { ($0.progress, $0.lines) }
        #expect(progress.map(\.fraction) == [0, nil, 1])
        #expect(progress[0].stage == "a␀b" && progress[1].note?.count == 1000)
        #expect(lines[0].text.count == 4000 && lines[0].text.hasSuffix("…") && lines[0].level == .warning)
        #expect(lines[1] == LogLine("plain", .info))
        #expect(run.leavings.reports)
    }

    @Test func `the last result counts, and one that cannot be kept is refused at once`() throws {
        let run = Memory().run()
        #expect(run.leavings.result == nil)
        try run.result(1)
        try run.result(Charge(id: "c"))
        #expect(throws: ResultError.self) { try run.result(String(repeating: "x", count: StoredJSON.largest)) }
        #expect(throws: ResultError.self) { try run.result("\0") }
        #expect(run.leavings.result == Array(#"{"id":"c"}"#.utf8))
    }
}
