import MillraceQueues
import Postgres
import Synchronization
import TestSupport
import Testing

/// The waiting jobs of a tenant go from one database to another, each exactly once, wherever the move is cut off.
@Suite struct JobMoveTests {
    private struct CutOff: Error {}

    /// Two databases, and what is in them.
    private struct World {
        let eu: TestDatabase
        let us: TestDatabase
        let here: Connection
        let there: Connection

        func move(behind: @escaping @Sendable (JobMove.Step) throws -> Void = { _ in }) async throws -> JobMove {
            var move = JobMove(
                tenant: "acme", source: "eu", target: "us", from: try await eu.connect(), to: try await us.connect())
            move.batch = 4
            move.behind = behind
            return move
        }

        func numbers(_ connection: Connection) async throws -> [String] {
            try await connection.column(
                "select args ->> 'n' from millrace.jobs where tenant = 'acme' and state in ('ready', 'scheduled') and kind = 'work' order by (args ->> 'n')::int"
            )
        }
    }

    private func withWorld(_ body: (World) async throws -> Void) async throws {
        try await withDatabase { eu in
            try await withDatabase { us in
                let world = World(eu: eu, us: us, here: try await eu.connect(), there: try await us.connect())
                try await world.here.run(
                    """
                    select millrace.enqueue('work', jsonb_build_object('n', n), tenant => 'acme', queue => 'q', priority => n % 3 + 3,
                        run_at => case when n % 4 = 0 then now() + interval '1 day' end, tags => case when n = 1 then array['a', 'b'] else '{}' end,
                        metadata => case when n = 1 then '{"m": 1}'::jsonb else '{}' end, options => case when n = 1 then '{"timeout": 5}'::jsonb else '{}' end,
                        max_attempts => n)
                      from generate_series(1, 10) n;
                    select millrace.enqueue('work', '{"n": 77}', tenant => 'beta')
                    """)
                try await body(world)
                await world.here.close()
                await world.there.close()
            }
        }
    }

    /// As if the process were killed behind its n-th step: the steps before it are done, and none after.
    private func cutting(behind steps: Int) -> @Sendable (JobMove.Step) throws -> Void {
        let left = Countdown(steps)
        return { _ in if left.isLast() { throw CutOff() } }
    }

    private final class Countdown: Sendable {
        private let left: Mutex<Int>

        init(_ steps: Int) { left = Mutex(steps) }

        func isLast() -> Bool {
            left.withLock { left in
                left -= 1
                return left == 0
            }
        }
    }

    private static let all = (1...10).map(String.init)

    @Test func `jobs come as they were, and others stay`() async throws {
        try await withWorld { world in
            try await world.here.run(
                """
                select millrace.enqueue('work', '{"n": 100}', tenant => 'acme', unique_key => 'one');
                select millrace.enqueue('work', '{"n": 102}', tenant => 'acme',
                    options => jsonb_build_object('after', array[millrace.enqueue('work', '{"n": 101}', tenant => 'acme')]))
                """)
            let report = try await world.move().run()
            #expect(report == JobMove.Report(state: .done, jobs: 10, left: 2))
            #expect(try await world.numbers(world.there) == Self.all)
            #expect(try await world.numbers(world.here) == ["100", "101"])
            #expect(try await world.here.int("select count(*) from millrace.jobs where tenant = 'beta'") == 1)
            #expect(
                try await world.there.value(
                    "select concat_ws(' ', tags::text, metadata::text, options::text, max_attempts) from millrace.job where args ->> 'n' = '1'"
                ) == #"{a,b} {"m": 1} {"timeout": 5} 1"#)
            #expect(
                try await world.there.int(
                    "select count(*) from millrace.jobs where state = 'scheduled' and run_at > now() + interval '23 h'")
                    == 2)
            #expect(try await world.here.int("select count(*) from millrace_move.departed") == 0)
            #expect(try await world.there.int("select count(*) from millrace_move.arrived") == 0)
        }
    }

    @Test(arguments: 1...28) func `cut off behind any step, a second call goes on, and each job is there once`(
        steps: Int
    ) async throws {
        try await withWorld { world in
            let first = try await world.move(behind: cutting(behind: steps))
            do { _ = try await first.run() } catch is CutOff {}
            // Some numbers of steps are more than there are: then it has ended, and the second call is a move of its own.
            // A job that comes meanwhile is taken along, or stays.
            try await world.here.run("select millrace.enqueue('work', '{\"n\": 11}', tenant => 'acme')")
            _ = try await world.move().run()
            let (here, there) = (try await world.numbers(world.here), try await world.numbers(world.there))
            #expect((here + there).sorted() == (Self.all + ["11"]).sorted(), "\(here) \(there)")
            #expect(Set(there).isSuperset(of: Self.all))
        }
    }

    @Test(arguments: 1...20) func `until it is decided it can be undone, and also that can be cut off`(steps: Int)
        async throws
    {
        try await withWorld { world in
            let first = try await world.move(behind: cutting(behind: steps))
            do { _ = try await first.run(holds: true) } catch is CutOff {}
            let second = try await world.move(behind: cutting(behind: steps % 5 + 1))
            do {
                _ = try await second.undo()
            } catch is CutOff {
                do { _ = try await world.move().undo() } catch let failure as JobMove.Failure {
                    #expect(failure.sentence.contains("is not on its way"), "it had ended")
                }
            }
            #expect(try await world.numbers(world.here) == Self.all)
            #expect(try await world.numbers(world.there).isEmpty)
            #expect(try await world.there.int("select count(*) from millrace_move.arrived") == 0)
            // And they run: a claim finds the ready ones.
            let report = try await world.move().run()
            #expect(report.jobs == 10)
            #expect(try await world.numbers(world.there) == Self.all)
        }
    }

    @Test func `what is decided cannot be undone, and what was undone takes nothing that comes late`() async throws {
        try await withWorld { world in
            let first = try await world.move { step in if step == .decided { throw CutOff() } }
            await #expect(throws: CutOff.self) { _ = try await first.run() }
            await #expect(throws: JobMove.Failure.self) { _ = try await world.move().undo() }
            _ = try await world.move().run()
            #expect(try await world.numbers(world.there) == Self.all)
        }
        try await withWorld { world in
            // It has read what to bring, and is held up; meanwhile another call undoes the move.
            let first = try await world.move { step in if step == .taken { throw CutOff() } }
            await #expect(throws: CutOff.self) { _ = try await first.run() }
            let move = try #require(
                try await MoveBooks.departures(of: "acme", onlyOpen: true, on: world.here).first)
            let late = try await MoveBooks.unstaged(move, most: 10, on: world.here)
            _ = try await world.move().undo()
            #expect(try await !MoveBooks.stage(late.contents, of: move, on: world.there))
            #expect(try await !MoveBooks.finish(move, on: world.here))
            #expect(try await MoveBooks.take(move, most: 10, on: world.here) == 0)
            #expect(try await MoveBooks.release(move, most: 10, on: world.there) == 0)
            #expect(try await world.numbers(world.here) == Self.all)
        }
    }

    @Test func `nothing is deleted that the target has lost`() async throws {
        try await withWorld { world in
            let first = try await world.move { step in if step == .arrived { throw CutOff() } }
            await #expect(throws: CutOff.self) { _ = try await first.run() }
            try await world.there.run(
                "delete from millrace_move.arrived where new_job = (select max(new_job) from millrace_move.arrived)")
            await #expect(throws: JobMove.Failure.self) { _ = try await world.move().run() }
            #expect(try await world.here.int("select count(*) from millrace_move.departed") > 0)
        }
    }

    @Test func `one database under two names is refused, and its jobs stay`() async throws {
        try await withWorld { world in
            let move = JobMove(
                tenant: "acme", source: "eu", target: "us", from: try await world.eu.connect(),
                to: try await world.eu.connect())
            await #expect(throws: JobMove.Failure.self) { _ = try await move.run() }
            #expect(try await world.numbers(world.here) == Self.all)
        }
    }
}
