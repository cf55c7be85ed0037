import Postgres
import TestSupport
import Testing

/// Operators who move a job, or begin it afresh, at the moment at which its run begins to wait.
@Suite struct MoveBesideWaitTests {
    enum Door: String, CaseIterable {
        case single, operation

        func call(on connection: Connection, _ job: Int, _ action: String, _ arguments: String) async throws -> String {
            switch self {
            case .single: return "select millrace.reschedule(\(job), '2090-01-01T00:00:00Z')"
            case .operation:
                _ = try await connection.start(action, "{\"ids\": [\(job)]}", arguments)
                return "select millrace.operation_step()"
            }
        }
    }

    /// 1. A run is in the middle of its work. 2. An operator's call has looked at the job, and stands before it takes the job out of its place.
    /// 3. The run does what `ends` says, and commits. 4. The call goes on.
    private static func cross(
        _ door: Door, _ action: String = "reschedule", _ arguments: String = #"{"run_at": "2090-01-01T00:00:00Z"}"#,
        ends: (Int) -> String, then body: (Connection, Int) async throws -> Void
    ) async throws {
        try await withDatabase { database in
            let worker = try await database.connect()
            let user = try await database.connect()
            let watcher = try await database.connect()
            let id = try await worker.claimedJob()
            try await worker.run(
                """
                create function public.stand() returns trigger language plpgsql as $$
                begin while not pg_try_advisory_xact_lock_shared(1) loop perform pg_sleep(0.01); end loop; return null; end $$;
                create trigger stand before delete on millrace.timer execute function public.stand();
                create trigger stand before update on millrace.blocked execute function public.stand();
                create trigger stand before insert on millrace.operation_item execute function public.stand();
                select pg_advisory_lock(1)
                """)
            let call = try await door.call(on: user, id, action, arguments)
            let process = try await user.process()
            let moves = Task { try await user.refusal(of: call) }
            try await eventually("the call stands") {
                try await watcher.bool("select wait_event = 'PgSleep' from pg_stat_activity where pid = \(process)")
            }
            try await worker.run(ends(id))
            try await worker.run("select pg_advisory_unlock(1)")
            _ = try await moves.value
            try await body(worker, id)
            for connection in [worker, user, watcher] { await connection.close() }
        }
    }

    @Test(arguments: Door.allCases)
    func `a run that begins to wait for a signal is not moved to a time, and hears the signal`(door: Door) async throws
    {
        let waits = { (id: Int) in "select millrace.wait('1-9-\(id)', 'paid', 'signal', '{\"name\": \"paid\"}')" }
        try await Self.cross(door, ends: waits) { worker, id in
            try await worker.run("select millrace.signal('paid'); select millrace.signals_tell()")
            #expect(try await worker.state(id) == "ready")
        }
    }

    @Test(arguments: Door.allCases)
    func `a run that begins to sleep sleeps until the time to which it is moved`(door: Door) async throws {
        let sleeps = { (id: Int) in "select millrace.wait('1-9-\(id)', 'nap', 'time', '{\"seconds\": 60}')" }
        try await Self.cross(door, ends: sleeps) { worker, id in
            let due = try await worker.value("select millrace.wait_of(\(id)) ->> 'due'")
            #expect(due?.hasPrefix("2090-01-01") == true)
            #expect(try await worker.int("select count(*) from millrace.timer where due > '2089-12-31'") == 1)
        }
    }

    @Test func `a run that has just done a step with an undo does not begin afresh`() async throws {
        let charges = { (id: Int) in
            """
            begin; select millrace.step_undoable('1-9-\(id)', 'charge', '1');
            select millrace.wait('1-9-\(id)', 'nap', 'time', '{"seconds": 60}'); commit
            """
        }
        try await Self.cross(.operation, "retry_fresh", "{}", ends: charges) { worker, id in
            let steps = try await worker.column("select name from millrace.steps(\(id))")
            #expect(steps == ["charge"])
            #expect(try await worker.state(id) == "scheduled")
            #expect(
                try await worker.value("select reason from millrace.operation_item where outcome = 3")?
                    .hasPrefix("job \(id) has done step 'charge'") == true)
        }
    }
}
