import Encodings

/// Decides from a head alone what becomes of a request.
struct HeadRules: Sendable {
    enum Decision: Sendable {
        case serve(Route, parameters: [String: String], query: [(name: String, value: String)])
        case answer(Response, pattern: String?)
    }

    let routes: [Route]
    /// Those that are there now, and were not from the beginning.
    var more: (@Sendable () -> [Route])?
    let token: AccessToken?
    var refusing: (@Sendable (ErrorAnswer, [Header]) -> Response)?
    var largestHead = 16_384

    func decide(_ head: RequestHead) -> Decision {
        if let refusal = malformed(head) {
            return .answer(response(to: refusal, head.headers), pattern: nil)
        }
        if head.method == "OPTIONS", head.target == "*" { return .answer(allowing(everyMethod), pattern: "*") }
        guard head.path.hasPrefix("/") else {
            let refusal = ErrorAnswer(.invalid, "the path must begin with a slash")
            return .answer(response(to: refusal, head.headers), pattern: nil)
        }
        let path = head.path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        let here = (routes + (more?() ?? [])).compactMap { route in route.match(path).map { (route, $0) } }
        guard let pattern = here.first?.0.pattern else {
            let refusal = ErrorAnswer(.notFound, "there is nothing here")
            return .answer(response(to: refusal, head.headers), pattern: nil)
        }
        let allowed = allow(here.map(\.0.method))
        if head.method == "OPTIONS", !here.contains(where: { $0.0.method == .options }) {
            return .answer(allowing(allowed), pattern: pattern)
        }
        guard
            let (route, raw) = here.first(where: {
                $0.0.method.rawValue == (head.method == "HEAD" ? "GET" : head.method)
            })
        else {
            let refusal = ErrorAnswer(
                .invalid, "this path does not take \(head.method.prefix(20))", status: 405,
                headers: [Header("Allow", allowed)])
            return .answer(response(to: refusal, head.headers), pattern: pattern)
        }
        return admit(head, to: route, raw)
    }

    private func admit(_ head: RequestHead, to route: Route, _ raw: [String: Substring]) -> Decision {
        var parameters: [String: String] = [:]
        for (name, value) in raw {
            guard let decoded = PercentEncoding.decoded(value) else {
                let refusal = ErrorAnswer(.invalid, "the path cannot be decoded", field: name)
                return .answer(response(to: refusal, head.headers), pattern: route.pattern)
            }
            parameters[name] = decoded
        }
        guard let query = Escapes.query(head.query) else {
            let refusal = ErrorAnswer(.invalid, "the query cannot be decoded")
            return .answer(response(to: refusal, head.headers), pattern: route.pattern)
        }
        if let refusal = refused(head, by: route) {
            return .answer(response(to: refusal, head.headers), pattern: route.pattern)
        }
        if head.hasBody, head.headers.all("Content-Encoding").contains(where: { $0.lowercased() != "identity" }) {
            let refusal = ErrorAnswer(
                .unsupported, "content encodings are not supported here", field: "Content-Encoding",
                hint: "send the body as it is", headers: [Header("Accept-Encoding", "identity")])
            return .answer(response(to: refusal, head.headers), pattern: route.pattern)
        }
        if let length = head.length, length > route.limit {
            return .answer(response(to: .tooLarge(route.limit), head.headers), pattern: route.pattern)
        }
        return .serve(route, parameters: parameters, query: query)
    }

    func response(to refusal: ErrorAnswer, _ headers: [Header]) -> Response {
        refusing?(refusal, headers) ?? refusal.response
    }

    private func refused(_ head: RequestHead, by route: Route) -> ErrorAnswer? {
        guard route.access == .token else { return nil }
        if let token {
            let given = head.headers["Authorization"] ?? ""
            let isBearer = given.prefix(7).lowercased() == "bearer "
            guard isBearer, token.matches(given.dropFirst(7).drop { $0 == " " }) else {
                return ErrorAnswer(
                    .authentication, isBearer ? "the token is wrong" : "a token is needed",
                    hint: "send the header Authorization: Bearer <MILLRACE_TOKEN>",
                    headers: [Header("WWW-Authenticate", "Bearer realm=\"millrace\"")])
            }
            return nil
        }
        // Only this machine can reach us; but a foreign page in a browser on it can, too, under its own name or as a guest.
        let host = head.headers["Host"] ?? ""
        guard head.version == "HTTP/1.0" && host.isEmpty || HostHeader(host)?.isThisMachine == true else {
            return ErrorAnswer(
                .permission, "without a token only requests from localhost are answered here", field: "Host",
                hint: "set MILLRACE_TOKEN to be reached by another name")
        }
        if let refusal = ForwardingHeaders.refusal(of: head.headers, hint: "set MILLRACE_TOKEN, and send it") {
            return refusal
        }
        if let origin = head.headers["Origin"], origin != "http://\(host)" {
            return ErrorAnswer(
                .permission, "without a token requests from other pages are refused here", field: "Origin")
        }
        if let site = head.headers["Sec-Fetch-Site"], site != "same-origin", site != "none" {
            return ErrorAnswer(
                .permission, "without a token requests from other pages are refused here", field: "Sec-Fetch-Site")
        }
        return nil
    }

    private var everyMethod: String { allow(Method.allCases) }

    private func allow(_ methods: [Method]) -> String {
        var names = Method.allCases.filter(methods.contains).map(\.rawValue)
        if methods.contains(.get) { names.append("HEAD") }
        return (names.filter { $0 != "OPTIONS" } + ["OPTIONS"]).joined(separator: ", ")
    }

    private func allowing(_ methods: String) -> Response {
        Response(status: 204, headers: [Header("Allow", methods)])
    }
}

extension ErrorAnswer {
    static func tooLarge(_ limit: Int) -> ErrorAnswer {
        ErrorAnswer(.tooLarge, "the body is larger than the \(limit) bytes this path takes")
    }
}
