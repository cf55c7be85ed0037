import Foundation
import Postgres
import TestSupport
import Testing

@Suite struct FlowProcessTests {
    /// One job makes many, one waits for them all, and workers are killed meanwhile; prints what their memory came to.
    @Test func `a fan-out and fan-in goes on exactly once, though workers are killed`() async throws {
        let children = Int(ProcessInfo.processInfo.environment["FLOW_CHILDREN"] ?? "") ?? 5000
        try await withDatabase { database in
            let connection = try await database.connect()
            var workers: [Supervised] = []
            for number in 1...3 {
                let keeper = Supervised { life in
                    try await MillraceProcess.worker("w\(number)-\(life)", database: database.url, slots: 200)
                }
                try await keeper.begin()
                workers.append(keeper)
            }
            try await connection.run("select millrace.enqueue('practice.fan', '{\"children\": \(children)}')")
            var random = SystemRandomNumberGenerator()
            var kills = 0
            var most = 0
            let deadline = ContinuousClock.now + .seconds(120 + children / 200)
            let last = """
                select count(*) from millrace.history h join millrace.kind k on k.id = h.kind
                 where k.name = 'practice.gather' and h.outcome = 1
                """
            while try await connection.int(last) == 0 {
                try #require(ContinuousClock.now < deadline, "not done in time")
                for worker in workers { most = max(most, await worker.residentKilobytes) }
                // While children run: that the last one is killed too would prove nothing about starting once.
                let left = try await connection.int(
                    "select count(*) from (select from millrace.edge e where e.outcome is null limit 1000) x")
                if kills < 4, left == 1000 {
                    await workers[Int.random(in: 0..<3, using: &random)].kill()
                    kills += 1
                }
                try await Task.sleep(for: .milliseconds(Int.random(in: 300...900, using: &random)))
            }
            for worker in workers { try await worker.stop() }
            let ends = try await connection.records(
                """
                select k.name, count(distinct h.id), count(*) filter (where h.outcome = 1) from millrace.history h join millrace.kind k on k.id = h.kind
                 where h.outcome = 1 group by k.name order by k.name
                """)
            #expect(
                ends == ["(practice.child,\(children),\(children))", "(practice.fan,1,1)", "(practice.gather,1,1)"])
            let runs = try await connection.int(
                """
                select count(*) from millrace.history h join millrace.kind k on k.id = h.kind where k.name = 'practice.gather'
                """)
            #expect(runs == 1)
            let sum = children * (children + 1) / 2
            #expect(
                try await connection.value(
                    """
                    select result ->> 'children' || '/' || (result ->> 'sum') from millrace.jobs
                     where kind = 'practice.gather' and state = 'succeeded'
                    """) == "\(children)/\(sum)")
            #expect(try await connection.int("select count(*) from millrace.blocked") == 0)
            #expect(try await connection.int("select count(*) from millrace.ending") == 0)
            print("1 → \(children) → 1 with \(kills) kills; the largest worker had \(most / 1024) MB")
            await connection.close()
        }
    }

    @Test func `a flow is shown as a tree, cancelled and run again from the command line`() async throws {
        try await withDatabase { database in
            func millrace(_ arguments: String...) async throws -> (code: Int32, output: String) {
                let process = try MillraceProcess(arguments, database: database.url)
                return (try await process.ended(), process.output)
            }
            #expect(try await millrace("enqueue", "practice.nothing").output.contains("1"))
            let connection = try await database.connect()
            let first = try await connection.int("select max(id) from millrace.job")
            #expect(try await millrace("enqueue", "practice.nothing", "--after", "\(first)").code == 0)
            let second = try await connection.int("select max(id) from millrace.job")
            let shown = try await millrace("jobs", "show", "\(second)")
            let tree = shown.output.contains("flow") && shown.output.contains("\(first) practice.nothing")
            #expect(tree, "\(shown.output)")
            #expect(try await millrace("jobs", "cancel", "\(first)", "--flow").output.contains("cancelled 2 jobs"))
            #expect(try await millrace("jobs", "retry", "\(second)", "--flow").output.contains("retried 2 jobs"))
            let worker = try await MillraceProcess.worker("one", database: database.url)
            try await eventually("both have succeeded") {
                try await connection.int("select count(*) from millrace.history where outcome = 1") == 2
            }
            worker.signal(SIGTERM)
            _ = try await worker.ended()
            #expect(try await millrace("enqueue", "practice.nothing", "--after", "99999999").code == 3)
            #expect(try await millrace("enqueue", "practice.nothing", "--starts", "ended").code == 2)
            await connection.close()
        }
    }
}
