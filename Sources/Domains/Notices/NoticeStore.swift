import Faults
import FoundationEssentials
import Postgres

/// The notices' SQL.
struct NoticeStore: Sendable {
    static func take(
        alarms: Bool, most: Int, holder: Int64, lease: Duration, on connection: Connection
    ) async throws(PostgresError) -> [Sending] {
        try await connection.query(
            """
            select id::text, person, kind, key, data, channel, address, alarm, platform, app, attempt, is_again, due_at, expires_at, at, locale
              from millrace.notice_take($1, $2, $3, $4)
            """,
            [
                .bool(alarms), .int4(Int32(clamping: most)), .int8(holder),
                .float8(Double(lease.components.seconds)),
            ]
        ) { row throws(PostgresError) in
            Sending(
                id: try row.string(0), person: try row.string(1), kind: try row.string(2), key: row.optionalString(3),
                data: Facts(json: try row.json(4)), channel: try row.string(5), address: try row.string(6),
                isAlarm: try row.bool(7), platform: row.optionalString(8), app: row.optionalString(9),
                attempt: Int(try row.int(10)), isAgain: try row.bool(11), dueAt: try row.date(12),
                expiresAt: try row.optionalDate(13), takenAt: try row.date(14), locale: row.optionalString(15))
        }
    }

    /// When something is due next; nil when nothing waits.
    static func next(alarms: Bool, on connection: Connection) async throws(PostgresError) -> Duration? {
        try await connection.query("select millrace.notice_next($1)", [.bool(alarms)]) { row throws(PostgresError) in
            row.optionalDouble(0)
        }.first.flatMap { $0 }.map { .seconds(min(max($0, 0), 86_400)) }
    }

    static func record(
        _ results: [Result], holder: Int64, on connection: Connection
    ) async throws(PostgresError) {
        try await connection.execute(
            "select millrace.notice_record($1, $2)", [.int8(holder), .json(json(of: results))])
    }

    static func handOver(
        _ mails: [Letter], holder: Int64, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await connection.query(
            "select millrace.notice_mail($1, $2)", [.int8(holder), .json(json(of: mails))]
        ) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }

    struct Letter: Encodable, Sendable {
        var id: String
        var subject: String
        var body: String
    }

    struct Result: Encodable, Sendable {
        var id: String
        var attempt: Int
        var provider: String
        var outcome: String
        var `class`: String?
        var code: String?
        var error: String?
        var reply: String?
        var wait: Double?
        var ms: Int
        var gone_at: Double?

        init(_ sending: Sending, provider: String, _ delivery: NoticeOutcome, took: Duration) {
            id = sending.id
            attempt = sending.attempt
            self.provider = provider
            outcome =
                switch delivery {
                case .accepted: "accepted"
                case .gone: "gone"
                case .refused: "refused"
                case .failed(let fault) where fault.kind == .throttled: "throttled"
                case .failed: "failed"
                case .unknown: "unknown"
                case .notCalled: "not_called"
                }
            if case .accepted(let id) = delivery { reply = id }
            if case .gone(_, let since) = delivery { gone_at = since?.timeIntervalSince1970 }
            let fault = delivery.fault
            `class` = fault?.kind.rawValue
            code = fault?.code
            error = fault?.what
            wait = fault?.wait.map { Double($0.components.seconds) + Double($0.components.attoseconds) / 1e18 }
            let (seconds, attoseconds) = took.components
            ms = Int(min(seconds, 1_000_000)) * 1000 + Int(attoseconds / 1_000_000_000_000_000)
        }
    }
}

extension NoticeStore {
    /// For our own structs, which can always be encoded.
    static func json(of value: some Encodable) -> [UInt8] {
        guard let data = try? JSONEncoder().encode(value) else { preconditionFailure("a value of ours is not JSON") }
        return Array(data)
    }
}
