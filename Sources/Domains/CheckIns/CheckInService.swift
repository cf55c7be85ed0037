package import Postgres
package import Telemetry

/// Serves the watches: sleeps until the database says that something is due, processes it in batches, and reports that it lives. Several
/// services share the work, because none takes a row that another holds. The worker's own clock decides nothing: the database says how long
/// to wait, and the service asks again at the poll interval at the latest.
package actor CheckInService {
    package struct Options: Sendable {
        package var database: ConnectionOptions
        package var name: String
        /// How many rows one transaction takes.
        package var batch = 100
        package var poll = Duration.seconds(1)
        /// Checks whether there is any watch; until there is, the service does nothing else. nil: it serves whatever there is.
        package var glance: (@Sendable () async throws -> Bool)?

        package init(database: ConnectionOptions, name: String) {
            self.database = database
            self.name = name
        }
    }

    /// What the service did, and how far behind it is.
    package struct Gauge: Sendable, Equatable {
        package var expired = 0
        package var warned = 0
        package var escalated = 0
        package var failed = 0
        /// How long the oldest due watch had been due at the last look, in seconds.
        package var oldest: Double = 0
        package var lastStep: ContinuousClock.Instant?

        package init() {}

        /// True when it looked within this time and nothing has waited for longer than this.
        package func isWell(within: Duration, now: ContinuousClock.Instant) -> Bool {
            guard let lastStep else { return false }
            return now - lastStep <= within && oldest <= within / .seconds(1)
        }
    }

    private struct Step: Sendable {
        var taken: Int
        var expired: Int
        var warned: Int
        var escalated: Int
        var failed: Int
        /// nil: nothing will be due.
        var wait: Double?
        var oldest: Double
    }

    private let options: Options
    private let log: Log
    package private(set) var gauge = Gauge()
    private let link: KeptConnection
    /// There are watches as far as we know, or nobody checks.
    private var isWanted = false
    /// The outage has been logged.
    private var isAway = false

    package init(_ options: Options, log: Log = .silent) {
        self.options = options
        self.log = log
        link = KeptConnection(options.database.urgent(.urgent), name: "check-ins")
    }

    /// Until its task is cancelled. It goes on when the database is unreachable.
    package func run() async {
        isWanted = options.glance == nil
        await RetryingLoop.run(cap: .seconds(2)) { _ in
            try await self.turn()
        } failed: { error in
            if Task.isCancelled { return .end }
            self.complain(error)
            await self.link.close()
            return .pause
        }
        await link.close()
    }

    private func turn() async throws {
        if !isWanted, let glance = options.glance {
            guard try await glance() else {
                await link.close()
                (gauge.oldest, gauge.lastStep) = (0, .now)
                try? await Task.sleep(for: options.poll)  // cancelled: the loop ends
                return
            }
            isWanted = true
        }
        let step = try await link.use { connection throws(PostgresError) in try await self.step(on: connection) }
        note(step)
        if isAway { log.info("check-ins are served again") }
        isAway = false
        if step.wait == nil { isWanted = options.glance == nil }
        await rest(after: step)
    }

    /// Logged once per outage, and only if there are watches as far as we know; else the worker's other logs are enough.
    private func complain(_ error: any Error) {
        if isWanted, !isAway {
            log.warning("check-ins cannot be served now", [("reason", "\(error)")])
            isAway = true
        } else {
            log.debug("check-ins cannot be served now", [("reason", "\(error)")])
        }
    }

    private func rest(after step: Step) async {
        var rest = options.poll
        if let wait = step.wait { rest = min(rest, max(.seconds(wait), .zero)) }
        // Another service holds what is due and was not taken; it is free in a moment.
        if step.taken == 0 { rest = max(rest, .milliseconds(step.oldest > 0 ? 20 : 1)) }
        if rest > .zero { try? await Task.sleep(for: rest, tolerance: .zero) }  // cancelled: the loop ends
    }

    private func step(on connection: Connection) async throws(PostgresError) -> Step {
        try await connection.query(
            "select taken, expired, warned, escalated, failed, wait, oldest from millrace.watch_step($1, $2)",
            [.text(options.name), .int4(Int32(clamping: options.batch))], deadline: .seconds(30)
        ) { row throws(PostgresError) in
            Step(
                taken: Int(try row.int(0)), expired: Int(try row.int(1)), warned: Int(try row.int(2)),
                escalated: Int(try row.int(3)), failed: Int(try row.int(4)), wait: row.optionalDouble(5),
                oldest: row.optionalDouble(6) ?? 0)
        }.first ?? Step(taken: 0, expired: 0, warned: 0, escalated: 0, failed: 0, wait: nil, oldest: 0)
    }

    private func note(_ step: Step) {
        gauge.expired += step.expired
        gauge.warned += step.warned
        gauge.escalated += step.escalated
        gauge.failed += step.failed
        gauge.oldest = step.oldest
        gauge.lastStep = .now
        if step.failed > 0 {
            log.error(
                "some watches or alarms failed; each has its reason, and is tried again within a minute",
                [("count", "\(step.failed)")])
        }
        if step.expired > 0 { log.debug("check-ins were missed", [("alarms", "\(step.expired)")]) }
    }

    /// Pings an outside monitor at this interval while everything works. When the pings stop, the monitor alerts us.
    package func report(every: Duration, to ping: @Sendable () async throws -> Void) async {
        var wasHeard = true
        while !Task.isCancelled {
            if gauge.isWell(within: max(.seconds(10), options.poll * 3), now: .now) {
                do {
                    try await ping()
                    if !wasHeard { log.info("the dead-man service answers again") }
                    wasHeard = true
                } catch {
                    if wasHeard, !Task.isCancelled {
                        log.warning("the dead-man service does not answer", [("reason", "\(error)")])
                    }
                    wasHeard = false
                }
                try? await Task.sleep(for: every)  // cancelled: the loop ends
            } else {
                try? await Task.sleep(for: min(every, .seconds(1)))  // cancelled: the loop ends
            }
        }
    }
}
