package import FoundationEssentials
package import Postgres

/// A trouble with a kind of a queue, by the rules of `millrace.troubles`.
package struct TroubleRow: Sendable, Equatable {
    package enum Trouble: String, Sendable {
        /// The newest build fails where earlier ones did not.
        case build
        /// Half of its runs, or more, fail.
        case failing
        /// More jobs wait for another attempt than succeed.
        case retrying
    }

    package var trouble: Trouble
    package var queue: String
    /// nil: no single kind is to blame.
    package var kind: String?
    package var runs: Int
    package var failed: Int
    /// The period in which these runs ended, in seconds.
    package var span: Int
    /// How many jobs wait for another attempt; counting stops at the cap.
    package var retrying: Int
    package var retryingCap = 10_000
    package var build: String?
    /// The most frequent error.
    package var error: String?
}

/// Jobs of a queue and kind that wait for another attempt; counting stops at 10,000.
package struct RetryRow: Sendable, Equatable {
    package var queue: String
    package var kind: String
    package var jobs: Int
}

/// A room that workers serve besides their kinds, with the work that waits there and the workers that serve it.
package struct RoomRow: Sendable, Equatable {
    /// How a worker serves mail when no mail service is configured.
    package static let filesByDefault = "files"

    package var name: String
    /// nil: not counted, because workers serve it.
    package var waiting: Int?
    /// How long the oldest has waited, in seconds.
    package var oldest: Double?
    package var servers: Int
    /// Workers of earlier versions, which do not report what they serve.
    package var unsure: Int
    /// How workers serve it, if they report that.
    package var how: [String]
    /// Something waits, or came within the last day.
    package var isUsed: Bool
}

/// What waits in a lane of a room whose work is no jobs: notices, webhooks, check-ins.
package struct LaneRow: Sendable, Equatable {
    package var room: String
    package var lane: String
    package var waiting: Int
    /// Not due yet, or tried again after a pause.
    package var later: Int
    /// nil: the work is one transaction, which nobody else sees.
    package var running: Int?
    /// Seconds that the oldest has waited.
    package var oldest: Double?
    /// Of what was due in the last hour; nil: nobody counts.
    package var ended: Int?
    package var failed: Int?
    /// How many living workers serve the room.
    package var workers: Int

    /// nil when nothing has ended.
    package var failedShare: Double? {
        guard let ended, let failed, ended > 0 else { return nil }
        return Double(failed) / Double(ended)
    }
}

/// A function of a room that the core calls, and that failed the last time: see sql/core/base/hooks.sql.
package struct HookTrouble: Sendable, Equatable {
    package var event: String
    package var room: String
    package var function: String
    package var since: Date
    /// In a row.
    package var times: Int
    package var sentence: String

    package init(event: String, room: String, function: String, since: Date, times: Int, sentence: String) {
        self.event = event
        self.room = room
        self.function = function
        self.since = since
        self.times = times
        self.sentence = sentence
    }
}

extension Queue {
    package static func hookTroubles(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [HookTrouble] {
        try await connection.query(
            "select event, room, function, since, times, sentence from millrace.hook_troubles()", deadline: deadline
        ) { row throws(PostgresError) in
            HookTrouble(
                event: try row.string(0), room: try row.string(1), function: try row.string(2),
                since: try row.date(3), times: Int(try row.int(4)), sentence: try row.string(5))
        }
    }
}

extension Queue {
    /// - Parameter cap: where counting retries of a queue and kind stops.
    package static func troubles(
        cap: Int = 10_000, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [TroubleRow] {
        try await connection.query(
            "select trouble, queue, kind, runs, failed, span_s, retrying, build, error from millrace.troubles(50, $1)",
            [.int4(Int32(clamping: cap))], deadline: deadline
        ) { row throws(PostgresError) in
            guard let trouble = TroubleRow.Trouble(rawValue: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a trouble")
            }
            return TroubleRow(
                trouble: trouble, queue: try row.string(1), kind: row.optionalString(2), runs: Int(try row.int(3)),
                failed: Int(try row.int(4)), span: Int(try row.int(5)), retrying: Int(try row.int(6)), retryingCap: cap,
                build: row.optionalString(7), error: row.optionalString(8))
        }
    }

    package static func retries(
        cap: Int = 10_000, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [RetryRow] {
        try await connection.query(
            "select queue, kind, jobs from millrace.retrying($1)", [.int4(Int32(clamping: cap))], deadline: deadline
        ) { row throws(PostgresError) in
            RetryRow(queue: try row.string(0), kind: try row.string(1), jobs: Int(try row.int(2)))
        }
    }

    package static func rooms(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [RoomRow] {
        try await connection.query(
            "select room, waiting, oldest_s, servers, unsure, how, used from millrace.rooms()", deadline: deadline
        ) { row throws(PostgresError) in
            RoomRow(
                name: try row.string(0), waiting: try row.optionalInt(1).map { Int($0) }, oldest: row.optionalDouble(2),
                servers: Int(try row.int(3)), unsure: Int(try row.int(4)), how: try row.strings(5),
                isUsed: try row.bool(6))
        }
    }

    /// - Parameter cap: Where counting stops; nil: nowhere.
    package static func roomLanes(
        cap: Int?, on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [LaneRow] {
        try await connection.query(
            "select room, lane, waiting, later, running, oldest_s, ended, failed, workers from millrace.room_lanes($1)",
            [.int4(cap.map { Int32(clamping: $0) })], deadline: deadline
        ) { row throws(PostgresError) in
            LaneRow(
                room: try row.string(0), lane: try row.string(1), waiting: Int(try row.int(2)),
                later: Int(try row.int(3)), running: try row.optionalInt(4).map { Int($0) },
                oldest: row.optionalDouble(5).map { max(0, $0) }, ended: try row.optionalInt(6).map { Int($0) },
                failed: try row.optionalInt(7).map { Int($0) }, workers: Int(try row.int(8)))
        }
    }
}
