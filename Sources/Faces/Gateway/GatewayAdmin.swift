package import FoundationEssentials
package import Postgres

/// What operators see of the fleet's gateways.
package enum GatewayAdmin {
    package struct Row: Sendable {
        package let name: String
        package let address: String?
        package let version: String?
        package let streams: Int
        /// Since it started.
        package let requests: Int
        package let startedAt: Date
        package let beatAt: Date
        /// It has said nothing for 15 seconds, and has not said that it stops.
        package let isSilent: Bool
        /// In seconds.
        package let silence: Double
    }

    package static func list(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [Row] {
        try await connection.query(
            """
            select g.name, g.address, g.version, g.streams, g.requests, g.started_at, g.beat_at, g.is_silent,
                   extract(epoch from millrace.now() - g.beat_at)::float8
              from millrace.gateways_shown() g
            """, deadline: deadline
        ) { row throws(PostgresError) in
            Row(
                name: try row.string(0), address: row.optionalString(1), version: row.optionalString(2),
                streams: Int(try row.int(3)), requests: Int(try row.int(4)), startedAt: try row.date(5),
                beatAt: try row.date(6), isSilent: try row.bool(7), silence: try row.double(8))
        }
    }
}
