import Health
package import Listeners
import Telemetry
package import Workers

extension Settings {
    /// nil: nowhere.
    package var listenAddress: ListenAddress? { ListenAddress(string(.listen)) }
    /// The address of a room that has its own: --listen, or else its own setting.
    func address(_ own: Setting, of room: String) throws(Failure) -> ListenAddress {
        let text = if case .flag? = entry(.listen)?.origin { string(.listen) } else { string(own) }
        guard let address = ListenAddress(text) else {
            throw Failure(
                .misused, "\(room) needs an address to listen on", hint: "give --listen \(own.fallback ?? "")")
        }
        return address
    }
    /// Somebody typed it: then it has to be so.
    package var isListenAsked: Bool {
        if case .flag? = entry(.listen)?.origin { true } else { false }
    }
}

extension Composer {
    /// A worker's listener.
    package func listener(
        for worker: JobWorker, metrics: @escaping @Sendable (Listener.Counts?) async -> String, more: [Route] = []
    ) throws -> Listener? {
        try listener { held in
            HealthRoutes.all(of: worker, metrics: metrics, counts: { held.counts }) + more
        }
    }

    /// nil when there is none. Of several workers on a machine the first gets the default address. The others log that and go on without one,
    /// unless the address was set explicitly.
    func listener(
        lately: (@Sendable () -> [Route])? = nil, routes: (HeldListener) -> [Route]
    ) throws -> Listener? {
        guard let address = settings.listenAddress else { return nil }
        var options = Listener.Options(address: address, token: settings.text(.token).map { AccessToken($0) })
        options.grace = min(settings.drainTimeout, .seconds(10))
        options.more = lately
        let held = HeldListener()
        do {
            let listener = try Listener(options, routes: routes(held), log: log)
            held.set(listener)
            return listener
        } catch .taken(let place) where !settings.isListenAsked {
            log.warning(
                "the listen address is in use: this worker has no /livez, /readyz and /metrics",
                [("address", place), ("hint", "give each worker of a machine its own MILLRACE_LISTEN, or off")])
            return nil
        } catch {
            throw Failure(error.needsCare ? .misused : .failed, error.description, hint: error.hint)
        }
    }
}

extension ListenerError {
    /// The configuration is wrong, not the world.
    var needsCare: Bool {
        switch self {
        case .needsToken: true
        case .taken, .cannotListen, .refusedByLibrary: false
        }
    }
}
