import Digests
import Encodings
import Faults
import FoundationEssentials
package import Listeners
package import Postgres
package import Telemetry
import Threads
import Traces

/// The door for apps: it checks who calls, and carries calls to the database, whose own rights decide.
package struct GatewayService: Sendable {
    package struct Options: Sendable {
        /// Who calls: throws a `GatewayProblem` when the token is not good.
        package var access: @Sendable (Request) async throws -> GatewayCaller
        /// The clients' role, which each call takes on.
        package var role: String
        package var version: String
        /// The origins whose pages may call, such as `https://app.example.com`.
        package var origins: Set<String> = []
        /// Proxies whose `X-Forwarded-For` counts, besides this machine.
        package var proxies: [AddressRange] = []
        package var rates = GatewayRates()
        package var turns = GatewayTurns()
        /// Who is refused for asking too much hears it after this, so that asking again at once costs others nothing.
        package var refusalPause = Duration.milliseconds(200)
        /// Time that only goes forward; tests move it.
        package var now: @Sendable () -> Duration = {
            GatewayService.start.duration(to: .now)
        }
        /// Paths of other parts, which stand in the document too.
        package var routes: [GatewayRoute] = []
        /// Paths with links that are signed, as they are: of uploads and downloads.
        package var signedRoutes: [Route] = []

        package init(
            access: @escaping @Sendable (Request) async throws -> GatewayCaller, role: String, version: String
        ) {
            self.access = access
            self.role = role
            self.version = version
        }
    }

    /// The most bytes of a call's body.
    package static let mostOfBody = 1 << 20

    package let options: Options
    /// Calls as the caller.
    package let database: GatewayDatabase
    /// The gateway's own doors.
    package let pool: Pool
    package let catalogue: GatewayCatalogue
    package let log: Log
    let cors: CrossOrigin
    let limits: GatewayLimits
    let addresses: ClientAddress

    fileprivate static let start = ContinuousClock.now

    /// - Parameter pool: its login has the gateway's role, and may take on the clients' role.
    /// - Parameter own: for the gateway's own doors, so that long calls of apps keep nothing of it waiting.
    package init(_ options: Options, pool: Pool, own: Pool, log: Log) {
        self.options = options
        self.pool = own
        self.log = log
        database = GatewayDatabase(pool: pool, role: options.role)
        catalogue = GatewayCatalogue(pool: own, role: options.role, log: log)
        cors = CrossOrigin(origins: options.origins)
        limits = GatewayLimits(pool: own, log: log, now: options.now)
        addresses = ClientAddress(proxies: options.proxies)
    }

    /// A listener for its routes, which check their callers themselves, and for more.
    package func listener(_ given: Listener.Options, with more: [Route] = []) throws(ListenerError) -> Listener {
        var options = given
        options.isGuarded = true
        options.refusing = { refusal, headers in refused(refusal, headers) }
        return try Listener(options, routes: more + routes, log: log)
    }

    private var routes: [Route] {
        let table = table
        var routes = table.map { route in
            Route(route.method, route.path, access: .verified, limit: route.limit) { request in
                await answer(request, by: route)
            }
        }
        var paths: [String] = []
        for route in table where !paths.contains(route.path) { paths.append(route.path) }
        routes += paths.map { path in
            let methods = table.filter { $0.path == path }.map(\.method)
            return Route(.options, path, access: .verified, limit: 0) { request in
                cors.preflight(request.headers, methods: methods)
            }
        }
        return routes + options.signedRoutes
    }

    /// Follows the schema's changes, until its task is cancelled.
    package func run() async {
        let signal = Wakeup()
        while !Task.isCancelled {
            do {
                try await catalogue.refresh()
            } catch {
                if !Task.isCancelled {
                    log.warning("the list of functions cannot be read", [("error", "\(error)")])
                }
            }
            await signal.wait(for: .seconds(15))
        }
    }

    private func answer(_ request: Request, by route: GatewayRoute) async -> Response {
        let requestID = RequestID.of(request.headers)
        request.note("request", requestID)
        var response: Response
        do {
            response = try await handle(request, requestID, by: route)
        } catch {
            let problem = GatewayProblem(error)
            if problem.class == .internal {
                log.error(
                    "a call failed",
                    [("http.path", route.path), ("request", requestID), ("error", problem.cause ?? "\(error)")])
            }
            if problem.class == .throttled { await pause() }
            response = problem.response(requestID: requestID)
        }
        response.headers.append(Header("X-Request-Id", requestID))
        response.headers += cors.headers(for: request.headers["Origin"])
        return response
    }

    private func handle(_ request: Request, _ requestID: String, by route: GatewayRoute) async throws -> Response {
        let address = addresses.of(request)
        if address != request.peer { request.note("http.client", address) }
        let ofAddress = want(ofAddress: address)
        try await limits.check(ofAddress)
        switch route.handler {
        case .open(let handle):
            _ = try await limits.take([ofAddress])
            let response = try await handle(request)
            await limits.owe([want(ofAddress: address, response.furtherCalls)])
            return response
        case .authenticated(let handle):
            var known = try await caller(of: request, ofAddress)
            known.clockLag = ClientTime.lag(of: request.headers, at: Date())
            known.trace = request.headers["traceparent"].flatMap {
                TraceContext(traceparent: $0, tracestate: request.headers["tracestate"])
            }
            let caller = known
            let seat = try seat(of: caller)
            defer { seat.leave() }
            request.note("subject", Self.digest(caller.subject))
            if caller.device != nil, route.access != .tokenOrDevice {
                throw GatewayProblem(
                    .permission, "the token of a device is valid for /v1/sync only", field: "Authorization",
                    hint: "send the web token of the person who is signed in")
            }
            let functions = route.isOfFunctions ? [request.parameter("function"): 1] : [:]
            let cost = GatewayCost(calls: 1, functions: functions)
            let headers = try await limits.take([ofAddress] + wants(of: caller, cost))
            let call = GatewayCall(request: request, caller: caller, requestID: requestID) { cost in
                do {
                    _ = try await limits.take(wants(of: caller, cost))
                } catch {
                    // What was read in the person's turn keeps that turn meanwhile.
                    await pause()
                    throw error
                }
            }
            var response = try await handle(call)
            await limits.owe(wants(of: caller, GatewayCost(calls: response.furtherCalls)))
            response.headers += headers
            return response
        }
    }

    private func pause() async {
        // Who has gone needs no answer.
        try? await Task.sleep(for: options.refusalPause)
    }

    /// A token that is refused counts for the address it came from, and of one address a few are looked at at once.
    private func caller(of request: Request, _ ofAddress: RateLeases.Want) async throws -> GatewayCaller {
        do {
            return try await options.turns.tokens.withTurn(of: ofAddress.key) { try await options.access(request) }
        } catch {
            _ = try await limits.take([ofAddress])
            throw error
        }
    }

    private func seat(of caller: GatewayCaller) throws(GatewayProblem) -> Seat {
        do throws(Seats.Refusal) {
            return try options.turns.requests.take(caller.subject)
        } catch {
            throw GatewayProblem.crowded("requests of this person")
        }
    }

    private func want(ofAddress address: String, _ tokens: Int = 1) -> RateLeases.Want {
        RateLeases.Want(
            key: GatewayRates.key("a", AddressRange.client(address) ?? address), policy: "address",
            rate: options.rates.address ?? .unlimited, tokens: options.rates.address == nil ? 0 : tokens)
    }

    private func wants(of caller: GatewayCaller, _ cost: GatewayCost) -> [RateLeases.Want] {
        var wants: [RateLeases.Want] = []
        func add(_ key: String, _ policy: String, _ rate: GatewayRate?, _ tokens: Int) {
            // What is larger than the bucket empties it.
            guard let rate else { return }
            wants.append(RateLeases.Want(key: key, policy: policy, rate: rate, tokens: min(tokens, Int(rate.burst))))
        }
        add(GatewayRates.key("s", caller.subject), "subject", options.rates.subject, cost.calls)
        add(GatewayRates.key("o", caller.subject), "operations", options.rates.operations, cost.operations)
        for (name, uses) in cost.functions.sorted(by: { $0.key < $1.key }) {
            add(GatewayRates.key("f:\(name)", caller.subject), name, options.rates.functions[name], uses)
        }
        return wants
    }

    /// What the listener refuses before a handler is called, in the form of the rest.
    private func refused(_ refusal: ErrorAnswer, _ headers: [Header]) -> Response {
        let requestID = RequestID.of(headers)
        var response = GatewayProblem(refusal).response(requestID: requestID)
        response.headers.append(Header("X-Request-Id", requestID))
        response.headers += cors.headers(for: headers["Origin"])
        return response
    }

    /// Names a person in the log without saying who it is.
    static func digest(_ subject: String) -> String {
        Hexadecimal.text(SHA256Digest.of(Array(subject.utf8)).prefix(6))
    }
}

extension Response {
    /// What its bytes cost beyond the call itself. Streams and files cost nothing more.
    fileprivate var furtherCalls: Int {
        switch body {
        case .bytes(let bytes): GatewayCost.calls(ofBytes: bytes.count)
        case .file, .stream: 0
        }
    }
}
