public import Foundation

/// Where the gateway is, who calls, and how patient the calls are.
public struct AppConfiguration: Sendable {
    /// The gateway's address, without `/v1`.
    public var url: URL
    /// Who gives the tokens of the sign-in.
    public var tokens: any TokenProvider
    /// When a call is made again.
    public var retry = RetryRules()
    /// How long nothing may arrive before a call counts as too late.
    public var patience = Duration.seconds(30)
    /// The same for a call that the app's user waits for while it could be queued.
    public var shortPatience = Duration.seconds(10)
    /// The same for a stream; the gateway says every 15 seconds that it lives.
    public var heartbeatPatience = Duration.seconds(45)
    /// How many bytes of a larger file are sent at once. An upload that was broken off goes on behind what has come.
    public var uploadPiece = 4 << 20
    /// Sent with each request, such as the app's name and version.
    public var userAgent = "MillraceApp"
    /// When calls stop for a while because the gateway does not answer.
    public var breaker = BreakerRules()
    /// Told of each call when it has ended, for measuring. It runs where the call does: return soon.
    public var observer: (@Sendable (AppCallReport) -> Void)?

    /// With the defaults of everything else.
    public init(url: URL, tokens: any TokenProvider) {
        self.url = url
        self.tokens = tokens
    }

    /// With the defaults of everything else.
    public init(url: URL, token: @escaping @Sendable (_ rejected: String?) async throws -> String) {
        self.init(url: url, tokens: TokenClosure(token))
    }
}
