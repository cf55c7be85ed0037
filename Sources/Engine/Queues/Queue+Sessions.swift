import FoundationEssentials
package import Postgres

/// A worker's description of itself when it opens a session.
package struct SessionCard: Sendable {
    package var id: Int64
    package var name: String
    package var host: String
    package var pid: Int32
    package var version: String
    package var queues: [String]?
    package var kinds: [Int32]
    package var slots: Int32
    package var direct: Bool
    /// The rooms it serves besides its kinds, each with how it serves them.
    package var rooms: [String: String]
    /// The build to which it is pinned.
    package var pin: String?

    package init(
        id: Int64, name: String, host: String, pid: Int32, version: String, queues: [String]?, kinds: [Int32],
        slots: Int32, direct: Bool, rooms: [String: String] = [:], pin: String? = nil
    ) {
        self.id = id
        self.name = name
        self.host = host
        self.pid = pid
        self.version = version
        self.queues = queues
        self.kinds = kinds
        self.slots = slots
        self.direct = direct
        self.rooms = rooms
        self.pin = pin
    }
}

/// Ended runs of one queue and kind since the last beat.
package struct RunTally: Sendable, Equatable {
    package var succeeded: Int32 = 0
    package var failed: Int32 = 0
    package var dead: Int32 = 0
    package var cancelled: Int32 = 0
    package var snoozed: Int32 = 0
    package var milliseconds: Int64 = 0
    /// How long the first runs of unscheduled jobs among these waited, and how many they are.
    package var waitMilliseconds: Int64 = 0
    package var waits: Int32 = 0
    package var times = RunTimes()

    package init() {}
}

package struct TallyKey: Hashable, Sendable {
    package var queue: Int32
    package var kind: Int32

    package init(queue: Int32, kind: Int32) {
        self.queue = queue
        self.kind = kind
    }
}

/// Another worker's heartbeat.
package struct Sign: Sendable, Equatable {
    package var session: Int64
    package var beat: Int64
    /// It holds a session lock while it is alive and directly connected.
    package var direct: Bool
    package var lockIsFree: Bool

    package init(session: Int64, beat: Int64, direct: Bool, lockIsFree: Bool) {
        self.session = session
        self.beat = beat
        self.direct = direct
        self.lockIsFree = lockIsFree
    }
}

package struct Rescue: Sendable {
    package var leases: Int
    package var jobs: Int
    package var quarantined: Int
    package var remaining: Int
}

/// A line of a queue: the queue itself, or the line of one tenant's jobs or of those with a limit key.
package struct QueueInfo: Sendable {
    package var id: Int32
    package var name: String
    package var paused: Bool
    package var retention: Int16
    /// The queue it belongs to; its own number for the queue itself.
    package var main: Int32
    /// Its tenant's share relative to the others.
    package var weight: Double
    /// Its jobs may have to wait for a limit.
    package var limited: Bool
}

extension Queue {
    package static func registerKinds(
        on connection: Connection, _ kinds: [(name: String, queue: String?)]
    ) async throws(PostgresError) -> [Int32] {
        let rows = try await connection.query(
            "select millrace.register_kinds($1, $2)", [.texts(kinds.map(\.name)), .texts(kinds.map(\.queue))]
        ) { row throws(PostgresError) in try row.ints(0).map { Int32($0) } }
        return try one(rows)
    }

    /// One kind, with the paths that its program declares; nil: it says nothing.
    package static func registerKind(
        on connection: Connection, _ name: String, queue: String?, searchable: [String]?, redacted: [String]?
    ) async throws(PostgresError) -> Int32 {
        let rows = try await connection.query(
            "select millrace.register_kinds($1, $2, jsonb_build_array($3::text[]), jsonb_build_array($4::text[]))",
            [.texts([name]), .texts([queue]), .texts(searchable), .texts(redacted)]
        ) { row throws(PostgresError) in try row.ints(0).map { Int32($0) } }
        return try one(try one(rows))
    }

    /// Lines of a kind of which a worker takes jobs.
    package static func registerLines(
        on connection: Connection, of kind: String, _ lines: [String]
    ) async throws(PostgresError) -> [Int32] {
        try one(
            try await connection.query("select millrace.register_lines($1, $2)", [.text(kind), .texts(lines)]) {
                row throws(PostgresError) in try row.ints(0).map { Int32($0) }
            })
    }

    /// Creates the queues that a worker names, so that it can be woken for their first job.
    package static func registerQueues(on connection: Connection, _ names: [String]) async throws(PostgresError) {
        guard !names.isEmpty else { return }
        try await connection.execute("select millrace.register_queues($1)", [.texts(names)])
    }

    package static func openSession(on connection: Connection, _ card: SessionCard) async throws(PostgresError) {
        try await connection.execute(
            """
            select millrace.session_open($1, $2, $3, $4, $5, $6, $7, $8, $9,
                   (select coalesce(jsonb_object_agg(r.name, r.how), '{}') from unnest($10::text[], $11::text[]) r(name, how)), $12)
            """,
            [
                .int8(card.id), .text(card.name), .text(card.host), .int4(card.pid), .text(card.version),
                .texts(card.queues),
                .int4s(card.kinds), .int4(card.slots), .bool(card.direct),
                .texts(Array(card.rooms.keys)), .texts(card.rooms.keys.map { card.rooms[$0] }), .text(card.pin),
            ])
    }

    /// Says that this worker cannot start on this schema, for those who ask why nobody takes its jobs.
    package static func refuseWorker(
        on connection: Connection, name: String, host: String, pid: Int32, version: String, kinds: [String],
        queues: [String]?
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.worker_refused($1, $2, $3, $4, $5, $6, $7)",
            [
                .text(name), .text(host), .int4(pid), .text(version), .int4(Int32(schemaVersion)), .texts(kinds),
                .texts(queues),
            ])
    }

    /// True while the session exists.
    package static func beat(
        on connection: Connection, session: Int64, state: String, running: Int, waiting: Int, stuck: Int,
        tallies: [TallyKey: RunTally], failures: [FailureTally] = []
    ) async throws(PostgresError) -> Bool {
        let pairs = Array(tallies)
        let some = !pairs.isEmpty
        let failed = failures.isEmpty ? nil : try? JSONEncoder().encode(failures)  // numbers and texts: it cannot fail
        let rows = try await connection.query(
            "select millrace.beat($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
            [
                .int8(session), .text(state), .int4(Int32(running)), .int4(Int32(waiting)), .int4(Int32(stuck)),
                .int4s(some ? pairs.map(\.key.queue) : nil), .int4s(some ? pairs.map(\.key.kind) : nil),
                .int4s(some ? pairs.map(\.value.succeeded) : nil), .int4s(some ? pairs.map(\.value.failed) : nil),
                .int4s(some ? pairs.map(\.value.dead) : nil), .int4s(some ? pairs.map(\.value.cancelled) : nil),
                .int4s(some ? pairs.map(\.value.snoozed) : nil), .int8s(some ? pairs.map(\.value.milliseconds) : nil),
                .json(failed.map { Array($0) }),
                .int8s(some ? pairs.map(\.value.waitMilliseconds) : nil), .int4s(some ? pairs.map(\.value.waits) : nil),
                .texts(some ? pairs.map(\.value.times.text) : nil), .timestamp(Date()),
            ]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    package static func watch(on connection: Connection, session: Int64) async throws(PostgresError) -> [Sign] {
        try await connection.query(
            "select session, beat, direct, free from millrace.watch($1)", [.int8(session)]
        ) { row throws(PostgresError) in
            Sign(session: try row.int(0), beat: try row.int(1), direct: try row.bool(2), lockIsFree: try row.bool(3))
        }
    }

    /// Puts back the jobs of a session that was seen dead at `beat`.
    package static func rescue(
        on connection: Connection, session: Int64, beat: Int64
    ) async throws(PostgresError) -> Rescue {
        let rows = try await connection.query(
            "select leases, jobs, quarantined, remaining from millrace.rescue($1, $2)", [.int8(session), .int8(beat)],
            deadline: .seconds(60)
        ) { row throws(PostgresError) in
            Rescue(
                leases: Int(try row.int(0)), jobs: Int(try row.int(1)), quarantined: Int(try row.int(2)),
                remaining: Int(try row.int(3)))
        }
        return try one(rows)
    }

    /// Ends our own session; jobs that it still held go back in line. Returns how many.
    package static func closeSession(on connection: Connection, session: Int64) async throws(PostgresError) -> Int {
        let rows = try await connection.query(
            "select jobs from millrace.session_close($1)", [.int8(session)]
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        return try one(rows)
    }

    package static func leasesHeld(on connection: Connection, session: Int64) async throws(PostgresError) -> Set<Int64>
    {
        let rows = try await connection.query(
            "select millrace.leases_held($1)", [.int8(session)]
        ) { row throws(PostgresError) in Set(try row.ints(0)) }
        return try one(rows)
    }

    /// The runs of this session that somebody wants cancelled.
    package static func cancels(
        on connection: Connection, session: Int64
    ) async throws(PostgresError) -> [(number: Int64, job: Int64)] {
        try await connection.query("select number, job from millrace.cancels($1)", [.int8(session)]) {
            row throws(PostgresError) in (try row.int(0), try row.int(1))
        }
    }

    /// Cancels that crossed with a retry or a snooze; see `millrace.heed_cancels`.
    package static func heedCancels(on connection: Connection) async throws(PostgresError) {
        try await connection.execute("select millrace.heed_cancels()")
    }

    package static func queues(on connection: Connection) async throws(PostgresError) -> [QueueInfo] {
        try await connection.query(
            "select id, name, paused, retention, main, weight, limited from millrace.queue_list()"
        ) {
            row throws(PostgresError) in
            QueueInfo(
                id: Int32(try row.int(0)), name: try row.string(1), paused: try row.bool(2),
                retention: Int16(try row.int(3)), main: Int32(try row.int(4)), weight: row.optionalDouble(5) ?? 1,
                limited: try row.bool(6))
        }
    }

    package static func maintain(on connection: Connection) async throws(PostgresError) -> (made: Int, dropped: Int) {
        let rows = try await connection.query("select made, dropped from millrace.maintain()", deadline: .seconds(60)) {
            row throws(PostgresError) in (Int(try row.int(0)), Int(try row.int(1)))
        }
        return try one(rows)
    }
}

extension Queue {
    /// Puts back the jobs of leases that this worker never heard of, because the reply to their claim was lost.
    package static func returnLeases(
        on connection: Connection, session: Int64, numbers: Set<Int64>
    ) async throws(PostgresError) -> Int {
        let rows = try await connection.query(
            "select jobs from millrace.leases_return($1, $2)", [.int8(session), .int8s(numbers.sorted())]
        ) { row throws(PostgresError) in Int(try row.int(0)) }
        return try one(rows)
    }
}
