import Compression
import FoundationEssentials
package import Listeners
package import Postgres
package import Telemetry
import Templates
import Threads

/// The console's pages, for a worker's listener or one of its own.
package struct ConsoleService: Sendable {
    package struct Options: Sendable {
        package var access: ConsoleAccess
        /// The names of the Postgres roles.
        package var roles: [ConsoleRole: String]
        package var version: String
        package var frameAncestors = "'none'"
        /// It runs without a worker beside it: it takes samples and steps bulk actions while none lives.
        package var keepsHouse = false
        /// Reads a blob by its name on these connections, for pictures of documents.
        package var blobs: (@Sendable (String, Pool) async throws -> [UInt8]?)?
        /// Proxies whose `X-Forwarded-For` counts, besides this machine.
        package var proxies: [AddressRange] = []
        /// Live pages that are open: in all, and of one visitor.
        package var livePages = 800
        package var livePagesOfVisitor = 100
        /// Pages that rooms of other packages have added.
        package var added: [AddedPage] = []
        /// How long who has asked for too much waits for that answer.
        package var refusalPause = Duration.milliseconds(200)
        package var place = ConsolePlace()

        package init(access: ConsoleAccess, roles: [ConsoleRole: String], version: String) {
            self.access = access
            self.roles = roles
            self.version = version
        }
    }

    /// What the fleet's verdict is; `status` judges it.
    package struct Verdict: Sendable {
        package var word: String
        /// What cannot wait stands first.
        package var findings: [VerdictFinding]

        package init(word: String, findings: [VerdictFinding]) {
            self.word = word
            self.findings = findings
        }
    }

    let options: Options
    let pool: Pool
    let log: Log
    let roles: ConsoleRoles
    let layout: ConsoleLayout
    let limit = SignInLimit()
    let addresses: ClientAddress
    let ended: EndedSessions
    var sessions: SessionEnds
    /// Of the start page of several databases, which has no page of one.
    let glances: [DatabaseGlance]?
    let live: LiveLook
    let liveSeats: Seats
    let navigation = NavigationFacts()

    package init(
        _ options: Options, pool: Pool, log: Log, verdict: @escaping @Sendable (Connection) async throws -> Verdict
    ) throws {
        self.options = options
        self.pool = pool
        self.log = log
        roles = ConsoleRoles(names: options.roles)
        layout = try ConsoleLayout(
            version: options.version, frameAncestors: options.frameAncestors, added: options.added)
        glances = nil
        addresses = ClientAddress(proxies: options.proxies)
        ended = EndedSessions(pool: pool, roles: roles, log: log)
        sessions = SessionEnds(asked: [ended], told: [ended])
        live = LiveLook(pool: pool, log: log, verdict: verdict)
        liveSeats = Seats(inAll: options.livePages, perName: options.livePagesOfVisitor)
    }

    /// The start page of several databases. It reads them by what it is given, and has no connections.
    init(_ options: Options, glances: [DatabaseGlance], sessions: SessionEnds, log: Log) throws {
        self.options = options
        self.glances = glances
        self.sessions = sessions
        self.log = log
        pool = Pool(ConnectionOptions(location: ""), size: 1)
        roles = ConsoleRoles(names: options.roles)
        layout = try ConsoleLayout(
            version: options.version, frameAncestors: options.frameAncestors, databases: glances.map(\.name))
        addresses = ClientAddress(proxies: options.proxies)
        ended = EndedSessions(pool: pool, roles: roles, log: log)
        live = LiveLook(pool: pool, log: log) { _ in Verdict(word: "UNKNOWN", findings: []) }
        liveSeats = Seats(inAll: 0, perName: 0)
    }

    /// The connections of a console. A visitor's pages are made one after the other: each may keep a core of the database busy, and
    /// others' pages need one too.
    package static func connections(_ database: ConnectionOptions, size: Int) -> Pool {
        Pool(database, size: size, share: 1)
    }

    package var asksNobody: Bool { options.access.asksNobody }

    /// Looks at the database for the live pages, while any are open; until its task is cancelled.
    package func run() async {
        await ConsolePlace.$current.withValue(options.place) {
            async let looking: Void = live.run()
            if options.keepsHouse { await WorkerStandIn(pool: pool, log: log).run() }
            await looking
        }
    }

    package var routes: [Route] {
        let all = (options.place.database == nil ? sharedRoutes : []) + (glances == nil ? ownRoutes : startRoutes)
        return all.map { route in
            Route(route.method, route.pattern, access: route.access, limit: route.limit) { request in
                try await ConsolePlace.$current.withValue(options.place) {
                    try await ReaderChoices.$current.withValue(ReaderChoices(request)) {
                        try await route.handle(request)
                    }
                }
            }
        }
    }

    /// What several databases have once.
    private var sharedRoutes: [Route] {
        let home = ConsolePlace.home
        return [
            Route(.get, "/", access: .everyone) { _ in Self.redirect(to: home) },
            asset("console.css", PackageResources.console_css, "text/css; charset=utf-8"),
            asset("console.js", PackageResources.console_js, "text/javascript; charset=utf-8"),
            asset("icon.svg", PackageResources.icon_svg, "image/svg+xml"),
            Route(.get, "\(home)/signin", access: .verified) { request in await signInPage(request) },
            Route(.post, "\(home)/signin", access: .verified, limit: 8192) { request in
                await paced(try await signIn(request))
            },
            Route(.post, "\(home)/signout", access: .verified, limit: 8192) { request in try await signOut(request) },
            Route(.post, "\(home)/look", access: .verified, limit: 8192) { request in await choose(request) },
        ]
    }

    /// The pages of a database.
    private var ownRoutes: [Route] {
        let base = options.place.base
        var routes: [Route] = [
            Route(.get, "\(base)/", access: .everyone) { _ in Self.redirect(to: base) },
            Route(.post, "\(base)/mail/find", access: .verified, limit: 16_384) { request in
                await paced(try await findMail(request))
            },
            Route(.get, "\(base)/live", access: .verified) { request in await paced(await liveStream(request)) },
            Route(.post, "\(base)/act/{action}", access: .verified, limit: ConsoleAction.largestForm) { request in
                try await act(request)
            },
        ]
        for page in ConsolePages.all + options.added.map(\.route) { routes.append(route(of: page)) }
        for file in ConsolePages.files {
            routes.append(
                Route(.get, base + file.path, access: .verified) { request in await paced(await send(file, request)) })
        }
        return routes + [elsewhere]
    }

    private var startRoutes: [Route] {
        let glances = glances ?? []
        return [
            Route(.get, "\(options.place.base)/", access: .everyone) { [place = options.place] _ in
                Self.redirect(to: place.base)
            },
            route(of: ConsolePageRoute(path: "") { _ in await StartPage.page(glances) }), elsewhere,
        ]
    }

    private func route(of page: ConsolePageRoute) -> Route {
        Route(.get, options.place.base + page.path, access: .verified) { request in
            packed(await paced(await show(page, request)), for: request)
        }
    }

    /// The last, so that every other goes before it.
    private var elsewhere: Route {
        Route(.get, "\(options.place.base)/{page}", access: .verified) { request in
            switch await admit(request) {
            case .failure(let refused): refused.response
            case .success(let visitor):
                errorPage(
                    ErrorAnswer(.notFound, "there is no page \(request.parameter("page").prefix(60))"), for: visitor)
            }
        }
    }

    /// Who is refused at once asks again at once, thousands of times a second, on the cores that others need.
    private func paced(_ response: Response) async -> Response {
        if response.status == 429 { try? await Task.sleep(for: options.refusalPause) }
        return response
    }

    private func asset(_ name: String, _ bytes: [UInt8], _ type: String) -> Route {
        let packed = Gzip.compressed(bytes)
        return Route(.get, "\(ConsolePlace.home)/\(name)", access: .everyone) { request in
            let headers = [
                Header("Content-Type", type), Header("Cache-Control", "public, max-age=3600"),
                Header("Vary", "Accept-Encoding"),
            ]
            guard let packed, Self.takesGzip(request) else { return Response(headers: headers, body: .bytes(bytes)) }
            return Response(headers: headers + [Header("Content-Encoding", "gzip")], body: .bytes(packed))
        }
    }

    private static func takesGzip(_ request: Request) -> Bool {
        (request.headers["Accept-Encoding"] ?? "").split(separator: ",").contains { offer in
            let parts = offer.split(separator: ";").map { $0.filter { !$0.isWhitespace }.lowercased() }
            return parts.first == "gzip" && !parts.dropFirst().contains { $0 == "q=0" || $0.hasPrefix("q=0.0") }
        }
    }

    /// Pages are compressed where the client takes that. A page has the form's token and what the visitor has asked for: from another site's request
    /// the length of the two together would tell something of the token, so such a one is answered as it is.
    private func packed(_ response: Response, for request: Request) -> Response {
        guard case .bytes(let bytes) = response.body, bytes.count > 1400, Self.takesGzip(request),
            ["same-origin", "none", nil].contains(request.headers["Sec-Fetch-Site"]),
            let small = Gzip.compressed(bytes)
        else { return response }
        var packed = response
        packed.body = .bytes(small)
        packed.headers += [Header("Content-Encoding", "gzip"), Header("Vary", "Accept-Encoding")]
        return packed
    }

    static func redirect(to path: String, cookie: String? = nil) -> Response {
        var headers = [Header("Location", path)]
        if let cookie { headers.append(Header("Set-Cookie", cookie)) }
        return Response(status: 303, headers: headers)
    }

    /// The visitor, or the answer in place of the page.
    func admit(_ request: Request) async -> Result<Visitor, Refused> {
        switch decide(request) {
        case .visitor(let visitor):
            do {
                guard let session = visitor.session, try await sessions.isOver(session, of: visitor) else {
                    return .success(visitor)
                }
                return .failure(Refused(response: signInAgain(request)))
            } catch {
                return .failure(Refused(response: errorPage(refusal(of: error), for: nil)))
            }
        case .signIn: return .failure(Refused(response: signInAgain(request)))
        case .refused(let refusal): return .failure(Refused(response: errorPage(refusal, for: nil)))
        }
    }

    /// Who it is by what was sent, whether the session is over or not.
    func decide(_ request: Request) -> ConsoleAccess.Decision {
        let address = addresses.of(request)
        return options.access.decide(request, from: AddressRange.client(address) ?? address)
    }

    private func signInAgain(_ request: Request) -> Response {
        let back = request.method == .get ? PageAddress.of(request) : ConsoleLayout.base
        return Self.redirect(to: "\(ConsolePlace.home)/signin?back=\(PageAddress.encoded(back))")
    }

    struct Refused: Error { let response: Response }

    private func show(_ page: ConsolePageRoute, _ request: Request) async -> Response {
        switch await admit(request) {
        case .failure(let refused): return refused.response
        case .success(let visitor):
            let token = options.access.formToken(of: visitor)
            do {
                let context = context(request, visitor)
                var content = try await page.page(context)
                if let address = content.goesTo { return Self.redirect(to: address) }
                if let said = request.query("said").flatMap({ ActionWords.said[$0] }) {
                    content.parts.insert(.paragraph(said, tone: "good"), at: 0)
                }
                let facts = glances == nil ? await navigation.facts(context) : NavigationFacts.Facts()
                return layout.response(content, for: visitor, token: token, at: context.back, facts)
            } catch {
                return errorPage(refusal(of: error), for: visitor)
            }
        }
    }

    private func send(_ file: ConsoleFileRoute, _ request: Request) async -> Response {
        switch await admit(request) {
        case .failure(let refused): return refused.response
        case .success(let visitor):
            do {
                return try await file.make(context(request, visitor))
            } catch {
                return errorPage(refusal(of: error), for: visitor)
            }
        }
    }

    func context(_ request: Request, _ visitor: Visitor) -> PageContext {
        PageContext(
            request: request, visitor: visitor, reader: ConsoleReader(pool: pool, roles: roles, visitor: visitor),
            live: live, blobs: options.blobs, queries: options.access.queries,
            frames: options.frameAncestors == "'none'" ? "" : options.frameAncestors)
    }

    func errorPage(_ refusal: ErrorAnswer, for visitor: Visitor?) -> Response {
        var parts: [ConsolePart] = [.paragraph(refusal.message, tone: "bad")]
        if let hint = refusal.hint { parts.append(.paragraph(hint)) }
        if visitor != nil {
            parts.append(.list([ConsoleCell("Back to the overview", href: ConsoleLayout.base)]))
        }
        let page = ConsolePage(
            title: Self.titles[refusal.status] ?? "This did not work", entry: "", parts: parts, status: refusal.status)
        let token = visitor.map { options.access.formToken(of: $0) } ?? ""
        var response = layout.response(page, for: visitor, token: token, at: ConsoleLayout.base)
        response.headers += refusal.headers
        return response
    }

    private static let titles = [
        400: "Something in the request is wrong", 401: "Please sign in", 403: "This is not allowed",
        404: "There is nothing here", 409: "This has changed in the meantime", 413: "This is too large",
        429: "Too much at once",
        503: "The database cannot be used now",
    ]

    /// What an error means for the person at the browser. What only the log should hear stays there.
    func refusal(of error: any Error) -> ErrorAnswer {
        switch error {
        case let refusal as ErrorAnswer: return refusal
        case is PoolShareTaken:
            return ErrorAnswer(
                .throttled, "too many pages are being loaded by you at once", hint: "load this page again",
                headers: [Header("Retry-After", "1")])
        case let missing as ConsoleRoles.Missing:
            return ErrorAnswer(.unavailable, missing.description, hint: missing.hint)
        case let error as PostgresError where error.saysConnectionsAreUsedUp:
            log.warning("a page failed", [("error", error.description)])
            return ErrorAnswer(
                .unavailable, "the database has no connection left", hint: PostgresError.connectionsHint)
        case PostgresError.server(let server):
            switch server.sqlState {
            case "P0002": return ErrorAnswer(.notFound, server.message, hint: server.hint)
            case "42501":
                return ErrorAnswer(
                    .permission, "your role may not do this: \(server.message)",
                    hint: "ask somebody with a higher role, or an admin for that role")
            case "22P02", "22003", "22007", "22008":
                return ErrorAnswer(.invalid, "a value in the address or in the form cannot be read")
            case "53400": return ErrorAnswer(.tooLarge, server.message, hint: server.hint)
            case "23505", "55000": return ErrorAnswer(.conflict, server.message, hint: server.hint)
            case let state where state.hasPrefix("22"): return ErrorAnswer(.invalid, server.message, hint: server.hint)
            case "3F000", "42883", "42P01":
                return ErrorAnswer(
                    .unavailable, "the database has no Millrace schema, or an old one", hint: "run: millrace migrate")
            default:
                log.warning("a page failed", [("error", server.message), ("sqlstate", server.sqlState)])
                return ErrorAnswer(
                    .unavailable, "the database refused: \(server.message)",
                    hint: "load the page again; the console's log has more when it happens again")
            }
        case PostgresError.undecodable:
            log.warning("a page failed", [("error", "\(error)")])
            return ErrorAnswer(
                .internal, "what the database answered cannot be shown here",
                hint: "the console's log says more; a console of another version than the schema is one cause")
        case let error as PostgresError:
            log.warning("a page failed", [("error", error.description)])
            return ErrorAnswer(
                .unavailable, "the database did not answer: \(error.description)",
                hint: "the page shows again what it can as soon as the database is back")
        default:
            log.error("a page failed", [("error", "\(error)")])
            return ErrorAnswer(.internal, "this page failed; the console's log says why")
        }
    }
}
