import FoundationEssentials
import JSON
import Listeners
package import Postgres
package import Telemetry
import Threads

/// How a followed job stands.
struct FollowedJob: Sendable, Equatable {
    let id: Int64
    let state: String
    let attempt: Int
    let progress: String?
    let message: String?
    /// Microseconds since 1970.
    let updated: Int64

    var hasEnded: Bool { ["succeeded", "cancelled", "dead"].contains(state) }

    func piece(id event: Int64) -> StreamPiece {
        StreamPiece(id: event, event: "job") { json in
            json += #"{"id":\#(id),"state":"#.utf8
            JSONText.appendQuoted(state, to: &json)
            json += #","attempt":\#(attempt),"progress":\#(progress ?? "null"),"message":"#.utf8
            if let message { JSONText.appendQuoted(message, to: &json) } else { json += "null".utf8 }
            json.append(UInt8(ascii: "}"))
        }
    }
}

/// Looks at all followed jobs with one query, five times a second while somebody follows one. It owns the list of followers.
package actor JobHub {
    private struct Follower {
        let job: Int64
        let reader: any StreamReader
        let expires: Date
        let until: ContinuousClock.Instant?
        /// The id of its last event.
        var position: Int64
        var shown: FollowedJob?
    }

    private let pool: Pool
    private let log: Log
    /// From the request on.
    nonisolated let seats = Seats(inAll: JobHub.most, perName: JobHub.perPerson)
    private var followers: [Int: Follower] = [:]
    private var next = 0
    private let wanted = Wakeup()
    private var isOver = false
    private var beats = ContinuousClock.now
    static let pause = Duration.milliseconds(200)
    static let perPerson = 32
    static let most = 5000
    /// As `jobs_followed` has it.
    private static let mostOfLook = 1000

    /// - Parameter pool: of the gateway's own login.
    package init(pool: Pool, log: Log) {
        self.pool = pool
        self.log = log
    }

    package var streams: Int { followers.count }

    /// Until cancelled; then all streams end.
    package func run() async {
        await RetryingLoop.run { loop in
            guard !followers.isEmpty else {
                await wanted.wait()
                return
            }
            let began = ContinuousClock.now
            let ids = Array(Set(followers.values.map(\.job)))
            for start in stride(from: 0, to: ids.count, by: Self.mostOfLook) {
                let asked = Array(ids[start..<min(ids.count, start + Self.mostOfLook)])
                spread(try await look(at: asked), asked: Set(asked))
            }
            tick(.now, at: .now)
            loop.worked()
            try? await Task.sleep(until: began + Self.pause, clock: .continuous)
        } failed: { error in
            if Task.isCancelled { return .end }
            tick(.now, at: .now)
            log.warning("followed jobs wait for the database", [("error", "\(error)")])
            return .pause
        }
        isOver = true
        for follower in followers.values { follower.reader.end(.closing) }
    }

    /// - Parameter position: the id of the last event that the reader has seen.
    func follow(
        _ job: Int64, _ reader: any StreamReader, from position: Int64, _ caller: GatewayCaller,
        until: ContinuousClock.Instant? = nil
    ) -> Int {
        next += 1
        guard !isOver else {
            reader.end(.closing)
            return next
        }
        followers[next] = Follower(
            job: job, reader: reader, expires: caller.expires, until: until,
            position: position)
        wanted.fire()
        return next
    }

    /// Returns the id of the last event it was given; nil when it was removed before.
    @discardableResult
    func leave(_ number: Int) -> Int64? {
        followers.removeValue(forKey: number)?.position
    }

    private nonisolated func look(at ids: [Int64]) async throws -> [FollowedJob] {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                """
                select f.id, f.state, f.attempt, f.progress::text, f.message, (extract(epoch from f.updated) * 1000000)::bigint
                  from millrace.jobs_followed($1) f
                """, [.int8s(ids)]
            ) { row throws(PostgresError) in
                FollowedJob(
                    id: try row.int(0), state: try row.string(1), attempt: Int(try row.int(2)),
                    progress: row.optionalString(3), message: row.optionalString(4),
                    updated: try row.optionalInt(5) ?? 0)
            }
        }
    }

    private func spread(_ found: [FollowedJob], asked: Set<Int64>) {
        let jobs = Dictionary(found.map { ($0.id, $0) }) { first, _ in first }
        for (number, follower) in followers where asked.contains(follower.job) {
            guard let job = jobs[follower.job] else {
                end(number, .over("gone"))
                continue
            }
            guard follower.shown != job else { continue }
            // It came back, and has seen this.
            let isKnown = follower.shown == nil && follower.position == job.updated
            followers[number]?.shown = job
            if !isKnown {
                let id = max(follower.position + 1, job.updated)
                guard follower.reader.take(job.piece(id: id)) else {
                    end(number, .cut)
                    continue
                }
                followers[number]?.position = id
            }
            // A long poll has its answer by the event.
            if job.hasEnded, follower.until == nil || isKnown { end(number, .over("ended")) }
        }
    }

    private func end(_ number: Int, _ end: StreamEnd) {
        followers.removeValue(forKey: number)?.reader.end(end)
    }

    private func tick(_ time: Date, at instant: ContinuousClock.Instant) {
        let isBeat = beats.duration(to: instant) >= .seconds(15)
        if isBeat { beats = instant }
        for (number, follower) in followers {
            if follower.expires <= time {
                end(number, .expired)
            } else if let until = follower.until {
                // It leaves by itself.
                if until <= instant { follower.reader.end(.waited) }
            } else if isBeat, !follower.reader.beat() {
                end(number, .cut)
            }
        }
    }
}
