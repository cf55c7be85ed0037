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

    @Test func `jobs of a room stay with its rows`() async throws {
        try await withWorld { world in
            let kinds = try await world.here.column("select h.said from millrace.hooks_list('rows', must => true) h")
                .map { $0.replacing("%", with: "thing") }
            #expect(kinds.contains("mail.thing"))
            for kind in kinds {
                try await world.here.execute(
                    "select millrace.enqueue($1, '{\"row\": 1}', tenant => 'acme')", [.text(kind)])
            }
            try await world.here.run(
                "select millrace.mail_send(array['a@b.example'], 's', 't', tenant => 'acme')")
            let report = try await world.move().run()
            #expect(report == JobMove.Report(state: .done, jobs: 10, left: kinds.count + 1))
            #expect(try await world.there.int("select count(*) from millrace.job") == 10)
            // Its job is still the one that the mail waits for.
            #expect(
                try await world.here.int(
                    "select count(*) from millrace.mail m join millrace.jobs j on j.id = m.job where j.state = 'ready'")
                    == 1)
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

    /// Two calls at once: one is a process that was killed, whose statements the servers still carry out.
    @Test(arguments: 1...6) func `two calls of one move at once bring each job once`(batch: Int) async throws {
        try await withWorld { world in
            try await world.here.run(
                "select millrace.enqueue('work', jsonb_build_object('n', n), tenant => 'acme') from generate_series(11, 60) n"
            )
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 1...3 {
                    var move = try await world.move()
                    move.batch = batch
                    let one = move
                    group.addTask {
                        do { _ = try await one.run() } catch let failure as JobMove.Failure {
                            #expect(failure.sentence.contains("is not on its way"), "\(failure.sentence)")
                        }
                    }
                }
                try await group.waitForAll()
            }
            #expect(try await world.numbers(world.there) == (1...60).map(String.init))
            #expect(try await world.numbers(world.here).isEmpty)
            #expect(try await world.here.int("select count(*) from millrace_move.departed") == 0)
        }
    }

    /// The statement of a killed process holds the lock of the move, and ends behind the beginning of the next call.
    @Test(arguments: ["putBack", "release", "finish"]) func `a step that waited for an earlier call does nothing twice`(
        _ step: String
    ) async throws {
        try await withWorld { world in
            let first = try await world.move { step in if step == .taken { throw CutOff() } }
            await #expect(throws: CutOff.self) { _ = try await first.run() }
            let move = try #require(try await MoveBooks.departures(of: "acme", onlyOpen: true, on: world.here).first)
            let (jobs, contents) = try await MoveBooks.unstaged(move, most: 10, on: world.here)
            #expect(try await MoveBooks.stage(contents, of: move, on: world.there))
            try await MoveBooks.staged(jobs, of: move, on: world.here)
            switch step {
            case "putBack":
                #expect(try await MoveBooks.beginUndo(move, on: world.here))
                let putBack: @Sendable (Connection) async throws -> Int = {
                    try await MoveBooks.putBack(move, most: 2, on: $0)
                }
                #expect(try await overlapping(world.eu, in: "departed", putBack, then: putBack) == [2, 2])
            case "release":
                #expect(try await MoveBooks.finish(move, on: world.here))
                let release: @Sendable (Connection) async throws -> Int = {
                    try await MoveBooks.release(move, most: 2, on: $0)
                }
                #expect(try await overlapping(world.us, in: "arrived", release, then: release) == [2, 2])
                #expect(try await world.numbers(world.there).count == 4)
            default:
                // What the earlier call takes is not staged yet, so nothing is decided.
                let done = try await overlapping(
                    world.eu, in: "departed", { try await MoveBooks.take(move, most: 4, on: $0) },
                    then: { try await MoveBooks.finish(move, on: $0) ? 1 : 0 })
                #expect(done == [4, 0])
            }
        }
    }

    @Test func `a job that a run has put off stays`() async throws {
        try await withWorld { world in
            try await world.here.run(
                """
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes)
                select j.id, 1, 1, now(), now(), j.kind, j.queue, 1, 5, 1, 0 from millrace.job j where j.args ->> 'n' = '4'
                """)
            #expect(try await world.move().run() == JobMove.Report(state: .done, jobs: 9, left: 1))
            #expect(try await world.numbers(world.here) == ["4"])
        }
    }

    @Test func `a login that commits before it is on the disk does not do so here`() async throws {
        try await withWorld { world in
            let first = try await world.move()
            _ = try await first.run(holds: true)
            for connection in [world.here, world.there] {
                try await connection.run(
                    """
                    create table public.seen (setting text);
                    create function public.see() returns trigger language plpgsql as $$ begin
                        insert into public.seen values (current_setting('synchronous_commit')); return null;
                    end $$;
                    create trigger see after update on millrace_move.departure execute function public.see();
                    create trigger see after insert or update on millrace_move.arrived execute function public.see()
                    """)
            }
            let move = try await world.move()
            for connection in [move.from, move.to] { try await connection.run("set synchronous_commit = off") }
            _ = try await move.run()
            for connection in [world.here, world.there] {
                #expect(try await connection.column("select distinct setting from public.seen") == ["on"])
            }
        }
    }

    /// Holds the first where it has done its work and has not committed, until the second waits for it.
    private func overlapping(
        _ place: TestDatabase, in table: String, _ first: @escaping @Sendable (Connection) async throws -> Int,
        then second: @escaping @Sendable (Connection) async throws -> Int
    ) async throws -> [Int] {
        let (office, early, late) = (try await place.connect(), try await place.connect(), try await place.connect())
        try await office.run(
            """
            create function public.hold() returns trigger language plpgsql as $$ begin perform pg_advisory_xact_lock(77); return null; end $$;
            create constraint trigger hold after insert or update or delete on millrace_move.\(table) deferrable initially deferred
                for each row execute function public.hold();
            select pg_advisory_lock(77)
            """)
        let (earlyID, lateID) = (
            try await early.int("select pg_backend_pid()"), try await late.int("select pg_backend_pid()")
        )
        async let one = first(early)
        try await waitUntilBlocked(earlyID, seenBy: office)
        async let other = second(late)
        try await waitUntilBlocked(lateID, seenBy: office)
        try await office.run("select pg_advisory_unlock(77)")
        return [try await one, try await other]
    }
}
