import FoundationEssentials
import Listeners
import Signatures

/// Who may come in. Without token, users and proxy only this machine is answered, under a name of its own.
package struct ConsoleAccess: Sendable {
    private let token: AccessToken?
    package var users: ConsoleUsers?
    package var proxy: ProxyTokens?
    /// The role of a visitor of whom nothing is asked, and of the one who has the token.
    package var localRole = ConsoleRole.admin
    private let cookies: SessionCookie
    let queries: SealedQuery
    /// A session of the token ends when the token changes.
    private let tokenMark: String?

    /// - Parameter key: signs cookies; consoles that share it share sessions.
    package init(key: [UInt8], token: String? = nil, users: ConsoleUsers? = nil, proxy: ProxyTokens? = nil) {
        cookies = SessionCookie(key: key)
        queries = SealedQuery(key: key)
        tokenMark = token.map { Marks.of("token \($0)", key: key) }
        self.token = token.map { AccessToken($0) }
        self.users = users
        self.proxy = proxy
    }

    /// Nobody has to say who they are: then nobody from elsewhere may be answered.
    package var asksNobody: Bool { token == nil && users == nil && proxy == nil }
    var hasForm: Bool { token != nil || users != nil }
    var asksForName: Bool { users != nil }
    var hasToken: Bool { token != nil }

    func refusalFromElsewhere(_ request: Request) -> ErrorAnswer? { request.refusalIfFromElsewhere }

    enum Decision {
        case visitor(Visitor)
        /// Show the form to sign in.
        case signIn
        case refused(ErrorAnswer)
    }

    /// - Parameter address: where the visitor is.
    func decide(_ request: Request, from address: String, at now: Date = Date()) -> Decision {
        if asksNobody {
            if let refusal = request.refusalUnlessLocal { return .refused(refusal) }
            return .visitor(Visitor(name: "local", role: localRole, holder: "local@\(address)"))
        }
        let bearer = request.headers["Authorization"].flatMap { given in
            given.prefix(7).lowercased() == "bearer " ? given.dropFirst(7) : nil
        }
        if let token, let bearer, token.matches(bearer) {
            return .visitor(Visitor(name: "token", role: localRole, holder: "token@\(address)"))
        }
        switch proxy?.answer(to: { request.headers.all($0) }, at: now) ?? .none {
        case .visitor(let visitor): return .visitor(visitor)
        case .refused(let reason):
            return .refused(
                ErrorAnswer(
                    .authentication, "the proxy's token is refused: \(reason)",
                    hint: "look at the proxy's sign-in and at MILLRACE_CONSOLE_JWT_*"))
        case .none: break
        }
        if token != nil, bearer != nil { return .refused(ErrorAnswer(.authentication, "the token is wrong")) }
        if let text = SessionCookie.value(in: request.headers["Cookie"]),
            let content = cookies.content(of: text, at: now), stands(content)
        {
            let holder = content.mark == tokenMark ? "token@\(address)" : content.name
            return .visitor(
                Visitor(name: content.name, role: content.role, holder: holder, session: content.session))
        }
        guard hasForm else {
            return .refused(
                ErrorAnswer(
                    .authentication, "no token of the proxy came with this request",
                    hint: "come through the proxy that signs you in"))
        }
        return .signIn
    }

    /// A user who was removed, or whose password or role changed, has no session any more.
    private func stands(_ content: SessionCookie.Content) -> Bool {
        if let tokenMark, content.mark == tokenMark { return content.role == localRole }
        guard let user = users?.users[content.name] else { return false }
        return user.mark == content.mark && user.role == content.role
    }

    /// The cookie of somebody who signs in; nil when name, password or token are wrong. Slow on purpose.
    func signIn(name: String, secret: String, at now: Date = Date()) -> String? {
        let until = Int(now.timeIntervalSince1970) + SessionCookie.lasts
        if let users, !name.isEmpty || token == nil {
            guard let user = users.user(named: name, password: secret) else { return nil }
            return cookies.text(.init(name: user.name, role: user.role, until: until, mark: user.mark))
        }
        guard let token, let tokenMark, token.matches(secret) else { return nil }
        return cookies.text(.init(name: "token", role: localRole, until: until, mark: tokenMark))
    }

    func formToken(of visitor: Visitor) -> String { cookies.formToken(of: visitor) }

    /// What a request that changes something must also fulfil.
    func refusal(of form: [String: String], from request: Request, by visitor: Visitor) -> ErrorAnswer? {
        if let refusal = request.refusalIfFromElsewhere { return refusal }
        guard cookies.isFormToken(form["form_token"] ?? "", of: visitor) else {
            return ErrorAnswer(
                .permission, "this form is not from a page of this console, or from before it was restarted",
                field: "form_token", hint: "go back, load the page again, and repeat it")
        }
        return nil
    }
}

extension Request {
    /// A foreign page in a browser on this machine can reach us, too: under its own name, or as a guest.
    fileprivate var refusalUnlessLocal: ErrorAnswer? {
        guard let host = headers["Host"], HostHeader(host)?.isThisMachine == true else {
            return ErrorAnswer(
                .permission, "without a token or users only requests from localhost are answered here", field: "Host",
                hint: "set MILLRACE_TOKEN or MILLRACE_CONSOLE_USERS_FILE to be reached by another name")
        }
        return ForwardingHeaders.refusal(
            of: headers,
            hint:
                "set MILLRACE_TOKEN, MILLRACE_CONSOLE_USERS_FILE or MILLRACE_CONSOLE_JWT_KEY_FILE: behind a proxy people sign in"
        ) ?? refusalIfFromElsewhere
    }

    fileprivate var refusalIfFromElsewhere: ErrorAnswer? {
        guard let host = headers["Host"] else {
            return ErrorAnswer(.invalid, "the header Host is missing", field: "Host")
        }
        if method != .get, let origin = headers["Origin"], origin != "http://\(host)", origin != "https://\(host)" {
            return ErrorAnswer(.permission, "another page may not act here", field: "Origin")
        }
        if method != .get, let site = headers["Sec-Fetch-Site"], site != "same-origin", site != "none" {
            return ErrorAnswer(.permission, "another page may not act here", field: "Sec-Fetch-Site")
        }
        return nil
    }
}
