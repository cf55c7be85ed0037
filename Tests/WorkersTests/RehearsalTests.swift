import MillraceJobs
import MillraceQueues
import Testing
import Workers

/// Which turn a rehearsed run gets, and what is said of it.
@Suite struct RehearsalTests {
    private func script(_ recorded: [String], awaited: String? = nil) -> RehearsalScript {
        RehearsalScript(recorded: recorded, awaited: awaited)
    }

    @Test func `what is on record is answered in its order, and what comes behind it ends the run`() {
        var script = script(["a", "b"])
        #expect(script.ask("a") == .answer)
        #expect(script.ask("b") == .answer)
        #expect(script.ask("a") == .answer)
        #expect(script.ask("new") == .stop)
        #expect(script.answered == 2 && script.then == ["new"] && script.instead.isEmpty)
    }

    @Test func `steps asked for at the same time are answered in the order that happened`() {
        var script = script(["b", "a", "c"], awaited: "w")
        #expect(script.ask("a") == .hold)
        #expect(script.ask("w") == .hold)
        #expect(script.ask("b") == .answer)
        #expect(script.released().map(\.name) == ["a"])
        #expect(script.ask("c") == .answer)
        #expect(script.released().map(\.name) == ["w"])
        #expect(script.then == ["w"] && script.answered == 3)
    }

    @Test func `a step that is not on record fails when nothing else moves, and the run may bear that`() {
        var script = script(["fallback"])
        #expect(script.ask("risky") == .hold)
        #expect(script.settle().map(\.turn) == [.stop])
        #expect(script.ask("fallback") == .answer)
        #expect(script.answered == 1)
        #expect(script.settle().isEmpty)
    }

    @Test func `a step asked for before another on record ends the run when nothing moves`() {
        var script = script(["a", "b"])
        #expect(script.ask("b") == .hold)
        #expect(script.settle().map(\.name) == ["b"])
        #expect(script.instead == ["b"] && script.answered == 0)
        #expect(script.ask("a") == .stop)
    }

    // MARK: verdicts

    private func job(_ place: RehearsedJob.Place, _ steps: [String]) -> RehearsedJob {
        RehearsedJob(id: 1, kind: "k", place: place, steps: steps.map { RehearsedJob.Step(name: $0) })
    }

    private func answer(
        _ answered: Int, end: RehearsalAnswer.End = .stopped, instead: [String] = [], then: [RehearsalAsked] = []
    ) -> RehearsalAnswer {
        var answer = RehearsalAnswer()
        answer.answered = answered
        answer.end = end
        answer.instead = instead.map { RehearsalAsked(step: $0) }
        answer.then = then
        return answer
    }

    private func causes(_ job: RehearsedJob, _ answer: RehearsalAnswer) -> [RehearsalFinding.Cause] {
        RehearsalJudge.findings(job, answer).map(\.cause)
    }

    @Test func `a run that follows the record fits, whatever comes behind it`() {
        let new = RehearsalAsked(step: "new")
        #expect(causes(job(.underWay, ["a", "b"]), answer(2, then: [new])) == [])
        #expect(causes(job(.ended, ["a", "b"]), answer(2, end: .finished)) == [])
        #expect(causes(job(.ended, ["a", "b"]), answer(2, then: [new])) == [])
        #expect(causes(job(.fresh, []), answer(0, end: .threw)) == [])
        let wait = RehearsalAsked(step: "w", what: "time")
        #expect(causes(job(.waits(wait), ["a"]), answer(1, then: [wait])) == [])
    }

    @Test func `what is left out, put before, put elsewhere or not awaited is named`() {
        #expect(causes(job(.ended, ["a", "b"]), answer(1, end: .finished)) == [.missing])
        #expect(causes(job(.underWay, ["a", "b"]), answer(1, end: .threw)) == [.failed])
        #expect(causes(job(.underWay, ["a", "b"]), answer(0, instead: ["b"])) == [.order])
        #expect(causes(job(.underWay, ["a", "b"]), answer(1, instead: ["c"])) == [.otherStep])
        let wait = RehearsalAsked(step: "w", what: "signal", name: "paid", key: "7")
        let at = job(.waits(wait), ["a"])
        #expect(causes(at, answer(1, end: .finished)) == [.wait])
        #expect(causes(at, answer(1, then: [RehearsalAsked(step: "v")])) == [.wait])
        #expect(causes(at, answer(1, then: [RehearsalAsked(step: "w", what: "time")])) == [.wait])
        #expect(
            causes(at, answer(1, then: [RehearsalAsked(step: "w", what: "signal", name: "paid", key: "8")])) == [.wait])
        #expect(causes(at, answer(1, then: [wait])) == [])
        var unread = answer(0)
        unread.end = .undecodable
        #expect(causes(at, unread) == [.arguments])
        var misfit = answer(1, then: [wait])
        misfit.misfits = [.init(step: "a", why: "it is not a Int")]
        #expect(causes(at, misfit) == [.type])
    }

    @Test func `input of waits on record is compared where it is known, and arguments of jobs by what they say`() {
        func known(_ asked: RehearsalAsked?) -> RehearsedJob {
            RehearsedJob(id: 1, kind: "k", place: .underWay, steps: [.init(name: "w", asked: asked)])
        }
        func run(_ asked: RehearsalAsked?) -> RehearsalAnswer {
            var answer = answer(1, end: .finished)
            answer.waits = [asked].compactMap { $0 }
            return answer
        }
        let paid = RehearsalAsked(step: "w", what: "signal", name: "paid", key: "7")
        var other = paid
        other.key = "8"
        #expect(causes(known(paid), run(paid)) == [])
        #expect(causes(known(paid), run(other)) == [.input])
        #expect(causes(known(paid), run(nil)) == [.input])
        #expect(causes(known(nil), run(other)) == [])
        func jobs(_ args: String) -> RehearsalAsked {
            RehearsalAsked(step: "w", what: "jobs", children: [.init(kind: "c", args: args)])
        }
        #expect(causes(known(jobs(#"{"a": 1, "b": [1.0]}"#)), run(jobs(#"{"b":[1],"a":1}"#))) == [])
        #expect(causes(known(jobs(#"{"a": 1}"#)), run(jobs(#"{"a": 2}"#))) == [.input])
    }

    // MARK: whole runs

    private struct Order: Job {
        static let kind = "order"
        var n: Int
    }

    private func run(
        _ steps: [(String, String)], awaited: String? = nil,
        _ body: @escaping @Sendable (Order, Context) async throws -> Verdict
    ) async -> RehearsalAnswer {
        var request = RehearsalRequest(id: 7, kind: "order", args: #"{"n": 1}"#)
        request.steps = steps.map { .init(name: $0.0, value: $0.1) }
        request.awaited = awaited
        return await RehearsedRun(request).run(Handler(Order.self, body: body))
    }

    @Test func `no step's work is done, and a wait is asked for with its input`() async {
        let answer = await run([("reserve", "3"), ("paid", #"{"value": 12}"#)], awaited: "ship 7") { _, context in
            let shelf = try await context.step("reserve") { () -> Int in
                Issue.record("it is done again"); return 0
            }
            let paid = try await context.event("paid", as: Int.self)
            #expect(shelf == 3 && paid == 12)
            context.progress(0.5)
            try await context.spawn(Order(n: 2))
            _ = try await context.event("ship", key: "\(context.id)", as: Bool.self)
            return .done
        }
        #expect(answer.answered == 2 && answer.end == .stopped)
        #expect(answer.waits == [RehearsalAsked(step: "paid", what: "signal", name: "paid", key: "")])
        #expect(answer.then == [RehearsalAsked(step: "ship 7", what: "signal", name: "ship", key: "7")])
    }

    @Test func `a handler that asks for steps at the same time goes on in the order of the record`() async {
        let answer = await run([("b", "1"), ("c", "1"), ("a", "1"), ("d", "1")]) { _, context in
            async let a = context.step("a") { 0 }
            async let b = context.step("b") { 0 }
            async let c = context.step("c") { 0 }
            _ = try await (a, b, c)
            try await context.step("d") { 0 }
            return .done
        }
        #expect(answer.answered == 4 && answer.end == .finished && answer.instead.isEmpty)
    }

    @Test
    func `values that do not fit, and arguments that do not decode, are told though the handler passes over them`()
        async
    {
        let answer = await run([("a", "\"text\"")]) { _, context in
            _ = try? await context.step("a") { 1 }
            return .done
        }
        #expect(answer.misfits.map(\.step) == ["a"])
        var request = RehearsalRequest(id: 7, kind: "order", args: #"{"m": 1}"#)
        request.steps = []
        let unread = await RehearsedRun(request).run(Handler(Order.self) { _, _ in .done })
        #expect(unread.end == .undecodable && unread.why?.contains("n is missing") == true)
    }
}
