import FoundationEssentials
import Signatures
import Supervision
import Synchronization
import Telemetry

/// The keys that an issuer publishes at an address: read at the first call, each hour, and when a token names an unknown one. While the
/// address does not answer, the known keys go on for a day.
final class GatewayKeySet: Sendable {
    private let source: GatewayAccess.Options.KeySet
    let host: String
    private let supervisor: Supervisor
    private let log: Log
    private let now: @Sendable () -> Date
    private let fetch: GatewayAccess.Fetch
    private let state = Mutex(KeySetState())
    /// The document of the present keys.
    private let document = Mutex<[UInt8]>([])

    init(
        _ source: GatewayAccess.Options.KeySet, supervisor: Supervisor, log: Log, now: @escaping @Sendable () -> Date,
        fetch: @escaping GatewayAccess.Fetch
    ) {
        self.source = source
        self.supervisor = supervisor
        self.log = log
        self.now = now
        self.fetch = fetch
        let rest = source.url.firstRange(of: "://").map { source.url[$0.upperBound...] } ?? source.url[...]
        host = String(rest.prefix { $0 != "/" && $0 != "?" })
    }

    func keys(at now: Date) -> [WebTokenRules.Key] { state.withLock { $0.usableKeys(at: now) } }
    var generation: Int { state.withLock { $0.generation } }
    var isFailing: Bool { state.withLock { $0.failure != nil } }
    func trouble(at now: Date) -> String? { state.withLock { $0.trouble(at: now, host: host) } }

    /// Whether its keys sign tokens of this issuer.
    func signs(for issuer: String?) -> Bool { source.issuers.isEmpty || issuer.map(source.issuers.contains) ?? false }

    /// Seconds until it may be read for this unknown id; nil: a reading has shown that no key has it.
    func wait(for id: String) -> Int? { state.withLock { $0.wait(for: id, at: now()) } }

    /// A token names an id that no key has.
    func met(_ id: String, in token: [UInt8]) { state.withLock { $0.met(id, in: token, at: now()) } }

    /// Reads the keys unless they were read just now. All who ask at the same time wait for one answer.
    /// - Parameter id: of a key that is wanted.
    func read(for id: String? = nil) async {
        let url = source.url
        _ = try? await supervisor.read("gateway-keys:\(url)") { [self] in
            await load(for: id)
            return true
        }
    }

    private func load(for id: String?) async {
        guard state.withLock({ $0.mayBegin(at: now(), for: id) }) else { return }
        do {
            let bytes = try await fetch(source.url)
            let set = try WebKeySet(bytes, issuers: source.issuers)
            guard !set.keys.isEmpty else {
                throw WebKeySet.Malformed(
                    description: "it has no usable key: \(set.unused.first ?? "its list is empty")")
            }
            let isNew = document.withLock { document in
                defer { document = bytes }
                return document != bytes
            }
            state.withLock { $0.succeeded(with: set.keys, changed: isNew, at: now()) }
            if isNew { tell(of: set) }
        } catch is CancellationError {
            state.withLock { $0.gaveUp() }
        } catch {
            state.withLock { $0.failed("\(error)") }
            log.warning(
                "the keys of tokens cannot be read; those that are known go on",
                [("host", host), ("error", "\(error)")])
        }
    }

    private func tell(of set: WebKeySet) {
        log.info("read the keys of tokens", [("host", host), ("keys", "\(set.keys.count)")])
        for sentence in set.unused {
            log.warning("a published key is not used", [("host", host), ("reason", sentence)])
        }
    }

    func run() async {
        while !Task.isCancelled {
            let wait = state.withLock { $0.wait(at: now()) }
            if wait > 0 {
                // Not all processes at the same second.
                do { try await Task.sleep(for: .seconds(wait * Double.random(in: 1...1.1))) } catch { return }
            }
            await read()
        }
    }
}
