import CLinux
package import Gateway
import Glibc
import JSON
package import Listeners
package import Postgres
package import Supervision
import Telemetry
import Threads

/// The gateway with its listener: for `millrace gateway`, and for a worker that serves apps.
package struct GatewayWiring: Sendable {
    package let service: GatewayService
    package let listener: Listener
    let access: GatewayAccess
    let feed: FeedHub
    let jobs: JobHub
    private let calls: Pool
    private let own: Pool
    private let files: Pool

    fileprivate init(
        service: GatewayService, listener: Listener, access: GatewayAccess, feed: FeedHub, jobs: JobHub, calls: Pool,
        own: Pool, files: Pool
    ) {
        self.service = service
        self.listener = listener
        self.access = access
        self.feed = feed
        self.jobs = jobs
        self.calls = calls
        self.own = own
        self.files = files
    }

    /// Refuses a login that may not say who calls. If the database cannot be asked, the gateway starts, and answers 503 until it can.
    package func checkLogin() async throws(Failure) {
        let found = try? await own.withConnection { connection throws(PostgresError) in
            try await GatewayTrust.look(on: connection)
        }
        guard let trust = found ?? nil else { return }
        if let objection = trust.objection { throw Failure(.failed, objection.sentence, hint: objection.hint) }
        if trust.isSuperuser {
            service.log.warning(
                "the gateway's login is a superuser: a flaw in any function would expose everything",
                [("login", trust.login)])
        }
    }

    /// Until the listener is stopped, or its task is cancelled.
    package func run() async throws {
        do {
            try await checkLogin()
        } catch {
            service.log.error("the gateway does not start", [("reason", error.sentence), ("advice", error.hint ?? "")])
            throw error
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await service.run() }
            group.addTask { await access.run() }
            group.addTask { await feed.run() }
            group.addTask { await jobs.run() }
            group.addTask { await beat() }
            try await listener.run()
            group.cancelAll()
        }
        await calls.close()
        await own.close()
        await files.close()
    }
}

/// When many connections have been closed. What they had stands in pages that the C library keeps until it is told. A stream frees the last of
/// its own after its connection has been closed, on a busy machine long after: so it is told at each beat of a minute.
struct TakenMemory {
    private static let beats = 12
    private var peak = 0
    private var beatsLeft = 0

    mutating func mayGoBack(most: Int, now connections: Int) -> Bool {
        peak = max(peak, most)
        if peak - connections >= max(100, peak / 4) {
            peak = connections
            beatsLeft = Self.beats
        }
        guard beatsLeft > 0 else { return false }
        beatsLeft -= 1
        return true
    }
}

extension GatewayWiring {
    /// Tells the fleet that it lives, and at the end that it stops.
    private func beat() async {
        let signal = Wakeup()
        let name = "\(Settings.hostName):\(getpid())"
        var memory = TakenMemory()
        while !Task.isCancelled {
            let counts = listener.counts
            // A stream can end long after its connection, on a busy machine; what it holds is free only then.
            let streams = await feed.streams + jobs.streams
            let most = listener.mostConnections() + streams
            if memory.mayGoBack(most: most, now: counts.connections + streams) {
                await Thread.run(name: "gateway-trim") { _ = malloc_trim(0) }
            }
            do {
                try await own.withConnection { connection throws(PostgresError) in
                    _ = try await connection.query(
                        "select millrace.gateway_beat($1, $2, $3, $4, $5)",
                        [
                            .text(name), .text(listener.address.description), .int4(Int32(clamping: streams)),
                            .int8(Int64(counts.answered.values.reduce(0, +))), .text(service.options.version),
                        ], deadline: .seconds(5)
                    ) { _ throws(PostgresError) in }
                }
            } catch {
                if !Task.isCancelled {
                    service.log.warning("the gateway cannot report that it is running", [("error", "\(error)")])
                }
            }
            await signal.wait(for: .seconds(5))
        }
        let own = own
        // Said also though the task is over.
        await uncancelled {
            _ = try? await own.withConnection { connection throws(PostgresError) in
                _ = try await connection.query(
                    "select millrace.gateway_leave($1)", [.text(name)], deadline: .seconds(3)
                ) {
                    _ throws(PostgresError) in
                }
            }
        }
    }

    /// Why it is not ready; nil: it is.
    fileprivate static func reason(_ service: GatewayService, _ access: GatewayAccess) async -> String? {
        if let trouble = access.troubles.first { return trouble }
        do {
            _ = try await service.catalogue.contents()
            return nil
        } catch {
            return "the database does not say what may be called: \(error)"
        }
    }
}

extension Composer {
    package func gateway(supervisor: Supervisor, hearing: NotificationHub, version: String) throws -> GatewayWiring {
        let calls = Pool(database, size: settings.integer(.gatewayPool))
        let own = Pool(database, size: 4)
        // Uploads and downloads hold up no call, and not the counting of calls.
        let files = Pool(database, size: 4)
        let access = try gatewayAccess(pool: own, supervisor: supervisor)
        let data = GatewayDatabase(pool: calls, role: settings.clientRole)
        let most = settings.integer(.gatewayStreams)
        var streaming = FeedHub.Options()
        streaming.streams = most
        let feed = FeedHub(data, connecting: database, hearing: hearing, options: streaming, log: log)
        let jobs = JobHub(pool: own, log: log)
        var options = GatewayService.Options(
            access: { try await access.caller(of: $0) }, role: settings.clientRole, version: version)
        options.origins = Set(ListText.items(settings.text(.gatewayOrigins) ?? ""))
        options.proxies = settings.addresses(.gatewayProxies)
        options.rates = Settings.gatewayRates(in: settings.string(.gatewayRates)) ?? GatewayRates()
        options.routes = StreamRoutes(feed: FeedStreams(hub: feed), jobs: JobStreams(hub: jobs, database: data)).table
        options.signedRoutes = blobs(pool: files).routes
        let service = GatewayService(options, pool: calls, own: own, log: log)
        return GatewayWiring(
            service: service, listener: try gatewayListener(service, access, connections: most), access: access,
            feed: feed, jobs: jobs, calls: calls, own: own, files: files)
    }

    private func gatewayListener(
        _ service: GatewayService, _ access: GatewayAccess, connections: Int
    ) throws(Failure) -> Listener {
        var options = Listener.Options(address: try settings.address(.gatewayListen, of: "the gateway"), token: nil)
        options.connections = connections
        // 10,000 open streams: 418 MB, and 590 with twice as much.
        options.connectionMemory = 32_768
        // Behind a proxy all come from one address; the rates of the service tell its clients apart.
        options.perAddress = connections
        options.grace = min(settings.drainTimeout, .seconds(10))
        let alive = Route(.get, "/livez", access: .everyone) { _ in .json("{\"live\":true}\n") }
        let ready = Route(.get, "/readyz", access: .everyone) { _ in
            let reason = await GatewayWiring.reason(service, access)
            return .json(
                reason.map { "{\"ready\":false,\"reason\":\(JSONText.quoted($0))}\n" } ?? "{\"ready\":true}\n",
                status: reason == nil ? 200 : 503)
        }
        do {
            return try service.listener(options, with: [alive, ready])
        } catch {
            throw Failure(error.needsCare ? .misused : .failed, error.description, hint: error.hint)
        }
    }
}
