package import Postgres

/// A key that encrypted jobs need; counts stop at a cap.
package struct SealedKey: Sendable, Equatable {
    package var id: String
    /// Jobs that have not ended.
    package var living: Int
    package var ended: Int

    package init(id: String, living: Int, ended: Int) {
        self.id = id
        self.living = living
        self.ended = ended
    }
}

/// A job whose arguments are encrypted with another key than they should be.
package struct SealedJob: Sendable {
    package var id: Int64
    package var kind: String
    package var args: [UInt8]

    package init(id: Int64, kind: String, args: [UInt8]) {
        self.id = id
        self.kind = kind
        self.args = args
    }
}

extension Queue {
    /// - Parameter cap: nil counts everything.
    package static func sealedKeys(
        cap: Int?, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [SealedKey] {
        try await connection.query(
            "select key, living, ended from millrace.sealed_keys($1)", [.int4(cap.map { Int32(clamping: $0) })],
            deadline: deadline
        ) { row throws(PostgresError) in
            SealedKey(id: try row.string(0), living: Int(try row.int(1)), ended: Int(try row.int(2)))
        }
    }

    /// The next jobs that are encrypted with another key than `key`, in order of key and id.
    package static func sealedPage(
        notBy key: String, afterKey: String, afterID: Int64, limit: Int, on connection: Connection,
        deadline: Duration? = nil
    ) async throws(PostgresError) -> [SealedJob] {
        try await connection.query(
            "select id, kind, args from millrace.sealed_page($1, $2, $3, $4)",
            [.text(key), .text(afterKey), .int8(afterID), .int4(Int32(clamping: limit))], deadline: deadline
        ) { row throws(PostgresError) in
            SealedJob(id: try row.int(0), kind: try row.string(1), args: try row.json(2))
        }
    }

    /// Replaces encrypted arguments if they have not changed meanwhile; returns the jobs for which they had not.
    package static func reseal(
        _ changes: [(old: SealedJob, new: [UInt8])], on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> Set<Int64> {
        func texts(_ args: [[UInt8]]) -> Parameter { .texts(args.map { String(decoding: $0, as: UTF8.self) }) }
        let rows = try await connection.query(
            "select unnest(millrace.reseal($1, $2::text[]::jsonb[], $3::text[]::jsonb[]))",
            [.int8s(changes.map(\.old.id)), texts(changes.map(\.old.args)), texts(changes.map(\.new))],
            deadline: deadline
        ) { row throws(PostgresError) in try row.int(0) }
        return Set(rows)
    }
}
