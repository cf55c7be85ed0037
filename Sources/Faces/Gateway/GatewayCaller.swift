package import FoundationEssentials
package import Traces

/// Who calls: what a checked token says.
package struct GatewayCaller: Sendable, Equatable {
    /// The person: the token's `sub`.
    package var subject: String
    /// All claims as JSON, as the database's doors read them in `request.jwt.claims`.
    package var claims: [UInt8]
    /// When the token ends. Streams end with it.
    package var expires: Date
    /// The device of a device token, which is good for the offline intake alone; nil for a web token.
    package var device: String?
    /// How far the clock of the caller's device is behind, in seconds; nil: it did not say.
    package var clockLag: String?
    /// The place in a trace that the call belongs to, as the caller sends it; nil: none. What it enqueues and publishes belongs there, too.
    package var trace: TraceContext?

    package init(subject: String, claims: [UInt8], expires: Date, device: String? = nil) {
        self.subject = subject
        self.claims = claims
        self.expires = expires
        self.device = device
    }
}
