/// How the fake misbehaves; everything can be changed while it runs.
package struct ResendScript: Sendable, Codable {
    package enum Outage: String, Sendable, Codable {
        case none
        /// 403 invalid_api_key, as after a key was withdrawn.
        case key
        case quota
        /// 500 with Resend's own body, before anything is accepted.
        case broken
        /// 503 of something in front of it, without a body of Resend's.
        case gateway
        /// Takes the request and says nothing.
        case silent
        /// Ends the connection once the head has come.
        case reset
        /// Nothing listens.
        case closed
    }

    package var keys = ["re_test"]
    /// Requests a second, of all together; 0: as many as come.
    package var rate = 0
    /// The length of a second for the rate limit.
    package var windowSeconds = 1.0
    package var dailyQuota = 0
    /// Before the answer.
    package var latencyMilliseconds = 0.0
    package var outage = Outage.none
    /// The share of accepted requests that get no answer.
    package var lost = 0.0
    package var failBefore = 0.0
    package var failAfter = 0.0
    package var seed: UInt64 = 1
    /// Where events go: http://127.0.0.1:<port>/…
    package var webhook = ""
    package var secret = ""
    /// The share of events that come twice.
    package var twice = 0.0
    /// Each event waits for so long at most, at random: so they overtake one another.
    package var shuffleMilliseconds = 0.0
    /// A second of the pauses between two tries of an event takes so long.
    package var retryScale = 1.0
    /// How far ahead of the real clock it is, to test things that are kept for a day.
    package var aheadSeconds = 0.0

    package init() {}
}
