package import FoundationEssentials
package import Postgres

/// A place in line.
package struct QueuePosition: Sendable, Equatable {
    package var lane: Lane
    package var seq: Int64

    package init(lane: Lane, seq: Int64) {
        self.lane = lane
        self.seq = seq
    }
}

/// A lease whose jobs a claim took from a lane but did not bring: `Queue.readLeases` does.
package struct UnreadLease: Sendable, Equatable {
    package var number: Int64
    package var lane: Lane
    package var ids: [Int64]
    /// The place of each job in its lane.
    package var seqs: [Int64]

    package init(number: Int64, lane: Lane, ids: [Int64], seqs: [Int64]) {
        self.number = number
        self.lane = lane
        self.ids = ids
        self.seqs = seqs
    }
}

/// What a claim brought, and what limits held back.
package struct ClaimResult: Sendable {
    package var jobs: [Claimed] = []
    /// Leases that it took without bringing their jobs.
    package var unreadLeases: [UnreadLease] = []
    /// Places that were emptied without a claim: their jobs are parked, or back in line.
    package var turnedAway: [QueuePosition] = []
    /// The gates that jobs were parked at.
    package var parkedAt: Set<Int64> = []
    /// Queues of which it took fewer jobs than wanted.
    package var heldBack: Set<Int32> = []
    /// Gates at which each of the jobs holds a slot, in addition to its own.
    package var gates: [Int64] = []

    package init() {}

    /// How many it took.
    package var count: Int { unreadLeases.reduce(jobs.count) { $0 + $1.ids.count } }
    /// Every place that is empty now.
    package var places: [QueuePosition] {
        jobs.map { QueuePosition(lane: $0.lane, seq: $0.seq) }
            + unreadLeases.flatMap { lease in lease.seqs.map { QueuePosition(lane: lease.lane, seq: $0) } } + turnedAway
    }
}

/// A range of one lane to claim from: above `floor`, up to `ceiling`, at most `limit` jobs.
package struct ClaimRange: Sendable, Hashable {
    package var lane: Lane
    package var floor: Int64
    package var ceiling: Int64
    package var limit: Int32

    package init(lane: Lane, floor: Int64, ceiling: Int64 = .max, limit: Int32) {
        self.lane = lane
        self.floor = floor
        self.ceiling = ceiling
        self.limit = limit
    }
}

/// The sequence's value at a moment, and the writers that may still commit lower numbers.
package struct Horizon: Sendable, Hashable {
    package var seq: Int64
    package var writers: Set<UInt64>

    package init(seq: Int64, writers: Set<UInt64>) {
        self.seq = seq
        self.writers = writers
    }
}

extension Queue {
    /// Claims up to `wanted` jobs.
    /// - `number`: a fresh multiple of 8.
    /// - `limited`: whether the queues have limits; it saves the database finding that out.
    /// - `patience`: for this long another claimer of the lane of the range at `turn` may go first.
    /// - `loose`: does not wait for the disk, so a crash of the server may forget the claim. The jobs of a limited loose claim must not
    ///   start before their leases are on disk, so the claim does not bring them: `readLeases` does.
    /// - `carry`: the most bytes of a job's contents that the answer may have; a job with more comes unread.
    package static func claim(
        on connection: Connection, session: Int64, number: Int64, kinds: [Int32], from ranges: [ClaimRange],
        wanted: Int,
        shortQueues: [Int32], longQueues: [Int32], limited: Bool = false, patience: Duration? = nil, turn: Int = 0,
        loose: Bool = false, carry: Int? = nil
    ) async throws(PostgresError) -> ClaimResult {
        var found = ClaimResult()
        let parameters: [Parameter] = [
            .int8(session), .int8(number), .int4s(kinds), .int4s(ranges.map(\.lane.queue)),
            .int4s(ranges.map(\.lane.code)), .int8s(ranges.map(\.floor)), .int8s(ranges.map(\.ceiling)),
            .int4s(ranges.map(\.limit)), .int4(Int32(wanted)), .int4s(shortQueues), .int4s(longQueues),
            .bool(patience != nil), .bool(loose), .int4(Int32(turn + 1)),
            .int4(Int32((patience ?? .zero) / .milliseconds(1))), .int4(carry.map { Int32(clamping: $0) }),
        ]
        let rows = try await connection.query(
            limited
                ? "select * from millrace.claim_limited($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, true, $12, $13, $13, $14, $15, $16)"
                : "select * from millrace.claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, true, $12, $13, $14, $15, $16)",
            parameters
        ) { row throws(PostgresError) in try answer(row, number: number, limited: limited) }
        found.jobs.reserveCapacity(rows.count)
        for row in rows {
            switch row {
            case .claimed(let job): found.jobs.append(job)
            case .unread(let lease): found.unreadLeases.append(lease)
            case .turnedAway(let place, let gate):
                found.turnedAway.append(place)
                if let gate { found.parkedAt.insert(gate) }
            case .heldBack(let queue): found.heldBack.insert(queue)
            case .gates(let gates): found.gates = gates
            case .usual: break
            }
        }
        return found
    }

    /// The next job of a lane, after a notification for it: cheaper than `claim`. nil: there is none, or limits or a pause may apply, and
    /// the caller must use `claim`. `number` is the lease's number, including its class.
    package static func claimOne(
        on connection: Connection, session: Int64, number: Int64, kinds: [Int32], from range: ClaimRange, loose: Bool,
        carry: Int? = nil
    ) async throws(PostgresError) -> Claimed? {
        try await connection.query(
            "select * from millrace.claim_one($1, $2, $3, $4, $5, $6, $7, $8)",
            [
                .int8(session), .int8(number), .int4s(kinds), .int4(range.lane.queue), .int4(range.lane.code),
                .int8(range.floor), .bool(loose), .int4(carry.map { Int32(clamping: $0) }),
            ]
        ) { row throws(PostgresError) -> Claimed? in
            guard let id = try row.optionalInt(1) else { return nil }
            let args = row.optionalJSON(6)
            return Claimed(
                seq: try row.int(0), id: id, number: number, kind: Int32(try row.int(2)),
                lane: range.lane,
                attempt: Int16(try row.int(3)), crashes: Int16(try row.int(4)), enqueuedAt: try row.date(5),
                claimedAt: try row.date(14), args: args ?? [], maxAttempts: try row.optionalInt(7).map { Int16($0) },
                keyed: try row.bool(8), expired: try row.bool(9), options: row.optionalJSON(10),
                metadata: row.optionalJSON(11), tags: row.isNull(12) ? [] : try row.strings(12),
                tenant: row.optionalString(13), isUnread: args == nil)
        }.first ?? nil
    }

    private enum Answer {
        /// Gates at which each of the jobs holds a slot.
        case gates([Int64])
        case claimed(Claimed)
        case unread(UnreadLease)
        case turnedAway(QueuePosition, gate: Int64?)
        case heldBack(Int32)
        /// The values that the rows of jobs leave out.
        case usual
    }

    /// A value that a row leaves out is that of the first row, or the usual one: see `claim`. `limited`: an answer of `claim_limited`,
    /// which has one more column.
    private static func answer(_ row: Row, number: Int64, limited: Bool) throws(PostgresError) -> Answer {
        // Only rows of jobs have a time of enqueuing.
        guard let enqueuedAt = try row.optionalDate(8) else {
            if !row.isNull(17) { return .usual }
            if let number = try row.optionalInt(2) {
                let jobs = try row.ints(18)  // the ids, followed by as many places
                return .unread(
                    UnreadLease(
                        number: number, lane: Lane(queue: Int32(try row.int(4)), code: Int32(try row.int(5))),
                        ids: Array(jobs.prefix(jobs.count / 2)), seqs: Array(jobs.suffix(jobs.count / 2))))
            }
            if row.isNull(4) { return .gates(try row.ints(18)) }
            let queue = Int32(try row.int(4))
            if row.isNull(0) { return .heldBack(queue) }
            let place = QueuePosition(lane: Lane(queue: queue, code: Int32(try row.int(5))), seq: try row.int(0))
            return .turnedAway(place, gate: row.isNull(18) ? nil : try row.ints(18).first)
        }
        let id = try row.int(1)
        let args = row.optionalJSON(9)
        func shared(_ column: Int) throws(PostgresError) -> Int32 {
            Int32(try (row.isNull(column) ? row.first : row).int(column))
        }
        return .claimed(
            Claimed(
                seq: try row.optionalInt(0) ?? id, id: id, number: try row.optionalInt(2) ?? number + 1,
                kind: try shared(3), lane: Lane(queue: try shared(4), code: try shared(5)),
                attempt: Int16(try row.optionalInt(6) ?? 0),
                crashes: Int16(try row.optionalInt(7) ?? 0), enqueuedAt: enqueuedAt,
                claimedAt: try row.first.date(17), args: args ?? [],
                maxAttempts: try row.optionalInt(10).map { Int16($0) },
                keyed: !row.isNull(11), expired: !row.isNull(12), options: row.optionalJSON(13),
                metadata: row.optionalJSON(14), tags: row.isNull(15) ? [] : try row.strings(15),
                tenant: row.optionalString(16), gates: row.isNull(18) ? [] : try row.ints(18),
                gate: limited ? try row.optionalInt(19) : nil, isUnread: args == nil))
    }

    /// The jobs of these unread leases, as far as the leases live, in the order in which the jobs should start. The answer waits until the
    /// leases are on disk. `carry`: see `claim`.
    package static func readLeases(
        on connection: Connection, session: Int64, of leases: [UnreadLease], carry: Int? = nil
    ) async throws(PostgresError) -> [Claimed] {
        // Usually all are of one lane, where a job's place is its id.
        let lane = leases.dropFirst().allSatisfy { $0.lane == leases[0].lane } ? leases.first?.lane : nil
        let usual = leases.allSatisfy { $0.ids == $0.seqs } ? lane : nil
        var places: [Int64: QueuePosition] = [:]
        if usual == nil {
            for lease in leases {
                for (id, seq) in zip(lease.ids, lease.seqs) {
                    places[id] = QueuePosition(lane: lease.lane, seq: seq)
                }
            }
        }
        let known = places
        let jobs = try await connection.query(
            "select * from millrace.leases_read($1, $2, $3)",
            [
                .int8(session), .int8s(Set(leases.map(\.number)).sorted()), .int4(carry.map { Int32(clamping: $0) }),
            ]
        ) { row throws(PostgresError) -> Claimed? in
            guard let id = try row.optionalInt(3) else { return nil }
            let args = row.optionalJSON(7)
            guard let place = usual.map({ QueuePosition(lane: $0, seq: id) }) ?? known[id] else {
                throw .undecodable(column: 3, expected: "a job that was claimed")
            }
            func shared(_ column: Int) -> Row { row.isNull(column) ? row.first : row }
            return Claimed(
                seq: place.seq, id: id, number: try shared(0).int(0), kind: Int32(try shared(2).int(2)),
                lane: place.lane,
                attempt: Int16(try row.optionalInt(4) ?? 0), crashes: Int16(try row.optionalInt(5) ?? 0),
                enqueuedAt: try row.date(6), claimedAt: try shared(1).date(1), args: args ?? [],
                maxAttempts: try row.optionalInt(8).map { Int16($0) }, keyed: !row.isNull(9), expired: !row.isNull(10),
                options: row.optionalJSON(11), metadata: row.optionalJSON(12),
                tags: row.isNull(13) ? [] : try row.strings(13), tenant: row.optionalString(14),
                gates: row.isNull(16) ? [] : try row.ints(16), gate: try row.optionalInt(15), isUnread: args == nil)
        }
        return jobs.compactMap(\.self).sorted { ($0.lane.priority, $0.seq) < ($1.lane.priority, $1.seq) }
    }

    package static func horizon(on connection: Connection) async throws(PostgresError) -> Horizon {
        let rows = try await connection.query("select seq, writers from millrace.horizon()") {
            row throws(PostgresError) in
            Horizon(seq: try row.int(0), writers: Set(try row.strings(1).compactMap { UInt64($0) }))
        }
        return try one(rows)
    }

    /// The lanes that hold jobs of these kinds, with their first and last places.
    package static func lanes(
        on connection: Connection, kinds: [Int32], queues: [Int32]?
    ) async throws(PostgresError) -> [(lane: Lane, first: Int64, last: Int64)] {
        try await connection.query(
            "select * from millrace.lanes($1, $2)", [.int4s(kinds), .int4s(queues)]
        ) { row throws(PostgresError) in
            (Lane(queue: Int32(try row.int(0)), code: Int32(try row.int(1))), try row.int(2), try row.int(3))
        }
    }

    /// The same for these lanes only, above the given places.
    package static func lanes(
        on connection: Connection, kinds: [Int32], above floors: [(lane: Lane, place: Int64)]
    ) async throws(PostgresError) -> [(lane: Lane, first: Int64, last: Int64)] {
        try await connection.query(
            "select * from millrace.lanes_above($1, $2, $3, $4)",
            [
                .int4s(kinds), .int4s(floors.map(\.lane.queue)), .int4s(floors.map(\.lane.code)),
                .int8s(floors.map(\.place)),
            ]
        ) { row throws(PostgresError) in
            (Lane(queue: Int32(try row.int(0)), code: Int32(try row.int(1))), try row.int(2), try row.int(3))
        }
    }

    /// The same for every lane of these queues, or of all, between two places.
    package static func lanes(
        on connection: Connection, kinds: [Int32], queues: [Int32]?, above: Int64, upTo: Int64
    ) async throws(PostgresError) -> [(lane: Lane, first: Int64, last: Int64)] {
        try await connection.query(
            "select * from millrace.lanes_between($1, $2, $3, $4)",
            [.int4s(kinds), .int4s(queues), .int8(above), .int8(upTo)]
        ) { row throws(PostgresError) in
            (Lane(queue: Int32(try row.int(0)), code: Int32(try row.int(1))), try row.int(2), try row.int(3))
        }
    }

    /// Whether a timer is due between two times.
    package static func isDue(
        on connection: Connection, above: Date, upTo: Date
    ) async throws(PostgresError) -> Bool {
        let rows = try await connection.query(
            "select millrace.is_due_between($1, $2)", [.timestamp(above), .timestamp(upTo)]
        ) { row throws(PostgresError) in try row.bool(0) }
        return try one(rows)
    }

    package struct Promotion: Sendable {
        package var moved: Int
        package var upTo: Date?
        package var nextDue: Date?
        package var now: Date
        /// Where they wait now.
        package var lanes: [Lane]
    }

    package static func promote(
        on connection: Connection, floor: Date?, wanted: Int
    ) async throws(PostgresError) -> Promotion {
        let rows = try await connection.query(
            "select moved, upto, next_due, t, queues, lanes from millrace.promote($1, $2)",
            [.timestamp(floor), .int4(Int32(wanted))]
        ) { row throws(PostgresError) in
            Promotion(
                moved: Int(try row.int(0)), upTo: try row.optionalDate(1), nextDue: try row.optionalDate(2),
                now: try row.date(3),
                lanes: zip(try row.ints(4), try row.ints(5)).map {
                    Lane(queue: Int32($0), code: Int32($1))
                })
        }
        return try one(rows)
    }

    /// Releases unique keys that nobody has wanted again, at most `most` of them. Returns how far it has come, and whether those were all.
    /// - Parameter floor: everything before it was looked through earlier.
    package static func expireKeys(
        on connection: Connection, floor: Date?, most: Int
    ) async throws(PostgresError) -> (upTo: Date?, isAll: Bool) {
        let rows = try await connection.query(
            "select expired, upto from millrace.unique_expire($1, $2)", [.timestamp(floor), .int4(Int32(most))]
        ) { row throws(PostgresError) in (upTo: try row.optionalDate(1), isAll: try row.int(0) < most) }
        return try one(rows)
    }

    static func one<Element>(_ rows: [Element]) throws(PostgresError) -> Element {
        guard let row = rows.first else { throw .undecodable(column: 0, expected: "a row") }
        return row
    }
}
