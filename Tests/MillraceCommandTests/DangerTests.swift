import MillraceQueues
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// What slows the queue down or stops it from outside is named, with who it is and what helps.
@Suite struct DangerTests {
    private static func find(_ sort: DangerRow.Sort, on connection: Connection) async throws -> DangerRow? {
        try await Queue.dangers(on: connection).first { $0.sort == sort }
    }

    private static func named(_ application: String, in database: TestDatabase) async throws -> Connection {
        let connection = try await database.connect()
        try await connection.run("select set_config('application_name', '\(application)', false)")
        return connection
    }

    @Test func `a client that others wait for is named with the tables that it holds, and those who wait are not`()
        async throws
    {
        try await withDatabase { database in
            let office = try await database.connect()
            #expect(try await Self.find(.blocker, on: office) == nil)
            let holder = try await Self.named("deploy", in: database)
            try await holder.run("begin; lock table millrace.job in access exclusive mode")
            let waiter = try await Self.named("shop", in: database)
            async let done: Void = waiter.run("select millrace.enqueue('a')")
            try await eventually("it is named") {
                guard let row = try await Self.find(.blocker, on: office) else { return false }
                return row.owner.hasPrefix("deploy") && row.amount == 1 && row.detail == "idle in transaction|job"
            }
            let row = try #require(try await Self.find(.blocker, on: office))
            #expect(row.isAlarm && row.alarm == .heldUp)
            #expect(row.sentence.contains("1 session of this database waits for deploy"))
            #expect(row.sentence.hasSuffix("idle in transaction, and holds locks on job"))
            #expect(row.command == "psql -c 'select pg_terminate_backend(\(row.pid ?? 0))'")
            // The sections that wait for it are given up.
            let began = ContinuousClock.now
            let report = try await StatusReport.read(on: office, cap: 10, patience: .seconds(30))
            #expect(report.findings.contains { $0.alarm == .heldUp })
            #expect(began.duration(to: .now) < .seconds(20))
            try await holder.run("rollback")
            try await done
            try await eventually("nobody holds anything up") { try await Self.find(.blocker, on: office) == nil }
            for one in [office, holder, waiter] { await one.close() }
        }
    }

    @Test func `a client that has locked rows of the queue is named after some seconds, and one that enqueues is not`()
        async throws
    {
        try await withDatabase { database in
            let office = try await database.connect()
            try await office.run("select millrace.enqueue('a')")
            let holder = try await Self.named("support", in: database)
            try await holder.run("begin; select * from millrace.ready for update")
            let caller = try await Self.named("shop", in: database)
            try await caller.run("begin; select millrace.enqueue('b')")
            try await eventually("it is named", within: .seconds(60)) {
                try await Self.find(.rows, on: office)?.owner.hasPrefix("support") == true
            }
            let row = try #require(try await Self.find(.rows, on: office))
            #expect(row.detail == "idle in transaction|ready" && row.isAlarm)
            #expect(row.sentence.contains("has locked ready, or rows of it"))
            try await holder.run("rollback")
            #expect(try await Self.find(.rows, on: office) == nil, "who enqueues holds another lock")
            try await caller.run("rollback")
            for one in [office, holder, caller] { await one.close() }
        }
    }

    @Test func `a transaction with more than 64 subtransactions is named, and one with few is not`() async throws {
        try await withDatabase { database in
            let office = try await database.connect()
            let few = try await Self.named("few", in: database)
            let importer = try await Self.named("importer", in: database)
            for (session, count) in [(few, 20), (importer, 100)] {
                try await session.run("create temp table imported (n int); begin")
                try await session.run(
                    """
                    do $$ begin for n in 1..\(count) loop
                        begin insert into imported values (n); exception when division_by_zero then null; end;
                    end loop; end $$
                    """)
            }
            try await eventually("it is named when it has been open for a second") {
                try await Self.find(.subtransactions, on: office) != nil
            }
            let row = try #require(try await Self.find(.subtransactions, on: office))
            #expect(row.owner.hasPrefix("importer") && row.amount >= 100)
            #expect(row.sentence.contains(" subtransactions, more than the 64"))
            try await importer.run("rollback")
            // The other has been open for longer by now. Other tests may have such transactions, too.
            #expect(try await Self.find(.subtransactions, on: office)?.owner.hasPrefix("few") != true)
            try await few.run("rollback")
            for one in [office, few, importer] { await one.close() }
        }
    }

    @Test func `dead rows of the catalogue are named with their table`() {
        let row = DangerRow(.catalogue, owner: "pg_attribute", detail: "80 MB", amount: 112_500, age: 4000)
        #expect(row.sentence.hasPrefix("pg_attribute, 80 MB, has 112,500 dead rows beside 4,000 living"))
        #expect(row.command == "psql -c 'vacuum pg_catalog.pg_attribute'" && row.isAlarm)
    }

    @Test func `old row versions: what does nothing is named soon, and a query that takes long is not`() {
        func row(_ sort: DangerRow.Sort, _ detail: String, _ amount: Int, _ age: Double = 5) -> DangerRow {
            DangerRow(sort, pid: 7, owner: "report, ann", detail: detail, amount: amount, age: age)
        }
        #expect(!row(.transaction, "active", 900_000).isAlarm)
        #expect(row(.transaction, "active", 1_000_000).isAlarm)
        #expect(!row(.transaction, "idle in transaction", 19_999).isAlarm)
        #expect(row(.transaction, "idle in transaction", 20_000).isAlarm)
        #expect(!row(.prepared, "it's", 3).isAlarm && row(.prepared, "it's", 3).isWorthAWarning)
        #expect(row(.prepared, "it's", 3, 61).command == #"psql -c "rollback prepared 'it''s'""#)
        #expect(row(.slot, "unread", 100_000).isWorthAWarning && !row(.slot, "unread", 100_000).isAlarm)
        #expect(row(.slot, "unread", 1_000_000).command.contains("pg_drop_replication_slot('unread')"))
        #expect(row(.standby, "10.0.0.7", 1_000_000).sentence.contains("report, ann (10.0.0.7)"))
        #expect(!row(.transactionIDs, "", 400_000_000).isWorthAWarning && row(.multixacts, "", 1_000_000_000).isAlarm)
    }

    @Test func `doctor has a line for each, which is well when nothing is there`() {
        let well = Doctor.judge([
            DangerRow(.transaction, pid: 7, owner: "a", detail: "active", amount: 12, age: 1),
            DangerRow(.transactionIDs, owner: "db", amount: 10), DangerRow(.multixacts, owner: "db", amount: 0),
        ])
        #expect(well.map(\.0) == [.oldVersions, .subtransactions, .locks, .catalogue, .identifiers])
        #expect(well.allSatisfy { $0.1.word == "ok" })
        #expect(well[0].1.sentence == "those of the last 12 transactions are kept")
        let bad = Doctor.judge([
            DangerRow(.prepared, owner: "ann", detail: "forgotten", amount: 3, age: 5),
            DangerRow(.notify, owner: "chatter", amount: 150),
            DangerRow(.locks, pid: 9, owner: "analyst", detail: "1600 of 2700", amount: 1590),
        ])
        #expect(bad.map(\.1.word) == ["warning", "ok", "warning", "ok", "ok"])
        #expect(bad[0].1.advice == #"psql -c "rollback prepared 'forgotten'""#)
        #expect(bad[2].1.sentence.contains("chatter: 150") && bad[2].1.sentence.contains("1600 of 2700"))
    }

    @Test func `a copy on another server is named, until it is migrated there`() async throws {
        try await withDatabase { database in
            let office = try await database.connect()
            func line() async -> String {
                await millrace("doctor", "--database-url", database.url).output.split(separator: "\n")
                    .first { $0.contains(" origin: ") }.map(String.init) ?? ""
            }
            #expect(await line().hasPrefix("ok "))
            try await office.run("update millrace.setting set value = '1' where name = 'server'")
            let said = await line()
            #expect(said.hasPrefix("warning ") && said.contains("migrated on another server (1, and this is "))
            _ = try await Migrator.ofAllRooms().migrate(on: office)
            #expect(await line().hasPrefix("ok "))
            await office.close()
        }
    }
}
