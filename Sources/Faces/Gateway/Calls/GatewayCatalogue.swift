import JSON
package import Postgres
import Synchronization
package import Telemetry

/// The functions that apps may call: those that the clients' role may execute, as the database says itself. Read when it is first needed,
/// and again when the schema changes.
package final class GatewayCatalogue: Sendable {
    package struct Contents: Sendable {
        package var doors: [String: GatewayDoor] = [:]
        /// Grows with each reading that found something else.
        package var edition = 0
        var isStale = false
    }

    private let pool: Pool
    private let role: String
    private let log: Log
    /// Read at each call, so it stands behind a lock and not in an actor.
    private let known = Mutex<Contents?>(nil)
    private let reading: CatalogueReading
    /// The description of this edition: everybody may ask for it, so it is made once.
    private let described = Mutex<(edition: Int, document: StoredDocument)?>(nil)

    package init(pool: Pool, role: String, log: Log) {
        self.pool = pool
        self.role = role
        self.log = log
        reading = CatalogueReading()
    }

    package func contents() async throws -> Contents {
        if let known = known.withLock({ $0 }), !known.isStale { return known }
        return try await refresh()
    }

    package func door(_ name: String) async throws -> GatewayDoor? { try await contents().doors[name] }

    func description(_ describe: (Contents) -> String) async throws -> StoredDocument {
        let contents = try await contents()
        if let known = described.withLock({ $0 }), known.edition == contents.edition { return known.document }
        let document = StoredDocument(describe(contents))
        described.withLock { $0 = (contents.edition, document) }
        return document
    }

    /// A function that was listed is not there: the next call reads the list again.
    func forget() { known.withLock { $0?.isStale = true } }

    /// Reads the list; several callers at once share one reading.
    @discardableResult
    package func refresh() async throws -> Contents {
        let doors = try await reading.join { [self] in try await read() }
        return known.withLock { known in
            var next = known ?? Contents()
            next.isStale = false
            if next.doors != doors || next.edition == 0 {
                next.doors = doors
                next.edition += 1
            }
            known = next
            return next
        }
    }

    private func read() async throws -> [String: GatewayDoor] {
        let rows = try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select d.name, d.arguments::text, d.result::text, d.comment from millrace.gateway_doors($1) d",
                [.text(role)]
            ) { row throws(PostgresError) in
                (
                    name: try row.string(0), arguments: try row.string(1), result: try row.string(2),
                    comment: row.optionalString(3)
                )
            }
        }
        var doors: [String: GatewayDoor] = [:]
        for row in rows {
            let door = GatewayDoor(
                name: row.name, arguments: try JSONValue.read(row.arguments), result: try JSONValue.read(row.result),
                comment: row.comment)
            if let door {
                doors[row.name] = door
            } else if known.withLock({ $0 == nil }) {
                log.warning("a function of apps takes a type that no call can give", [("function", row.name)])
            }
        }
        return doors
    }
}

/// One reading at a time, for all who want it.
private actor CatalogueReading {
    private var task: Task<[String: GatewayDoor], any Error>?

    func join(
        _ read: @escaping @Sendable () async throws -> [String: GatewayDoor]
    ) async throws -> [String: GatewayDoor] {
        if let task { return try await task.value }
        let task = Task { try await read() }  // it ends with the reading, also when those that wait have gone
        self.task = task
        defer { self.task = nil }
        return try await task.value
    }
}
