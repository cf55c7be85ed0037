package import FoundationEssentials
package import Postgres

/// A provider as the fleet sees it.
package struct ProviderRow: Sendable, Equatable {
    package var provider, name, state: String
    package var generation: Int64
    package var reason, forcedBy: String?
    package var until: Date?
    /// How far the ramp is, in seconds since it began.
    package var ramp: Double?
    package var probesOut, ok, failed, throttled, slow, unknown: Int
    package var p50, p99, rate: Double?
    package var quotaUsed, quotaLimit: Int64?
    package var quotaResetsAt: Date?
    package var changedAt: Date
    package var now: Date
}

package struct ProviderEvent: Sendable {
    package var at: Date
    package var name, from, to: String
    package var generation: Int64
    package var by: String
    package var reason: String?
}

/// One worker's report about a provider.
package struct ProviderWorker: Sendable {
    package var worker, name: String
    package var ok, failed, throttled, slow, unknown: Int
    /// Why its own breaker is open.
    package var vote: String?
    package var seenAt: Date
}

package struct FlagRow: Sendable {
    package var name: String
    package var percent: Int
    package var always: [String]
    package var reason: String?
    package var changedBy: String
    package var changedAt: Date
}

/// The operators' side of providers and flags.
package enum Providers {
    /// All providers, or one; those that are not being called come first.
    package static func list(
        _ provider: String? = nil, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [ProviderRow] {
        try await connection.query(
            """
            select provider, class, state, generation, reason, forced_by, until, ramp, probes_out, ok, failed, throttled, slow, unknown,
                   p50_ms, p99_ms, rate, quota_used, quota_limit, quota_resets_at, changed_at, millrace.now()
              from millrace.providers
             where ($1::text is null or provider = $1)
             order by state = 'closed', provider, class limit 1000
            """, [.text(provider)], deadline: deadline
        ) { row throws(PostgresError) in
            ProviderRow(
                provider: try row.string(0), name: try row.string(1), state: try row.string(2),
                generation: try row.int(3), reason: row.optionalString(4), forcedBy: row.optionalString(5),
                until: try row.optionalDate(6), ramp: row.optionalDouble(7), probesOut: Int(try row.int(8)),
                ok: Int(try row.int(9)), failed: Int(try row.int(10)), throttled: Int(try row.int(11)),
                slow: Int(try row.int(12)), unknown: Int(try row.int(13)), p50: row.optionalDouble(14),
                p99: row.optionalDouble(15), rate: row.optionalDouble(16), quotaUsed: try row.optionalInt(17),
                quotaLimit: try row.optionalInt(18), quotaResetsAt: try row.optionalDate(19),
                changedAt: try row.date(20), now: try row.date(21))
        }
    }

    /// The newest first.
    package static func history(
        of provider: String, limit: Int, on connection: Connection
    ) async throws(PostgresError) -> [ProviderEvent] {
        try await connection.query(
            """
            select at, class, from_state, to_state, generation, by, reason from millrace.provider_events
             where provider = $1 order by at desc, generation desc limit $2
            """, [.text(provider), .int8(Int64(limit))]
        ) { row throws(PostgresError) in
            ProviderEvent(
                at: try row.date(0), name: try row.string(1), from: try row.string(2), to: try row.string(3),
                generation: try row.int(4), by: try row.string(5), reason: row.optionalString(6))
        }
    }

    package static func workers(
        of provider: String, on connection: Connection
    ) async throws(PostgresError) -> [ProviderWorker] {
        try await connection.query(
            """
            select worker, class, ok, failed, throttled, slow, unknown, vote, seen_at from millrace.provider_workers($1)
            """, [.text(provider)]
        ) { row throws(PostgresError) in
            ProviderWorker(
                worker: try row.string(0), name: try row.string(1), ok: Int(try row.int(2)),
                failed: Int(try row.int(3)), throttled: Int(try row.int(4)), slow: Int(try row.int(5)),
                unknown: Int(try row.int(6)), vote: row.optionalString(7), seenAt: try row.date(8))
        }
    }

    /// True when it changed something.
    package static func force(
        _ provider: String, class name: String, to state: String, reason: String, for hold: Duration,
        on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.provider_force($1, $2, $3, make_interval(secs => $4), $5)",
            [.text(provider), .text(state), .text(reason), .float8(hold.inSeconds), .text(name)]
        )
    }

    package static func flags(on connection: Connection) async throws(PostgresError) -> [FlagRow] {
        try await connection.query(
            "select name, percent, always, reason, changed_by, changed_at from millrace.flag_list()"
        ) { row throws(PostgresError) in
            FlagRow(
                name: try row.string(0), percent: Int(try row.int(1)), always: try row.strings(2),
                reason: row.optionalString(3), changedBy: try row.string(4), changedAt: try row.date(5))
        }
    }

    /// True when it changed something.
    package static func setFlag(
        _ name: String, percent: Int, always: [String], reason: String?, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        try await connection.truth(
            "select millrace.flag_set($1, $2, $3, $4)",
            [.text(name), .int4(Int32(percent)), .texts(always), .text(reason)]
        )
    }
}
