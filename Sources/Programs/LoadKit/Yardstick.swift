package import CYardstick
package import CommandKit
import Glibc
package import Postgres
import Threads

/// The hand-written limit: bare C loops over the queue's own tables (see CYardstick), run beside the real path.
package struct Yardstick: Sendable {
    package struct Result: Sendable {
        package var jobs: Int
        package var seconds: Double

        package init(jobs: Int, seconds: Double) {
            (self.jobs, self.seconds) = (jobs, seconds)
        }

        package var perSecond: Double { Double(jobs) / seconds }

        package static func += (sum: inout Result, other: Result) {
            sum.jobs += other.jobs
            sum.seconds += other.seconds
        }
    }

    /// A line of jobs: what one lane of one queue holds.
    package struct Line: Sendable {
        package var queue: Int32
        package var lane: Int32
        package var kind: Int32
    }

    package let location: String

    package init(_ invocation: Invocation) throws(Failure) {
        self.init(at: try invocation.connectionOptions().location)
    }

    package init(at location: String) {
        self.location = location
    }

    /// The queue and the kind are made by enqueuing and cancelling nothing: they must exist already.
    package static func line(queue: String, kind: String, on connection: Connection) async throws -> Line {
        let found = try await connection.query(
            """
            select q.id, k.id from millrace.queue q cross join millrace.kind k
             where q.name = $1 and q.main is null and q.tenant is null and not q.keyed and k.name = $2
            """, [.text(queue), .text(kind)]
        ) { row throws(PostgresError) in (Int32(try row.int(0)), Int32(try row.int(1))) }.first
        guard let (queue, kind) = found else { throw Failure("the queue \(queue) has no jobs of kind \(kind)") }
        let lane = try await connection.query(
            "select lane from millrace.ready where queue = $1 order by lane limit 1", [.int4(queue)]
        ) {
            row throws(PostgresError) in Int32(try row.int(0))
        }.first
        return Line(queue: queue, lane: lane ?? 0, kind: kind)
    }

    /// Takes and ends all that waits in a line, or a given number on each connection.
    package func drain(
        _ line: Line, batch: Int = 1000, threads: Int = 2, most: Int = .max, on connection: Connection
    ) async throws -> Result {
        let session = Int64.random(in: 1...Int64.max)
        try await connection.execute(
            "select millrace.session_open($1, 'yardstick', 'yardstick', $2, '0', null, array[$3::int], 1, true)",
            [.int8(session), .int4(getpid()), .int4(line.kind)])
        let result = try await run { location in
            yardstick_drain(
                location, session, line.queue, line.lane, line.kind, Int32(batch), Int32(threads), Int64(most))
        }
        try await connection.execute("select millrace.session_close($1)", [.int8(session)])
        return result
    }

    package func enqueueBulk(_ line: Line, jobs: Int, batch: Int = 1000) async throws -> Result {
        try await run { location in
            yardstick_enqueue_bulk(location, line.queue, line.lane, line.kind, Int64(jobs), Int32(batch))
        }
    }

    package func run(_ body: @escaping @Sendable (String) -> yardstick_result) async throws -> Result {
        let result = await Thread.run(name: "yardstick") { [location] in body(location) }
        return try Result(
            result, "the hand-written limit", hint: "it needs the rights of the schema's owner")
    }
}

extension Yardstick.Result {
    /// What a C loop measured, or the failure that it told of.
    package init(_ result: yardstick_result, _ what: String, hint: String? = nil) throws(Failure) {
        var failure = result.failure
        let said = withUnsafeBytes(of: &failure) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        guard said.isEmpty else { throw Failure("\(what) could not be measured: \(said)", hint: hint) }
        self.init(jobs: Int(result.jobs), seconds: result.seconds)
    }
}
