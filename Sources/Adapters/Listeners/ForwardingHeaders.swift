/// Headers by which a proxy says for whom it asks. Where nobody signs in, only this machine is answered, and what a proxy on it passes on
/// comes from elsewhere.
package enum ForwardingHeaders {
    private static let beginnings = ["x-forwarded-", "x-original-", "tailscale-user-"]
    private static let names: Set = [
        "forwarded", "via", "x-forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-proxyuser-ip",
        "x-envoy-external-address", "x-amzn-trace-id", "x-appengine-user-ip", "x-azure-clientip", "true-client-ip",
        "cf-connecting-ip", "cf-ray", "cdn-loop", "fastly-client-ip", "fly-client-ip",
    ]

    /// The first of them, as it was sent.
    package static func first(in headers: [Header]) -> String? {
        headers.first { header in
            let name = header.name.lowercased()
            return names.contains(name) || beginnings.contains { name.hasPrefix($0) }
        }?.name
    }

    /// Why a request that a proxy has passed on is not answered; nil: it is none.
    /// - Parameter hint: how visitors come to sign in.
    package static func refusal(of headers: [Header], hint: String) -> ErrorAnswer? {
        first(in: headers).map { name in
            ErrorAnswer(
                .permission,
                "nobody signs in here, so only requests from this machine are answered, and this one came through a proxy (\(name))",
                field: name, hint: hint)
        }
    }
}
