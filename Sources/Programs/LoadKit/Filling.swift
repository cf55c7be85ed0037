package import CommandKit
import MillraceQueues
package import Postgres

/// Jobs put in line in bulk, as a client would with the library; progress in tenths.
package struct Filling: Sendable {
    package let connection: Connection
    package let live: LiveRegion
    /// Nil: no progress, for what is over in seconds and being timed.
    package let label: String?
    package let total: Int
    private var done = 0
    private var tenths = 0

    package init(_ invocation: Invocation, on connection: Connection, label: String?, total: Int) {
        self.connection = connection
        self.label = label
        self.total = total
        live = invocation.console.live()
    }

    /// One call.
    package mutating func add(
        _ kind: String, _ args: [[UInt8]], queue: String? = nil, priority: Int? = nil, tenant: String? = nil
    ) async throws(PostgresError) {
        _ = try await Queue.enqueueBulk(
            kind: kind, args: args, queue: queue, priority: priority, tenant: tenant, on: connection,
            deadline: .seconds(300))
        done += args.count
        let now = done * 10 / max(1, total)
        guard let label, now > tenths else { return }
        tenths = now
        live.update(["\(label) \(Humane.count(done)) of \(Humane.count(total))"])
        if done >= total { live.update([]) }
    }

    /// As many calls as it takes.
    package mutating func add(
        _ kind: String, count: Int, chunk: Int = 50_000, queue: String? = nil, priority: Int? = nil,
        args: @Sendable (Int) -> String = { "{\"n\": \($0)}" }
    ) async throws(PostgresError) {
        var first = 0
        while first < count {
            let last = min(count, first + chunk)
            let texts = (first..<last).map { Array(args($0).utf8) }
            try await add(kind, texts, queue: queue, priority: priority)
            first = last
        }
    }
}
