import Listeners

/// Which pages of other origins may call (CORS). There are no cookies here, so this protects nobody's session: it says which apps on the web
/// this gateway is for.
struct CrossOrigin: Sendable {
    let origins: Set<String>

    func headers(for origin: String?) -> [Header] {
        guard !origins.isEmpty else { return [] }
        let varies = Header("Vary", "Origin")
        guard let origin, origins.contains(origin) else { return [varies] }
        return [
            varies, Header("Access-Control-Allow-Origin", origin),
            Header("Access-Control-Expose-Headers", Self.exposed.joined(separator: ", ")),
        ]
    }

    /// Answers whether a page may send what it wants to send.
    func preflight(_ headers: [Header], methods: [Listeners.Method]) -> Response {
        var names = Listeners.Method.allCases.filter(methods.contains).map(\.rawValue)
        var response = Response(
            status: 204, headers: [Header("Allow", (names + ["OPTIONS"]).joined(separator: ", "))])
        if methods.contains(.get) { names.append("HEAD") }
        let origin = headers["Origin"]
        response.headers += self.headers(for: origin).filter { $0.name != "Access-Control-Expose-Headers" }
        guard let origin, origins.contains(origin), headers["Access-Control-Request-Method"] != nil else {
            return response
        }
        response.headers += [
            Header("Access-Control-Allow-Methods", names.joined(separator: ", ")),
            Header("Access-Control-Allow-Headers", Self.allowed.joined(separator: ", ")),
            Header("Access-Control-Max-Age", "600"),
        ]
        return response
    }

    static let allowed = [
        "Authorization", ClientTime.header, "Content-Type", "Idempotency-Key", "If-None-Match", "Last-Event-ID",
        "Tus-Resumable", "Upload-Offset", "X-Request-Id",
    ]
    static let exposed = [
        "ETag", "Idempotent-Replayed", "RateLimit", "RateLimit-Policy", "Retry-After", "Tus-Resumable",
        "Upload-Complete", "Upload-Length", "Upload-Offset", "X-Request-Id",
    ]
}
