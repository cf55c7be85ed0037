import MillraceQueues
import Postgres
import TestSupport
import Testing

/// What the database counts for collectors of metrics, beside the jobs.
@Suite struct MeasureTests {
    @Test func `the fleet is counted with the jobs: queues, workers, what nobody takes, schedules, storage`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.enqueue("'test', queue => 'mail'")
            for _ in 0..<3 { try await connection.enqueue("'strange', queue => 'mail'") }
            try await connection.run(
                """
                select millrace.pause('mail');
                select millrace.schedule_set('s', '@daily', 'test');
                select millrace.test_clock_advance('61 s')
                """)
            #expect(try await connection.measured("queue_paused").contains("{mail}=1"))
            #expect(try await connection.measured("jobs_unserved") == ["{strange}=3"])
            #expect(try await connection.measured("workers").contains("{silent}=1"))
            #expect(try await connection.measured("workers_slots") == ["=10"])
            #expect(try await connection.measured("schedules").contains("{overdue}=1"))
            #expect(try await connection.measured("room_workers").contains("{mail}=0") == Template.hasRooms)
            #expect(try await connection.measured("samples_age_seconds") == [], "nobody has sampled yet")
            try await connection.run("select millrace.sample_take(); select millrace.test_clock_advance('20 s')")
            // A sample stands at the beginning of its ten seconds.
            let age = try await connection.int(
                "select value::int from millrace.measures_fleet('0 s') where name = 'samples_age_seconds'")
            #expect((20...30).contains(age))
            #expect(try await connection.measured("storage_bytes").count > 5)
            #expect(
                try await connection.int(
                    "select min(value) from millrace.measures_fleet() where name = 'storage_job_ids'") > 0)
        }
    }

    @Test func `jobs and fleet are counted together, at most once in the time asked, and by one caller`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run("select from millrace.measures('10 s')")
            try await connection.run(
                "select millrace.register_queues(array['late']); select millrace.test_clock_advance('9 s')")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.measures_fleet('10 s') where name = 'queue_paused'") == 0)
            // The clock also runs by itself: on a busy machine the age is more than the nine seconds.
            let age = try await connection.int("select max(age_s)::int from millrace.measures_fleet('1 hour')")
            #expect((9...120).contains(age))
            try await connection.run("select millrace.test_clock_advance('2 s')")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.measures_fleet('10 s') where name = 'queue_paused'") == 1)
        }
    }

    @Test func `what an earlier version has counted is read as its jobs`() async throws {
        try await withConnection { connection in
            try await connection.run(
                #"update millrace.measured set at = millrace.now(), value = '[["q", "k", "ready", 3, null]]'"#)
            #expect(
                try await connection.records("select queue, kind, state, jobs from millrace.measures()") == [
                    "(q,k,ready,3)"
                ])
            #expect(try await connection.int("select count(*) from millrace.measures_fleet()") == 0)
        }
    }
}

extension Connection {
    /// Counted now: the labels and the whole number of each.
    fileprivate func measured(_ name: String) async throws -> [String] {
        try await column(
            "select coalesce(labels::text, '') || '=' || round(value) from millrace.measures_fleet('0 s') where name = '\(name)' order by 1"
        )
    }
}
