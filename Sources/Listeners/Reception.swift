/// Decides from a head alone what becomes of a request.
struct Reception: Sendable {
    enum Decision: Sendable {
        case serve(Route, parameters: [String: String], query: [(name: String, value: String)])
        case answer(Response, pattern: String?)
    }

    let routes: [Route]
    let token: Token?
    var largestHead = 16_384

    func decide(_ head: Head) -> Decision {
        if var refusal = malformed(head) {
            refusal.headers.append(Header("Connection", "close"))  // who knows what its other half is
            return .answer(refusal.response, pattern: nil)
        }
        if head.method == "OPTIONS", head.target == "*" { return .answer(allowing(everyMethod), pattern: "*") }
        guard head.path.hasPrefix("/") else {
            return .answer(Refusal(.invalid, "the path must begin with a slash").response, pattern: nil)
        }
        let path = head.path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
        let here = routes.compactMap { route in route.match(path).map { (route, $0) } }
        guard let pattern = here.first?.0.pattern else {
            return .answer(Refusal(.notFound, "there is nothing here").response, pattern: nil)
        }
        let allowed = allow(here.map(\.0.method))
        if head.method == "OPTIONS" { return .answer(allowing(allowed), pattern: pattern) }
        guard
            let (route, raw) = here.first(where: {
                $0.0.method.rawValue == (head.method == "HEAD" ? "GET" : head.method)
            })
        else {
            let refusal = Refusal(
                .invalid, "this path does not take \(head.method.prefix(20))", status: 405,
                headers: [Header("Allow", allowed)])
            return .answer(refusal.response, pattern: pattern)
        }
        return admit(head, to: route, raw)
    }

    private func admit(_ head: Head, to route: Route, _ raw: [String: Substring]) -> Decision {
        var parameters: [String: String] = [:]
        for (name, value) in raw {
            guard let decoded = Escapes.decoded(value) else {
                return .answer(
                    Refusal(.invalid, "the path cannot be decoded", field: name).response, pattern: route.pattern)
            }
            parameters[name] = decoded
        }
        guard let query = Escapes.query(head.query) else {
            return .answer(Refusal(.invalid, "the query cannot be decoded").response, pattern: route.pattern)
        }
        if let refusal = refused(head, by: route) { return .answer(refusal.response, pattern: route.pattern) }
        if let length = head.length, length > route.limit {
            return .answer(Refusal.tooLarge(route.limit).response, pattern: route.pattern)
        }
        return .serve(route, parameters: parameters, query: query)
    }

    /// What the library lets through and we do not. Two lengths, or a length beside pieces, are how one request is hidden in another.
    private func malformed(_ head: Head) -> Refusal? {
        let size = head.headers.reduce(head.target.utf8.count) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }
        if size > largestHead || head.headers.count > 100 {
            return Refusal(
                .tooLarge, "the headers take more than \(largestHead) bytes, or are more than 100", status: 431)
        }
        let lengths = head.headers.all("Content-Length")
        let encodings = head.headers.all("Transfer-Encoding")
        if lengths.count > 1 || encodings.count > 1 || !lengths.isEmpty && !encodings.isEmpty {
            return Refusal(.invalid, "the length of the body is said twice")
        }
        if let encoding = encodings.first, encoding.lowercased() != "chunked" {
            return Refusal(.unsupported, "no transfer encoding but chunked is understood", status: 501)
        }
        if let length = lengths.first, length.isEmpty || !length.utf8.allSatisfy({ (48...57).contains($0) }) {
            return Refusal(.invalid, "Content-Length is no number")
        }
        if lengths.first != nil, head.length == nil { return Refusal(.tooLarge, "the body is too large") }
        if head.headers.all("Host").count > 1 { return Refusal(.invalid, "there is more than one Host") }
        return nil
    }

    private func refused(_ head: Head, by route: Route) -> Refusal? {
        guard route.access == .token else { return nil }
        if let token {
            let given = head.headers["Authorization"] ?? ""
            let isBearer = given.prefix(7).lowercased() == "bearer "
            guard isBearer, token.matches(given.dropFirst(7).drop { $0 == " " }) else {
                return Refusal(
                    .authentication, isBearer ? "the token is wrong" : "a token is needed",
                    hint: "send the header Authorization: Bearer <MILLRACE_TOKEN>",
                    headers: [Header("WWW-Authenticate", "Bearer realm=\"millrace\"")])
            }
            return nil
        }
        // Only this machine can reach us; but so can a page of somebody else's in a browser on it, under its own name or as a guest.
        let host = head.headers["Host"] ?? ""
        guard head.version == "HTTP/1.0" && host.isEmpty || Self.isThisMachine(host) else {
            return Refusal(
                .permission, "without a token only localhost is answered here", field: "Host",
                hint: "set MILLRACE_TOKEN to be reached by another name")
        }
        if let origin = head.headers["Origin"], origin != "http://\(host)" {
            return Refusal(.permission, "without a token no other page may ask here", field: "Origin")
        }
        if let site = head.headers["Sec-Fetch-Site"], site != "same-origin", site != "none" {
            return Refusal(.permission, "without a token no other page may ask here", field: "Sec-Fetch-Site")
        }
        return nil
    }

    static func isThisMachine(_ host: String) -> Bool {
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return false }
            return host[host.index(after: host.startIndex)..<end] == "::1"
        }
        let name = host.prefix { $0 != ":" }
        if name == "localhost" { return true }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { UInt8($0) != nil }
    }

    private var everyMethod: String { allow(Method.allCases) }

    private func allow(_ methods: [Method]) -> String {
        var names = Method.allCases.filter(methods.contains).map(\.rawValue)
        if methods.contains(.get) { names.append("HEAD") }
        return (names + ["OPTIONS"]).joined(separator: ", ")
    }

    private func allowing(_ methods: String) -> Response {
        Response(status: 204, headers: [Header("Allow", methods)])
    }
}

extension Refusal {
    static func tooLarge(_ limit: Int) -> Refusal {
        Refusal(.tooLarge, "the body is larger than the \(limit) bytes this path takes")
    }
}
