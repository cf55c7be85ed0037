package import FoundationEssentials
package import Postgres

/// Rolls families over their midnights, a batch in each transaction, until nothing is due. Several services may run: none gets a row that
/// another holds.
package actor QuestService {
    package static let kind = "quests.rollover"
    package static let queue = "quests"

    package struct Tally: Sendable, Equatable {
        package var families = 0
        package var days = 0
        package var failed = 0
        /// Ends of days that a new time-zone database has moved.
        package var moved = 0
        package var nextAt: Date?

        package init() {}
    }

    /// Families in a transaction. `millrace load quests --batch N` shows what others' completions wait beside it.
    package static let usualBatch = 100

    private let pool: Pool
    private let batch: Int32

    package init(pool: Pool, batch: Int = usualBatch) {
        self.pool = pool
        self.batch = Int32(clamping: batch)
    }

    package func run() async throws -> Tally {
        var tally = Tally()
        tally.moved = try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query("select millrace.quest_zones_check()", deadline: .seconds(120)) {
                row throws(PostgresError) in Int(try row.int(0))
            }.first ?? 0
        }
        while true {
            try Task.checkCancellation()
            let step = try await pool.withConnection { @Sendable connection throws(PostgresError) -> Tally in
                try await self.step(on: connection)
            }
            tally.families += step.families
            tally.days += step.days
            tally.failed += step.failed
            tally.nextAt = step.nextAt
            if step.families == 0 { return tally }
        }
    }

    /// One transaction.
    private nonisolated func step(on connection: Connection) async throws(PostgresError) -> Tally {
        try await connection.query(
            "select families, days, failed, next_at from millrace.quest_rollover($1)", [.int4(batch)],
            deadline: .seconds(60)
        ) { row throws(PostgresError) in
            var tally = Tally()
            tally.families = Int(try row.int(0))
            tally.days = Int(try row.int(1))
            tally.failed = Int(try row.int(2))
            tally.nextAt = try row.optionalDate(3)
            return tally
        }.first ?? Tally()
    }
}
