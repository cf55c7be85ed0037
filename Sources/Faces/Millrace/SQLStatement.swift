import Encryption
public import FoundationEssentials
public import MillraceJobs
import MillraceQueues
import Traces

/// A statement for a connection of any driver, to enqueue or cancel a job in a transaction that is open there.
///
/// ```swift
/// let statement = try SendReceipt(order: 7).enqueueStatement(unique: "receipt-7")
/// // statement.text has a $n for each of statement.parameters; the text casts each of them, so it may be bound as text, in the form
/// // of its `text`, or as its own type.
/// ```
/// The function that makes a statement documents what it returns. If the transaction is rolled back, nothing has happened. Every type,
/// function and operator in the text is written with its schema, so your connection's `search_path` does not change what it means.
public struct SQLStatement: Sendable, Equatable {
    /// A value for a `$n`; nil is NULL.
    public enum Parameter: Sendable, Equatable {
        /// `text`
        case text(String?)
        /// `jsonb`, as JSON text
        case json(String?)
        /// `bigint`
        case integer(Int64?)
        /// `double precision`
        case double(Double?)
        /// `boolean`
        case boolean(Bool?)
        /// `timestamptz`
        case timestamp(Date?)
        /// `text[]`
        case texts([String])

        /// In Postgres's text form, which every driver can bind; nil is NULL.
        public var text: String? {
            switch self {
            case .text(let value), .json(let value): value
            case .integer(let value): value.map { "\($0)" }
            case .double(let value): value.map { "\($0)" }
            case .boolean(let value): value.map { $0 ? "true" : "false" }
            case .timestamp(let value): value.map(Self.spelled)
            case .texts(let values): "{\(values.map(Self.quoted).joined(separator: ","))}"
            }
        }

        private static func quoted(_ text: String) -> String {
            "\"\(text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\""))\""
        }

        /// To the microsecond, which is what Postgres keeps.
        private static func spelled(_ date: Date) -> String {
            let whole = date.timeIntervalSince1970.rounded(.down)
            let micros = Int(((date.timeIntervalSince1970 - whole) * 1_000_000).rounded(.down))
            let seconds = Date(timeIntervalSince1970: whole).formatted(.iso8601)
            let digits = String(micros)
            return "\(seconds.dropLast()).\(String(repeating: "0", count: 6 - digits.count))\(digits)Z"
        }
    }

    /// With `$1`, `$2`, … for the parameters.
    public let text: String
    /// In their order.
    public let parameters: [Parameter]
}

extension Job {
    /// The statement that enqueues this job: one row of one `bigint`, the job's number, or the holder's where its unique key is held.
    /// The parameters are those of ``Client/enqueue(_:in:at:unique:uniqueFor:onConflict:queue:priority:tenant:limitKey:maxAttempts:tags:after:metadata:)``.
    ///
    /// - Parameter keys: encrypt the arguments of a kind that asks for it.
    public func enqueueStatement(
        in delay: Duration? = nil, at time: Date? = nil, unique: String? = nil, uniqueFor: Duration? = nil,
        onConflict: OnConflict = .skip, queue: String? = nil, priority: Int? = nil, tenant: String? = nil,
        limitKey: String? = nil, maxAttempts: Int? = nil, tags: [String] = [], after: After? = nil,
        metadata: (any Encodable & Sendable)? = nil, keys: EncryptionKeys = .environment
    ) throws(QueueError) -> SQLStatement {
        let options = EnqueueOptions(
            delay: delay, runAt: time, uniqueKey: unique, uniqueFor: uniqueFor, onConflict: onConflict, queue: queue,
            priority: priority, tenant: tenant, limitKey: limitKey, maxAttempts: maxAttempts, tags: tags, after: after,
            metadata: metadata)
        return try enqueueStatement(options: options, keys: keys)
    }

    /// The same, with options that stand in a value.
    public func enqueueStatement(
        options: EnqueueOptions, keys: EncryptionKeys = .environment
    ) throws(QueueError) -> SQLStatement {
        try .enqueue(try NewJob(self, options), keys: keys)
    }
}

extension SQLStatement {
    /// Enqueues a job of any kind, by name: one row of one `bigint`, its number, or the holder's where its unique key is held.
    public static func enqueue(
        _ job: NewJob, keys: EncryptionKeys = .environment
    ) throws(QueueError) -> SQLStatement {
        let job = job.traced
        let args = job.encrypted ? try sealed(job.args, kind: job.kind, keys) : job.args
        return SQLStatement(
            text: """
                select millrace.enqueue($1::pg_catalog.text, $2::pg_catalog.jsonb, $3::pg_catalog.text, $4::pg_catalog.int4, \
                coalesce(millrace.now() operator(pg_catalog.+) pg_catalog.make_interval(secs => $5::pg_catalog.float8), \
                $6::pg_catalog.timestamptz), $7::pg_catalog.text, $8::pg_catalog.text, $9::pg_catalog.text, \
                $10::pg_catalog.text, $11::pg_catalog.int4, $12::pg_catalog.text[], $13::pg_catalog.jsonb, $14::pg_catalog.jsonb)
                """,
            parameters: [
                .text(job.kind), .json(string(args)), .text(job.queue), .integer(job.priority.map { Int64($0) }),
                .double(job.delay.map { $0 / .seconds(1) }), .timestamp(job.runAt), .text(job.uniqueKey),
                .text(job.onConflict.rawValue), .text(job.limitKey), .text(job.tenant),
                .integer(job.maxAttempts.map { Int64($0) }), .texts(job.tags),
                .json(job.metadata.map(string) ?? "{}"), .json(string(job.allOptions)),
            ])
    }

    /// Enqueues many jobs of one kind, all or none: one row of two `bigint`s, the first and the last of their numbers. None for no jobs.
    ///
    /// Within a handler they belong to the run's trace, and so does what your transaction enqueues after them: the statement sets
    /// `millrace.traceparent` for the transaction.
    public static func enqueue<Work: Job>(
        contentsOf jobs: [Work], in delay: Duration? = nil, queue: String? = nil, priority: Int? = nil,
        tenant: String? = nil, limitKey: String? = nil, maxAttempts: Int? = nil, keys: EncryptionKeys = .environment
    ) throws(QueueError) -> SQLStatement {
        var args: [String] = []
        args.reserveCapacity(jobs.count)
        for job in jobs {
            let plain = try Client.encode(job)
            args.append(string(Work.encrypted ? try sealed(plain, kind: Work.kind, keys) : plain))
        }
        let version = Work.version > 0 ? ", the_version => \(Work.version)" : ""
        let rest = """
            $2::pg_catalog.text[], $3::pg_catalog.text, $4::pg_catalog.int4, \
            millrace.now() operator(pg_catalog.+) pg_catalog.make_interval(secs => $5::pg_catalog.float8), \
            $6::pg_catalog.text, $7::pg_catalog.int4, $8::pg_catalog.text\(version)
            """
        let parameters: [Parameter] = [
            .text(Work.kind), .texts(args), .text(queue), .integer(priority.map { Int64($0) }),
            .double(delay.map { $0 / .seconds(1) }), .text(tenant), .integer(maxAttempts.map { Int64($0) }),
            .text(limitKey),
        ]
        guard let trace = TraceContext.current else {
            return SQLStatement(
                text: "select first, last from millrace.enqueue_bulk($1::pg_catalog.text, \(rest))",
                parameters: parameters)
        }
        // Only the first argument makes Postgres set before it calls.
        return SQLStatement(
            text: """
                with named as materialized (\
                select pg_catalog.set_config('millrace.traceparent', $9::pg_catalog.text, true) as said, \
                pg_catalog.set_config('millrace.tracestate', $10::pg_catalog.text, true) as said_too) \
                select e.first, e.last from named cross join lateral millrace.enqueue_bulk(\
                case when named.said is not null then $1::pg_catalog.text end, \(rest)) e
                """, parameters: parameters + [.text(trace.traceparent), .text(trace.state ?? "")])
    }

    /// Asks for a job's end: one row of one `boolean`, false when it had ended already.
    public static func cancel(_ id: Int64) -> SQLStatement {
        SQLStatement(text: "select millrace.cancel($1::pg_catalog.int8)", parameters: [.integer(id)])
    }

    /// Runs a dead or cancelled job again, or a scheduled one now: one row of one `boolean`, false when there was nothing to do.
    public static func retry(_ id: Int64, fresh: Bool = false) -> SQLStatement {
        SQLStatement(
            text: """
                select case when $2::pg_catalog.bool then millrace.retry_fresh($1::pg_catalog.int8) \
                else millrace.retry($1::pg_catalog.int8) end
                """, parameters: [.integer(id), .boolean(fresh)])
    }

    private static func string(_ json: [UInt8]) -> String { String(decoding: json, as: UTF8.self) }

    private static func sealed(
        _ args: [UInt8], kind: String, _ keys: EncryptionKeys
    ) throws(QueueError) -> [UInt8] {
        let ring = try keys.ring()
        do {
            return try ring.seal(args, kind: kind)
        } catch {
            throw QueueError(error)
        }
    }
}
