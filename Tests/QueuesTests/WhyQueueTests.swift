import Postgres
import TestSupport
import Testing

/// Why a queue, a room or a schedule does not move, what a job waits for behind another, and what others are told of it.
@Suite struct WhyQueueTests {
    @Test func `a queue says what its oldest job waits for, and what to run`() async throws {
        try await withConnection(.movableClock) { connection in
            #expect(try await connection.whyQueue("mial") == nil)
            try await connection.run("select millrace.register_queues(array['mail'])")
            #expect(try await connection.whyQueue("mail") == "empty: nothing waits in mail")
            let later = try await connection.enqueue(
                "'test', queue => 'mail', run_at => millrace.now() + interval '1 hour'")
            #expect(
                try await connection.whyQueue("mail")?.hasPrefix("time: job \(later): its time has not come") == true)
            let tenant = try await connection.enqueue("'test', queue => 'mail', tenant => 'acme'")
            try await connection.run("select millrace.test_clock_advance('10 min')")
            _ = try await connection.enqueue("'test', queue => 'mail'")
            #expect(try await connection.whyQueue("mail") == "no_worker: job \(tenant): no worker is running")
            #expect(
                try await connection.records(
                    "select y ->> 'waiting', y ->> 'oldest_job', round((y ->> 'oldest_seconds')::numeric), y #>> '{chain,0}' from millrace.why_queue('mail') y"
                ) == ["(2,\(tenant),600,\"2 jobs in the queue mail are ready, the oldest for 10 min\")"])
            try await connection.run("select millrace.pause('mail')")
            #expect(
                try await connection.whyQueue("mail")?.hasPrefix("queue_paused: the queue mail has been paused since ")
                    == true
            )
            #expect(
                try await connection.value("select millrace.why_queue('mail') ->> 'command'")
                    == "millrace queues resume mail")
        }
    }

    @Test func `a job that waits for another says what holds that one up`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let first = try await connection.enqueue("'test', queue => 'slow'")
            let second = try await connection.int(
                "select millrace.enqueue('test', '{}', options => '{\"after\": {\"jobs\": [\(first)]}}')")
            let third = try await connection.int(
                "select millrace.enqueue('test', '{}', options => '{\"after\": {\"jobs\": [\(second)]}}')")
            try await connection.run("select millrace.pause('slow')")
            #expect(
                try await connection.records(
                    "select y ->> 'reason', y #>> '{root,job}', y #>> '{root,reason}', y ->> 'command' from millrace.why(\(third)) y"
                ) == ["(waits_for,\(first),queue_paused,\"millrace queues resume slow\")"])
            let chain = try await connection.column(
                "select jsonb_array_elements_text(millrace.why(\(third)) -> 'chain')")
            #expect(
                chain.prefix(5).map { $0.prefix(26) }
                    == [
                        "job \(third) (test) of the queue d", "it waits for job \(second) to end",
                        "job \(second) (test) of the queue d",
                        "it waits for job \(first) to end", "job \(first) (test) is ready in th",
                    ].map { $0.prefix(26) }, "\(chain)")
            #expect(chain.last == "to do: millrace queues resume slow", "\(chain)")
        }
    }

    @Test func `a worker that was refused is the reason why nobody takes its kind, until it lives`() async throws {
        try await withConnection { connection in
            let id = try await connection.enqueue()
            try await connection.run("select millrace.worker_refused('w', 'h', 1, '0.9', 10, '{test}', '{other}')")
            #expect(try await connection.why(id) == "no_worker: no worker is running")
            try await connection.run("select millrace.worker_refused('w', 'h', 1, '0.9', 10, '{test}', null)")
            let oldest = try await connection.int("select oldest_worker from millrace.schema_state()")
            #expect(
                try await connection.why(id)
                    == "worker_too_old: worker w on h (version 0.9) is too old to start: it speaks schema 10, and the database serves \(oldest) and later"
            )
            try await connection.run("select millrace.worker_refused('w', 'h', 1, '9.9', 9999, '{test}', null)")
            #expect(try await connection.why(id)?.hasPrefix("schema_too_old: ") == true)
            try await connection.openSession()
            #expect(try await connection.why(id) == "next: it is next in line")
            #expect(try await connection.int("select count(*) from millrace.refused_worker") == 1)
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `rooms and schedules say it too, and where nothing is the matter`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            for room in ["notices", "webhooks", "check-ins", "documents", "mail"] {
                #expect(try await connection.whyQueue(room) == "empty: nothing waits in \(room)")
            }
            try await connection.run("select millrace.notice_send('anna', 'k')")
            #expect(
                try await connection.whyQueue("notices")?.hasPrefix("room_unserved: notice ") == true)
            try await connection.run(
                """
                select millrace.session_open(1, 'w', 'h', 1, '0', null, '{}', 1, false, '{"notices": "on"}');
                select millrace.webhook_add('https://a.example/', '{*}', handshake => false);
                select millrace.event_publish('a.b', '/t', '{}');
                select millrace.webhook_fan_out();
                select millrace.schedule_set('nightly', '0 2 * * *', 'test');
                """)
            #expect(try await connection.whyQueue("notices")?.hasPrefix("next: notice ") == true)
            #expect(try await connection.whyQueue("webhooks")?.hasPrefix("room_unserved: an event waits for") == true)
            #expect(
                try await connection.whyQueue("nightly")?.hasPrefix("time: the schedule nightly fires next") == true)
            try await connection.run("select millrace.test_clock_advance('10 min')")
            #expect(try await connection.whyQueue("nightly")?.hasPrefix("schedule_overdue: ") == true)
        }
    }

    @Test func `a run on a worker that went silent, and an end that was no success, have a reason`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            let id = try await connection.enqueue()
            try await connection.claim()
            #expect(try await connection.why(id) == nil)
            try await connection.run("select millrace.beat(1, 'working', 1, 0, 1)")
            #expect(try await connection.why(id)?.hasPrefix("worker_stuck: ") == true)
            try await connection.run("select millrace.beat(1, 'cut off', 1, 0, 0)")
            #expect(try await connection.why(id)?.hasPrefix("worker_cut_off: ") == true)
            try await connection.run("select millrace.test_clock_advance('9 s')")
            #expect(try await connection.why(id)?.hasPrefix("worker_frozen: ") == true)
            try await connection.finish([.init(id: id, outcome: 3, error: "no such user 7")], complete: [9: 1])
            #expect(try await connection.why(id) == "dead: it died at attempt 1: no such user #")
            let other = try await connection.enqueue()
            try await connection.run("select millrace.cancel(\(other))")
            #expect(try await connection.why(other)?.hasPrefix("cancelled: it was cancelled at ") == true)
        }
    }

    @Test func `an old snapshot is blamed where workers have room, and not where jobs of the queue run`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let pin = try await database.connect("pin")
            try await pin.run("begin isolation level repeatable read; select from millrace.job")
            try await connection.openSession()
            let first = try await connection.enqueue()
            let second = try await connection.enqueue()
            #expect(try await connection.why(first) == "next: it is next in line")
            try await connection.run(
                "select millrace.test_clock_advance('5 min'), millrace.beat(1, 'working', 1, 0, 0)")
            #expect(try await connection.why(first)?.hasPrefix("snapshot_pinned: a transaction (pid ") == true)
            #expect(try await connection.why(second)?.hasPrefix("snapshot_pinned: ") == true)
            #expect(try await connection.claim(wanted: 1) == [first])
            #expect(try await connection.why(second) == "next: it is next in line")
            await pin.close()
            await connection.close()
        }
    }

    @Test func `a client is told nothing of other tenants, kinds, jobs and workers`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)', 'mine', 'default')")
            let client = try await database.connect(as: roles.client)
            let id = try await client.enqueue("'mine'")
            try await owner.run(
                """
                select millrace.worker_refused('secret-worker', 'secret-host', 1, '0.9', 10, '{mine}', null);
                """)
            #expect(try await client.why(id)?.hasPrefix("worker_too_old: ") == true)
            func secrets() async throws -> Bool {
                let said = try await client.value("select millrace.why(\(id))::text") ?? "nothing"
                return said.contains("secret") || said == "nothing"
            }
            #expect(try await !secrets())
            try await owner.run("select millrace.register_kinds('{mine,secret.kind}', array[null, null]::text[])")
            for _ in 0..<3 { try await owner.enqueue("'secret.kind', tenant => 'secret', priority => 0") }
            try await owner.run(
                """
                select millrace.session_open(1, 'secret-worker', 'secret-host', 1, '0', null, array(select id from millrace.kind), 3, false);
                """)
            try await owner.claim(kinds: ["secret.kind"])
            try await owner.run("select millrace.beat(1, 'working', 3, 0, 0)")
            #expect(try await client.why(id)?.hasPrefix("workers_full: ") == true)
            #expect(try await owner.why(id)?.hasPrefix("tenant_share: ") == true)
            #expect(try await !secrets())
            try await owner.run("select millrace.limit_set('queue', 'default', '{\"concurrency\": 0}')")
            #expect(try await client.why(id)?.hasPrefix("queue_limit: ") == true)
            for state in ["draining", "cut off"] {
                try await owner.run("select millrace.beat(1, '\(state)', 3, 0, 0)")
                #expect(try await !secrets())
            }
            try await owner.run("select millrace.test_clock_advance('1 min')")
            #expect(try await client.why(id)?.hasPrefix("worker_frozen: ") == true)
            #expect(try await !secrets())
            #expect(try await client.refusal(of: "select millrace.why_queue('default')")?.sqlState == "42501")
            #expect(try await client.refusal(of: "select millrace.why_of(\(id), true, 0)")?.sqlState == "42501")
            await client.close()
        }
    }
}

extension Connection {
    /// `reason: sentence`.
    func why(_ job: Int) async throws -> String? {
        try await value("select y ->> 'reason' || ': ' || (y ->> 'sentence') from (select millrace.why(\(job)) as y) w")
    }

    fileprivate func whyQueue(_ name: String) async throws -> String? {
        try await value(
            "select y ->> 'reason' || ': ' || (y ->> 'sentence') from (select millrace.why_queue('\(name)') as y) w")
    }
}
