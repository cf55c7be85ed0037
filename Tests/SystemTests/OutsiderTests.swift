import Foundation
import Postgres
import TestSupport
import Testing

/// A login without any grant, which holds every advisory lock that it can know of.
@Suite struct OutsiderTests {
    @Test func `a worker runs jobs and flows, and hears again, while an outsider holds every advisory lock`()
        async throws
    {
        let office = try await TestCluster.office()
        let role = TestCluster.name("outsider")
        try await office.run("create role \(role) login")
        try await withDatabase { database in
            let connection = try await database.connect()
            let outsider = try await database.connect(as: role)
            try await outsider.run(
                """
                select count(pg_advisory_lock(class, b)) from generate_series(1297239619, 1297239642) class, generate_series(0, 70) b;
                select count(pg_advisory_lock(class)) from generate_series(1297239619, 1297239642) class
                """)
            let worker = try await MillraceProcess.worker("w", database: database.url)
            let first = try await connection.int("select millrace.enqueue('practice.nothing')")
            let last = try await connection.int(
                "select millrace.enqueue('practice.nothing', options => '{\"after\": [\(first)]}')")
            try await eventually("both have run; it says: \(worker.output)") {
                try await connection.value("select state from millrace.job(\(last))") == "succeeded"
            }

            // 1. The outsider queues for the session's lock. 2. The worker loses the connection that holds it. 3. It hears all the same.
            let session = try await connection.int("select id from millrace.session")
            let thief = try await database.connect(as: role)
            let process = try await thief.process()
            async let stolen: Void = thief.run("select pg_advisory_lock(\(session))")
            try await waitUntilBlocked(process, seenBy: connection)
            let listener = try await connection.int(
                """
                select l.pid from pg_locks l
                 where l.locktype = 'advisory' and l.granted and l.objsubid = 1 and l.classid::bigint << 32 | l.objid::bigint = \(session)
                   and l.database = (select oid from pg_database where datname = current_database())
                """)
            try await connection.run("select pg_terminate_backend(\(listener))")
            try await stolen
            try await eventually("the worker listens again; it says: \(worker.output)") {
                try await connection.bool(
                    "select exists (select from pg_stat_activity where datname = current_database() and pid <> \(listener) and state = 'idle' and query ilike 'listen%')"
                )
            }
            #expect(try await connection.int("select count(*) from millrace.session") == 1)
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await thief.close()
            await outsider.close()
            await connection.close()
        }
        try await office.run("drop role \(role)")
        await office.close()
    }
}
