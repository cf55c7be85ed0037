import Fakes
import Postgres
import TestSupport
import Testing

@testable import AI

/// One question, or one batch, after its provider was down.
@Suite struct AIRecoveryTests {
    @Test func `a lone question is answered within seconds of its next try, and waiting costs no try and no call`()
        async throws
    {
        try await withAI(template: .movableClock) { bench in
            try await bench.configure()
            let id = try await bench.ask()
            let outage = try await ProviderOutage(of: "openai", in: bench.database, on: bench.connection)
            let job = try await bench.connection.int("select job from millrace.ai_question")
            let waits = try await bench.withWorker(supervisor: outage.supervisor) {
                try await Self.waits(of: job, after: outage, bench) { try await bench.status(id) == "answered" }
            }
            #expect(waits.count >= 1 && waits.dropFirst().reduce(.zero, +) <= .seconds(5), "\(waits)")
            #expect(bench.fake.asked.count == 1)
            #expect(try await bench.connection.int("select calls from millrace.ai_question") == 1)
            #expect(try await bench.connection.int("select attempt from millrace.jobs where id = \(job)") == 1)
            #expect(try await bench.connection.value("select reason from millrace.ai_question") == nil)
        }
    }

    @Test func `a lone batch is sent within seconds of its next try`() async throws {
        try await withAI(template: .movableClock) { bench in
            try await bench.configureBatches(false)
            try await bench.askLater("a long day")
            try await bench.gather()
            let outage = try await ProviderOutage(of: "openai", in: bench.database, on: bench.connection)
            let waits = try await bench.withWorker(supervisor: outage.supervisor) {
                try await eventually("there is a batch") {
                    try await bench.connection.int("select count(*) from millrace.ai_batch") == 1
                }
                let job = try await bench.connection.int(
                    "select id from millrace.jobs where kind = 'ai.batch' and args ? 'batch'")
                return try await Self.waits(of: job, after: outage, bench) { bench.fake.batches.count == 1 }
            }
            #expect(waits.count >= 1 && waits.dropFirst().reduce(.zero, +) <= .seconds(5), "\(waits)")
        }
    }

    @Test func `what is to be deleted at a provider is deleted within seconds of its next try, and waiting is no try`()
        async throws
    {
        try await withAI(template: .movableClock) { bench in
            try await bench.configureBatches(false)
            try await bench.connection.run(
                """
                insert into millrace.ai_leftover (provider, remote, what, since, due_at)
                values ('openai', 'file-1', 'file', millrace.now(), millrace.now())
                """)
            let outage = try await ProviderOutage(of: "openai", in: bench.database, on: bench.connection)
            try await bench.connection.run("select millrace.ai_forget_enqueue('openai')")
            let job = try await bench.connection.int("select id from millrace.jobs where kind = 'ai.forget'")
            let waits = try await bench.withWorker(supervisor: outage.supervisor) {
                try await Self.waits(of: job, after: outage, bench) {
                    let tries = try await bench.connection.column("select tries::text from millrace.ai_leftover")
                    #expect(tries == ["0"] || tries.isEmpty)
                    return tries.isEmpty
                }
            }
            #expect(waits.count >= 1 && waits.dropFirst().reduce(.zero, +) <= .seconds(5), "\(waits)")
        }
    }

    /// The pauses of a job that is run again exactly when it has said, until `isDone`.
    private static func waits(
        of job: Int, after outage: ProviderOutage, _ bench: AIBench, until isDone: () async throws -> Bool
    ) async throws -> [Duration] {
        let rests = "select state = 'scheduled' and run_at > millrace.now() from millrace.jobs where id = \(job)"
        let runs = "select count(*) from millrace.history where id = \(job)"
        var before: Int?
        return try await outage.tries {
            if let before {
                try await bench.connection.run("select millrace.reschedule(\(job), millrace.now())")
                try await eventually("it has run again") {
                    if try await isDone() { return true }
                    return try await bench.connection.int(runs) > before
                }
            }
            try await eventually("the job rests, or has done its work") {
                if try await isDone() { return true }
                return try await bench.connection.bool(rests)
            }
            if try await isDone() { return nil }
            before = try await bench.connection.int(runs)
            let wait = try await bench.connection.value(
                "select extract(epoch from run_at - millrace.now()) from millrace.jobs where id = \(job)")
            return .seconds(max(0.001, wait.flatMap { Double($0) } ?? 0))
        }
    }
}
