/// A request on its way through redirects. Pure.
struct RedirectRoute: Sendable {
    private(set) var request: HTTPRequest
    private(set) var target: Target
    private var followed = 0

    init(_ request: HTTPRequest) throws(TransferError) {
        self.request = request
        target = try Target(request.url)
    }

    /// True when `request` and `target` now are the next hop's.
    mutating func follow(_ head: HTTPHead) throws(TransferError) -> Bool {
        guard case .followed(let most) = request.redirects, [301, 302, 303, 307, 308].contains(head.status),
            let location = head.headers["Location"]
        else { return false }
        guard followed < most else { throw Self.refused("more than \(most) redirects") }
        followed += 1
        let next = try target.following(location)
        if target.scheme == "https", next.scheme == "http" { throw Self.refused("a redirect from https to http") }
        if !next.hasSameOrigin(as: target) {
            // Which header holds a secret only its sender knows.
            request.headers.keep(Self.harmless)
        }
        // As in browsers: a POST becomes a GET, unless the status says that the request stays the same.
        if head.status == 303 && request.method != "HEAD" || head.status < 303 && request.method == "POST" {
            request.method = "GET"
            request.body = .none
            for name in Self.ofBodies { request.headers.remove(name) }
        }
        if case .stream = request.body { throw Self.refused("a redirect of a body that cannot be sent again") }
        target = next
        return true
    }

    private static let harmless = [
        "Accept", "Accept-Encoding", "Accept-Language", "Content-Type", "Content-Encoding", "Content-Language",
        "Range", "User-Agent",
    ]
    private static let ofBodies = [
        "Content-Type", "Content-Encoding", "Content-Language", "Content-Location", "Digest",
    ]

    private static func refused(_ what: String) -> TransferError {
        TransferError(.redirect, .answered, "not followed: \(what)")
    }
}
