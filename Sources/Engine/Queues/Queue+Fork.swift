package import Postgres

/// A recorded step, and whether a fork has it.
package struct ForkedStep: Sendable, Equatable {
    package var name: String
    package var taken: Bool
}

/// Where a job was forked from, and what was forked from it.
package struct Forks: Sendable, Equatable {
    package struct One: Sendable, Equatable {
        package var job: Int64
        /// The first step that the fork does itself; nil: it has all that were on record.
        package var step: String?
    }

    package var origin: One?
    package var forks: [One] = []

    package init(origin: One? = nil, forks: [One] = []) {
        (self.origin, self.forks) = (origin, forks)
    }
}

extension Queue {
    /// Makes a job that begins with the steps that another has on record; returns its number.
    /// - Parameters:
    ///   - step: The first step that it does itself; nil: it has all that are on record.
    ///   - args: JSON text; nil: the other's.
    ///   - live: Also of a job that has not ended.
    package static func fork(
        _ id: Int64, from step: String? = nil, args: [UInt8]? = nil, queue: String? = nil, live: Bool = false,
        on connection: Connection
    ) async throws(PostgresError) -> Int64 {
        let rows = try await connection.query(
            "select millrace.fork($1, $2, $3::jsonb, $4, $5)",
            [
                .int8(id), .text(step), .text(args.map { String(decoding: $0, as: UTF8.self) }), .text(queue),
                .bool(live),
            ]
        ) { row throws(PostgresError) in try row.int(0) }
        return try one(rows)
    }

    /// The recorded steps of a job, in their order, and which of them a fork would have.
    package static func forkPreview(
        of id: Int64, from step: String?, live: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> [ForkedStep] {
        try await connection.query(
            "select name, taken from millrace.fork_preview($1, $2, $3)", [.int8(id), .text(step), .bool(live)]
        ) { row throws(PostgresError) in ForkedStep(name: try row.string(0), taken: try row.bool(1)) }
    }

    /// Gives a dead or cancelled job other arguments, and runs it again; an error when it is neither.
    /// - Parameter args: JSON text; "[redacted]" where what is hidden stays.
    package static func retry(
        _ id: Int64, with args: [UInt8], fresh: Bool, on connection: Connection
    ) async throws(PostgresError) {
        _ = try await connection.execute(
            "select millrace.retry_with($1, $2, $3)", [.int8(id), .json(args), .bool(fresh)])
    }

    package static func forks(of id: Int64, on connection: Connection) async throws(PostgresError) -> Forks {
        let rows = try await connection.query(
            """
            select f -> 'from' ->> 'job', f -> 'from' ->> 'step',
                   array(select x ->> 'job' from jsonb_array_elements(f -> 'as') x),
                   array(select coalesce(x ->> 'step', '') from jsonb_array_elements(f -> 'as') x)
              from millrace.forks_of($1) f
            """, [.int8(id)]
        ) { row throws(PostgresError) in
            let jobs = try row.strings(2).compactMap { Int64($0) }
            let steps = try row.strings(3)
            return Forks(
                origin: row.optionalString(0).flatMap { Int64($0) }.map {
                    Forks.One(job: $0, step: row.optionalString(1))
                },
                forks: zip(jobs, steps).map { Forks.One(job: $0, step: $1.isEmpty ? nil : $1) })
        }
        return try one(rows)
    }

    /// Sets what a step of a job has given. False: it has that value already.
    /// - Parameter adds: Also a step that no run has come to.
    package static func setStep(
        _ name: String, of id: Int64, to value: [UInt8], adds: Bool, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.step_set($1, $2, $3, $4)", [.int8(id), .text(name), .json(value), .bool(adds)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    /// Takes a step from the record.
    package static func forgetStep(
        _ name: String, of id: Int64, on connection: Connection
    ) async throws(PostgresError) {
        _ = try await connection.execute("select millrace.step_forget($1, $2)", [.int8(id), .text(name)])
    }
}
