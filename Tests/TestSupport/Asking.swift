package import Postgres

/// Tests may paste: what they paste is their own. Everything else goes through parameters.
extension SQL {
    package static func pasted(_ text: String) -> SQL {
        .shipped(Array(text.utf8))
    }
}

extension Connection {
    /// Runs a script for its effect.
    package func run(_ sql: String) async throws(PostgresError) {
        try await run(script: .pasted(sql), deadline: .seconds(60))
    }

    /// The one value of a select, as text.
    package func value(_ select: String) async throws(PostgresError) -> String? {
        try await query(.pasted("select (\(select))::text"), deadline: .seconds(60)) { row throws(PostgresError) in
            row.optionalString(0)
        }.first ?? nil
    }

    package func int(_ select: String) async throws(PostgresError) -> Int {
        guard let value = try await value(select), let number = Int(value) else {
            throw .undecodable(column: 0, expected: "an integer")
        }
        return number
    }

    package func bool(_ select: String) async throws(PostgresError) -> Bool {
        try await value(select) == "true"
    }

    /// The only column of a select, as text.
    package func column(_ select: String) async throws(PostgresError) -> [String] {
        try await query(.pasted("select q.x::text from (\(select)) q(x)"), deadline: .seconds(60)) {
            row throws(PostgresError) in row.optionalString(0) ?? "null"
        }
    }

    /// Each row of a select as Postgres prints it: `(1,ready,)`.
    package func records(_ select: String) async throws(PostgresError) -> [String] {
        try await query(.pasted("select q::text from (\(select)) q"), deadline: .seconds(60)) {
            row throws(PostgresError) in row.optionalString(0) ?? "null"
        }
    }

    /// The error a statement ends with; nil when it does not.
    package func refusal(of sql: String) async throws(PostgresError) -> PostgresError.ServerError? {
        do {
            try await run(sql)
            return nil
        } catch .server(let error) {
            return error
        }
    }

    /// How many pages a statement touches, with all that its functions do. A session that has planned it before reads no catalogue for that.
    package func pages(_ statement: String) async throws(PostgresError) -> Int {
        let plan =
            try await query(
                .pasted("explain (analyze, buffers, format json) \(statement)"), deadline: .seconds(60)
            ) { row throws(PostgresError) in
                row.optionalString(0) ?? ""
            }.first ?? ""
        var pages = 0
        for kind in ["Shared Hit Blocks", "Shared Read Blocks"] {
            guard let place = plan.firstRange(of: "\"\(kind)\": ") else { continue }
            pages += Int(plan[place.upperBound...].prefix(while: \.isNumber)) ?? 0
        }
        return pages
    }

    /// The number of the server process behind it.
    package func process() async throws(PostgresError) -> Int {
        try await int("select pg_backend_pid()")
    }
}
