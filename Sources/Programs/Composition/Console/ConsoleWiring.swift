import Blobs
package import Console
import Digests
import FoundationEssentials
package import Listeners
import MillraceQueues
import PageKit
package import Postgres
import Signatures
import Synchronization

extension Composer {
    /// The console, with the access that the settings say.
    /// - Parameter keepsHouse: it runs without a worker beside it, and takes samples and steps bulk actions while none lives.
    package func console(
        pool: Pool, version: String, keepsHouse: Bool, change: (inout ConsoleService.Options) -> Void = { _ in }
    ) throws(Failure) -> ConsoleService {
        var options = consoleOptions(version)
        options.keepsHouse = keepsHouse
        options.added = try addedPages()
        let held = settings.blobStore(pool: pool)
        options.blobs = { name, share in
            guard let id = BlobID(name) else { return nil }
            var store = held
            store.pool = share
            let bytes = Mutex<[UInt8]>([])
            try await store.read(id, range: 0..<Self.largestPicture) { chunk in bytes.withLock { $0 += chunk } }
            return bytes.withLock { $0 }
        }
        do {
            change(&options)
            return try ConsoleService(options, pool: pool, log: log) { [known] connection in
                let report = try await StatusReport.read(
                    of: known, on: connection, cap: 50, patience: .seconds(2))
                return ConsoleService.Verdict(of: report)
            }
        } catch {
            throw Failure("the console cannot start: \(error)")
        }
    }

    func consoleOptions(_ version: String) -> ConsoleService.Options {
        var options = ConsoleService.Options(
            access: consoleAccess(),
            roles: [.viewer: settings.viewerRole, .operator: settings.operatorRole, .admin: settings.adminRole],
            version: version)
        if let frames = settings.text(.consoleFrames) { options.frameAncestors = frames }
        options.proxies = settings.addresses(.consoleProxies)
        return options
    }

    /// Of the rooms that it serves.
    private func addedPages() throws(Failure) -> [AddedPage] {
        let pages = known.filter { serves($0.name) }.flatMap { room in
            room.pages.map { AddedPage(room: room.name, page: $0) }
        }
        var paths: Set<String> = []
        for added in pages {
            let path = added.page.path
            guard path.wholeMatch(of: /(\/[a-z0-9-]+)+/) != nil else {
                throw Failure("the room \(added.room) has a page at \(path): give it a path such as /\(added.room)")
            }
            guard !ConsolePages.has(path), paths.insert(path).inserted else {
                throw Failure("the room \(added.room) has a page at \(path), and so has another: give it another path")
            }
        }
        return pages
    }

    private static let largestPicture = 32 << 20

    private func consoleAccess() -> ConsoleAccess {
        var access = ConsoleAccess(
            key: settings.text(.consoleKey).map { Array($0.utf8) } ?? Self.randomKey(),
            token: settings.text(.token),
            users: settings.text(.consoleUsers).flatMap { try? ConsoleUsers(parsing: $0) }, proxy: proxyTokens())
        access.localRole = ConsoleRole(rawValue: settings.string(.consoleRole)) ?? .viewer
        return access
    }

    private func proxyTokens() -> ProxyTokens? {
        var keys: [WebTokenRules.Key] = []
        if let secret = settings.text(.jwtSecret) { keys.append(.secret(Array(secret.utf8))) }
        if let pem = settings.text(.jwtKey), let key = try? VerifyingKey(pem: Array(pem.utf8)) {
            keys.append(.public(key))
        }
        guard !keys.isEmpty else { return nil }
        var tokens = ProxyTokens(
            rules: WebTokenRules(
                keys: keys, issuer: settings.text(.jwtIssuer), audience: settings.text(.jwtAudience)))
        tokens.header = settings.string(.jwtHeader)
        tokens.claim = settings.string(.jwtClaim)
        tokens.groups = settings.text(.jwtGroups).flatMap(Settings.groups) ?? [:]
        return tokens
    }

    private static func randomKey() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    /// A listener for the console alone.
    package func consoleListener(_ console: ConsoleService) throws(Failure) -> Listener {
        try consoleListener(console.routes, asksNobody: console.asksNobody)
    }

    package func consoleListener(_ console: SeveralConsole) throws(Failure) -> Listener {
        try consoleListener(console.routes, asksNobody: console.asksNobody)
    }

    private func consoleListener(_ routes: [Route], asksNobody: Bool) throws(Failure) -> Listener {
        let address = try settings.address(.consoleListen, of: "the console")
        var options = Listener.Options(address: address, token: settings.text(.token).map { AccessToken($0) })
        options.isGuarded = !asksNobody
        options.perAddress = 1000
        let live = Route(.get, "/livez", access: .everyone) { _ in .json("{\"live\":true}\n") }
        do {
            return try Listener(options, routes: [live] + routes, log: log)
        } catch .needsToken(let place) {
            throw Failure(
                .misused, "\(place) can be reached from outside this machine, and nobody would have to sign in",
                hint:
                    "set MILLRACE_TOKEN, MILLRACE_CONSOLE_USERS_FILE or MILLRACE_CONSOLE_JWT_KEY_FILE, or listen on 127.0.0.1"
            )
        } catch {
            throw Failure(error.needsCare ? .misused : .failed, error.description, hint: error.hint)
        }
    }
}
