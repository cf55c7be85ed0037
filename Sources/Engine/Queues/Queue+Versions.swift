package import FoundationEssentials
package import Postgres

/// A build of pinned workers, as operators see it.
package struct BuildRow: Sendable, Equatable {
    package var build: String
    /// promoted, canary, drained, released, earlier or new.
    package var state: String
    /// Of a canary: its share of new jobs.
    package var percent: Int?
    package var workers: Int
    package var kinds: [String]
    /// Its jobs under way that are ready, and those that wait for a time, a limit, a signal or other jobs.
    package var ready: Int
    package var waiting: Int
    /// It has such jobs, and no running worker takes them.
    package var isStranded: Bool
    package var seenAt: Date
    package var promotedAt: Date?
    package var drainedAt: Date?
    /// The build that its jobs under way were released to.
    package var heir: String?
}

/// A change that handlers ask for with `context.changed`.
package struct ChangeRow: Sendable, Equatable {
    package var kind: String
    package var change: String
    package var builds: [String]
    package var since: Date
    /// How many jobs that have not ended well go the old way; counted up to 1,000.
    package var oldWay: Int
}

extension Queue {
    /// The kinds of which a session takes jobs now.
    package static func kindsTaken(
        on connection: Connection, session: Int64
    ) async throws(PostgresError) -> [(id: Int32, name: String)] {
        try await connection.query("select id, name from millrace.session_kinds($1)", [.int8(session)]) {
            row throws(PostgresError) in (Int32(try row.int(0)), try row.string(1))
        }
    }

    /// Changes whenever `kindsTaken` may.
    package static func versionsMark(on connection: Connection) async throws(PostgresError) -> String {
        try one(
            try await connection.query("select coalesce(millrace.versions_mark(), '')") { row throws(PostgresError) in
                try row.string(0)
            })
    }

    package static func builds(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [BuildRow] {
        try await connection.query(
            """
            select build, state, percent, workers, kinds, ready, waiting, stranded, seen_at, promoted_at, drained_at, heir
              from millrace.versions()
            """, deadline: deadline
        ) { row throws(PostgresError) in
            BuildRow(
                build: try row.string(0), state: try row.string(1), percent: try row.optionalInt(2).map { Int($0) },
                workers: Int(try row.int(3)), kinds: try row.strings(4), ready: Int(try row.int(5)),
                waiting: Int(try row.int(6)), isStranded: try row.bool(7), seenAt: try row.date(8),
                promotedAt: try row.optionalDate(9), drainedAt: try row.optionalDate(10), heir: row.optionalString(11))
        }
    }

    package static func promote(
        _ build: String, percent: Int?, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.versions_promote($1, $2)", [.text(build), .int4(percent.map { Int32(clamping: $0) })])
    }

    /// False: it was drained already.
    package static func drain(build: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try one(
            try await connection.query("select millrace.versions_drain($1)", [.text(build)]) {
                row throws(PostgresError) in try row.bool(0)
            })
    }

    /// - Parameter move: The earlier build also goes on with the jobs under way.
    package static func rollback(
        move: Bool, on connection: Connection
    ) async throws(PostgresError) -> (bad: String, good: String) {
        try one(
            try await connection.query("select bad, good from millrace.versions_rollback($1)", [.bool(move)]) {
                row throws(PostgresError) in (bad: try row.string(0), good: try row.string(1))
            })
    }

    /// - Parameter heir: The build that goes on with its jobs; nil: the one that gets new jobs.
    package static func release(
        build: String, to heir: String?, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute("select millrace.versions_release($1, $2)", [.text(build), .text(heir)])
    }

    package static func changes(on connection: Connection) async throws(PostgresError) -> [ChangeRow] {
        try await connection.query("select kind, change, builds, since, old_way from millrace.changes()") {
            row throws(PostgresError) in
            ChangeRow(
                kind: try row.string(0), change: try row.string(1), builds: try row.strings(2), since: try row.date(3),
                oldWay: Int(try row.int(4)))
        }
    }
}
