import FoundationEssentials
import Listeners
import Telemetry
import Threads

extension ConsoleService {
    func signInPage(_ request: Request, wrong: Bool = false, status: Int = 200, said: String? = nil) async -> Response {
        if options.access.asksNobody { return Self.redirect(to: ConsoleLayout.base) }
        var fields: [ConsoleField] = [
            ConsoleField(name: "to", value: Self.ownPath(request.query("back")), kind: .hidden)
        ]
        if options.access.asksForName {
            fields.append(ConsoleField(name: "name", label: "Name", kind: .name, isNeeded: !options.access.hasToken))
        }
        fields.append(
            ConsoleField(
                name: "secret", label: options.access.asksForName ? "Password" : "Token (MILLRACE_TOKEN)",
                kind: .secret,
                isNeeded: true))
        var parts: [ConsolePart] = []
        if let said { parts.append(.paragraph(said, tone: "bad")) }
        if wrong { parts.append(.paragraph("The name, the password or the token is wrong.", tone: "bad")) }
        parts.append(
            .forms([
                ConsoleForm(
                    id: "signin", action: "\(ConsolePlace.home)/signin", button: "Sign in", fields: fields)
            ]))
        let page = ConsolePage(title: "Sign in", entry: "", parts: parts, status: status)
        return layout.response(page, for: nil, token: "", at: ConsoleLayout.base)
    }

    func signIn(_ request: Request) async throws -> Response {
        let form: [String: String]
        do {
            form = try await Self.form(of: request)
        } catch {
            return errorPage(refusal(of: error), for: nil)
        }
        if options.access.asksNobody { return Self.redirect(to: ConsoleLayout.base) }
        if let refusal = options.access.refusalFromElsewhere(request) { return errorPage(refusal, for: nil) }
        let access = options.access
        let (name, secret) = (String((form["name"] ?? "").prefix(64)), form["secret"] ?? "")
        let address = addresses.of(request)
        let (user, place) = (name.isEmpty ? nil : name, AddressRange.client(address) ?? address)
        guard await limit.begins(user, from: place) else { return errorPage(.tooManyTries, for: nil) }
        let cookie: String?
        do {
            // Hashing takes a tenth of a second; it must not hold up others.
            cookie = try await limit.turn {
                await Thread.run(name: "console-sign-in") { access.signIn(name: name, secret: secret) }
            }
        } catch {
            return errorPage(.tooManyTries, for: nil)
        }
        guard let cookie else {
            log.warning(
                "a sign-in to the console was refused", [("http.peer", request.peer), ("http.client", address)])
            return await signInPage(request, wrong: true, status: 401)
        }
        await limit.succeeded(user, from: place)
        log.info("somebody signed in to the console", [("user", name.isEmpty ? "token" : String(name.prefix(64)))])
        return Self.redirect(
            to: Self.ownPath(form["to"]), cookie: Self.cookie(cookie, for: request, age: SessionCookie.lasts))
    }

    func signOut(_ request: Request) async throws -> Response {
        guard case .success(let visitor) = await admit(request) else {
            return Self.redirect(to: "\(ConsolePlace.home)/signin")
        }
        let form: [String: String]
        do {
            form = try await Self.form(of: request)
        } catch {
            return errorPage(refusal(of: error), for: visitor)
        }
        if let refusal = options.access.refusal(of: form, from: request, by: visitor) {
            return errorPage(refusal, for: visitor)
        }
        if let session = visitor.session {
            await sessions.end(session, of: visitor, at: Int(Date().timeIntervalSince1970))
        }
        return Self.redirect(
            to: "\(ConsolePlace.home)/signin", cookie: Self.cookie("", for: request, age: 0))
    }

    private static func cookie(_ text: String, for request: Request, age: Int) -> String {
        let isSecure = request.headers["X-Forwarded-Proto"]?.lowercased() == "https"
        return "\(SessionCookie.name)=\(text); Path=\(ConsolePlace.home); Max-Age=\(age); HttpOnly; SameSite=Strict"
            + (isSecure ? "; Secure" : "")
    }

    /// Only a page of ours: nobody may use the sign-in to send people elsewhere.
    static func ownPath(_ path: String?) -> String {
        guard let path, path == ConsoleLayout.base || path.hasPrefix(ConsoleLayout.base + "/"), !path.contains("\\"),
            path.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return ConsoleLayout.base }
        return path
    }

    static func form(of request: Request) async throws -> [String: String] {
        let bytes = try await request.body.collect()
        guard let text = String(validating: bytes, as: UTF8.self), let pairs = Escapes.query(text) else {
            throw ErrorAnswer(.invalid, "the form cannot be decoded")
        }
        return Dictionary(pairs.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
    }
}

extension ErrorAnswer {
    fileprivate static let tooManyTries = ErrorAnswer(
        .throttled, "too many wrong tries", hint: "wait a minute", headers: [Header("Retry-After", "60")])
}
