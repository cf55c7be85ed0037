/// Growing pauses between tries to reach something that is away; jittered, so that a fleet does not knock in step.
package struct Backoff: Sendable {
    package let first: Duration
    package let cap: Duration
    private var tries = 0

    package init(first: Duration = .milliseconds(50), cap: Duration = .seconds(1)) {
        self.first = first
        self.cap = cap
    }

    package mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
        let bound = min(cap, first * Double(1 << min(tries, 20)))
        tries += 1
        return bound * Double.random(in: 0.5...1, using: &random)
    }

    package mutating func next() -> Duration {
        var random = SystemRandomNumberGenerator()
        return next(using: &random)
    }

    package mutating func reset() {
        tries = 0
    }
}
