package import Postgres

/// A kind as operators see it: where its jobs go, by what they are found, and what of them is hidden.
package struct KindInfo: Sendable, Equatable {
    package var name: String
    package var queue: String?
    package var fields: [String]
    /// Fields whose older jobs are still being indexed.
    package var filling: [String]
    /// `program` or `operator`; nil: nobody has said anything.
    package var fieldsFrom: String?
    package var redactions: [String]
    /// Those of them that an operator set.
    package var redactionsSet: [String]
}

/// A field of a kind's arguments, and the value that it should have.
package struct FieldValue: Sendable, Equatable {
    package var name: String
    package var value: String

    package init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// Jobs that one look into the index of a field found.
package struct FieldPart: Sendable, Equatable {
    package var ids: [Int64]
    package var next: Int64?
    /// False while older jobs are still being indexed.
    package var isComplete: Bool
}

extension Queue {
    package static func kinds(on connection: Connection) async throws(PostgresError) -> [KindInfo] {
        try await connection.query(
            "select kind, queue, fields, filling, fields_from, redactions, redactions_set from millrace.kind_list()"
        ) { row throws(PostgresError) in
            KindInfo(
                name: try row.string(0), queue: row.optionalString(1), fields: try row.strings(2),
                filling: try row.strings(3), fieldsFrom: row.optionalString(4), redactions: try row.strings(5),
                redactionsSet: try row.strings(6))
        }
    }

    /// - Parameter fields: nil: as programs declare them.
    package static func setFields(
        _ fields: [String]?, of kind: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try one(
            try await connection.query("select millrace.kind_fields_set($1, $2)", [.text(kind), .texts(fields)]) {
                row throws(PostgresError) in try row.bool(0)
            })
    }

    /// - Parameter paths: nil: none, and what programs declared is forgotten until they start again.
    package static func setRedactions(
        _ paths: [String]?, of kind: String, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try one(
            try await connection.query("select millrace.kind_redactions_set($1, $2)", [.text(kind), .texts(paths)]) {
                row throws(PostgresError) in try row.bool(0)
            })
    }

    /// The names that are hidden in every kind.
    package static func redactions(on connection: Connection) async throws(PostgresError) -> [String] {
        try await connection.query("select n from millrace.redactions() n order by n") { row throws(PostgresError) in
            try row.string(0)
        }
    }

    /// - Parameter names: nil: the usual ones.
    package static func setRedactions(_ names: [String]?, on connection: Connection) async throws(PostgresError) -> Bool
    {
        try one(
            try await connection.query("select millrace.redactions_set($1)", [.texts(names)]) {
                row throws(PostgresError) in try row.bool(0)
            })
    }

    /// The jobs of a kind whose field has a value, newest first, below the id `after`.
    package static func jobs(
        of kind: String, with field: FieldValue, after: Int64?, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> FieldPart {
        try one(
            try await connection.query(
                "select ids, next, complete from millrace.jobs_by_field($1, $2, $3, $4, $5)",
                [
                    .text(kind), .text(field.name), .text(field.value), .int8(after), .int4(Int32(min(limit, page))),
                ]
            ) { row throws(PostgresError) in
                FieldPart(ids: try row.ints(0), next: try row.optionalInt(1), isComplete: try row.bool(2))
            })
    }
}
