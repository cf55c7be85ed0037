import Glibc
import Synchronization
package import Telemetry
import Threads

/// Answers HTTP on one address: the routes that rooms bring, and nothing else. Handlers are ordinary async Swift; the library's
/// thread never waits for them, nor they for it.
package final class Listener: Sendable {
    package struct Options: Sendable {
        package var address: ListenAddress
        package var token: AccessToken?
        /// Every route checks its callers itself, so no token is needed beyond this machine.
        package var isGuarded = false
        /// At once, in all: at most half of the descriptors that this process may have, or all but 4,096 if that is more.
        package var connections = 1000
        /// At once from one address that is not this machine.
        package var perAddress = 100
        /// What the library may use for a connection, in bytes; it touches half of it at once. A head of 16 KiB needs 32,768.
        package var connectionMemory = 65_536
        /// How long requests may continue when it stops.
        package var grace = Duration.seconds(10)
        /// The form of an error that the listener finds before a handler is called; nil: that of `ErrorAnswer`.
        package var refusing: (@Sendable (ErrorAnswer, [Header]) -> Response)?
        /// Routes that come while it runs.
        package var more: (@Sendable () -> [Route])?
        package var headPatience = Duration.seconds(15)
        package var stallPatience = Duration.seconds(20)

        package init(address: ListenAddress, token: AccessToken? = nil) {
            self.address = address
            self.token = token
        }
    }

    /// Counts of answers by the first digit of the status.
    package struct Counts: Sendable {
        package var answered: [Int: Int] = [:]
        /// Clients that went, or that used up their time, before they had their answer.
        package var broken = 0
        package var connections = 0

        package init() {}
    }

    /// With the port that was chosen if 0 was asked for.
    package let address: ListenAddress
    private let socket: Int32
    private let options: Options
    private let log: Log
    private let openConnections: OpenConnections
    private let daemon: Daemon
    private let tally: AnswerTally
    private let connections: Int
    private let stopping = Wakeup()

    /// Takes the address at once; connections wait until `run`.
    package init(_ options: Options, routes: [Route], log: Log) throws(ListenerError) {
        guard options.address.isLoopback || options.token != nil || options.isGuarded else {
            throw .needsToken(options.address.description)
        }
        (socket, address) = try options.address.open()
        self.options = options
        self.log = log
        connections = min(options.connections, max(Self.descriptors / 2, Self.descriptors - 4096))
        openConnections = OpenConnections(
            OpenConnections.Limits(
                connections: connections, perAddress: options.perAddress,
                patience: ConnectionDeadline.Limits(head: options.headPatience, stall: options.stallPatience)))
        let tally = AnswerTally(log)
        self.tally = tally
        daemon = Daemon(
            HeadRules(routes: routes, more: options.more, token: options.token, refusing: options.refusing),
            openConnections,
            serve: { exchange, route, request in
                Task { await Self.serve(exchange, route, request, log) }  // each is cancelled when its own client goes
            },
            ended: { exchange, isWhole in tally.add(exchange, isWhole: isWhole) })
    }

    /// The most connections that were open at once since this was asked last.
    package func mostConnections() -> Int { openConnections.takeMost() }

    package var counts: Counts {
        var counts = tally.counts
        counts.connections = openConnections.count
        return counts
    }

    package func stop() { stopping.fire() }

    /// Answers until `stop`, or until its task is cancelled; then lets requests end, and cuts those that do not.
    package func run() async throws(ListenerError) {
        guard daemon.start(on: socket, connections: connections + 16, memory: options.connectionMemory) else {
            Glibc.close(socket)
            throw .refusedByLibrary(address.description)
        }
        log.info("listening", [("address", address.description)])
        while !Task.isCancelled {
            if await stopping.wait(for: .milliseconds(500)) { break }
            sweep()
        }
        // A cancelled caller must not cut short what others wait for.
        await uncancelled { await self.close() }
    }

    private func sweep() {
        for exchange in openConnections.sweep(at: .now) { exchange.abort() }
    }

    private func close() async {
        daemon.quiesce()
        await quiet(for: options.grace)
        let late = daemon.exchanges
        if !late.isEmpty { log.warning("cutting requests that do not end", [("requests", "\(late.count)")]) }
        for exchange in late { exchange.abort() }
        let daemon = daemon
        await Thread.run(name: "http-stop") { daemon.stop() }
        log.info("stopped listening", [("address", address.description)])
    }

    private func quiet(for limit: Duration) async {
        let deadline = ContinuousClock.now + limit
        while case let open = daemon.exchanges, !open.isEmpty, ContinuousClock.now < deadline {
            for exchange in open { exchange.tellClosing() }
            sweep()
            await tally.changed.wait(for: .milliseconds(100))
        }
    }

    private static func serve(_ exchange: Exchange, _ route: Route, _ request: Request, _ log: Log) async {
        var response: Response
        do {
            response = try await route.handle(request)
        } catch let refusal as ErrorAnswer {
            response = refusal.response
        } catch is CancellationError {
            response = ErrorAnswer(.unavailable, "the request was cancelled").response
        } catch {
            log.error("a request failed", [("http.path", route.pattern), ("error", "\(error)")])
            response = ErrorAnswer(.internal, "the server failed; its log says why").response
        }
        exchange.offer(response)
        guard case .stream(let write) = response.body, !exchange.isHead else { return exchange.finish(failed: false) }
        do {
            try await write(BodyWriter(exchange: exchange))
            exchange.finish(failed: false)
        } catch {
            if !(error is CancellationError) {
                log.error("an answer broke off", [("http.path", route.pattern), ("error", "\(error)")])
            }
            exchange.finish(failed: true)
        }
    }

    private static var descriptors: Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        return Int(clamping: limit.rlim_cur)
    }
}
