import Faults
import JSON
import Listeners
import PageKit
import Postgres
import RoomKit
import Supervision
import Telemetry
import Transfers

/// The check-ins' room as a worker puts it together.
struct CheckInWiring: Sendable {
    /// nil: this worker does not watch.
    var checkInService: CheckInService?
    var routes: [Route] = []
    var deadman: (every: Duration, ping: @Sendable () async throws -> Void)?

    /// Until cancelled.
    func run() async {
        guard let checkInService else { return }
        guard let deadman else { return await checkInService.run() }
        async let _: Void = checkInService.run()  // cancelled and awaited when we leave
        await checkInService.report(every: deadman.every, to: deadman.ping)
    }

    var gauges: [RoomGauge] {
        get async {
            guard let checkInService else { return [] }
            return Self.gauges(of: await checkInService.gauge)
        }
    }

    private static func gauges(of gauge: CheckInService.Gauge) -> [RoomGauge] {
        func counter(_ name: String, _ help: String, _ value: Int) -> RoomGauge {
            RoomGauge(name: name, kind: "counter", help: help, value: Double(value))
        }
        return [
            RoomGauge(
                name: "checkins_oldest_overdue_seconds",
                help: "How long the oldest due check-in or step had waited at the last look.", value: gauge.oldest),
            RoomGauge(
                name: "checkins_looked_seconds", help: "How long ago this worker last looked; -1 for never.",
                value: gauge.lastStep.map { (ContinuousClock.now - $0) / .seconds(1) } ?? -1),
            counter("checkins_expired_total", "Check-ins that were missed.", gauge.expired),
            counter("checkins_warned_total", "Warnings given to those who are watched.", gauge.warned),
            counter("checkins_escalated_total", "Steps taken because nobody had answered.", gauge.escalated),
            counter("checkins_failed_total", "Watches and alarms that could not be dealt with.", gauge.failed),
        ]
    }
}

extension RoomContext {
    /// Stores this process's settings in the database, where all callers see them.
    func applyCheckInRules() async throws {
        guard let rules = settings.checkInRules?.compact else { return }
        _ = try await withSchema { connection in try await CheckInAdmin.setRules(rules, on: connection) }
    }

    func checkIns(host: PageHost) throws -> CheckInWiring {
        var wiring = CheckInWiring()
        // Every worker that listens answers links, whether it watches or not.
        if let links = settings.links {
            wiring.routes = AlarmRoutes(pool: pool, log: log, links: links, host: host).all
        }
        guard settings.runsCheckIns != false else { return wiring }
        var options = CheckInService.Options(database: database, name: name)
        // Nobody has said: where people are watched over, a worker that could do it and does not would be the worst of defaults.
        if settings.runsCheckIns == nil {
            options.glance = {
                try await pool.withConnection { connection throws(PostgresError) in
                    try await CheckInAdmin.isWanted(on: connection)
                }
            }
        }
        options.poll = min(settings.poll, .seconds(1))
        wiring.checkInService = CheckInService(options, log: log)
        if let url = settings.text(.deadmanURL) {
            let client = HTTPClient()
            let ping: @Sendable () async throws -> Void = {
                try await supervisor.call("deadman", deadline: .seconds(10)) { _ in
                    var request = HTTPRequest("GET", url)
                    request.limits.bodyBytes = 65_536
                    request.limits.total = .seconds(10)
                    let response: HTTPResponse
                    do throws(TransferError) {
                        response = try await client.send(request)
                    } catch {
                        // Neither the address nor the answer is logged: both may contain secrets.
                        throw Fault(.unavailable, "the dead-man service cannot be reached: \(error.sentence)")
                    }
                    if let kind = ErrorClass(http: response.head.status) {
                        throw Fault(kind, code: "\(response.head.status)", "the dead-man service refused")
                    }
                }
            }
            wiring.deadman = (settings.duration(.deadmanEvery), ping)
        }
        return wiring
    }
}
