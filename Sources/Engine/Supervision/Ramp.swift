/// How traffic comes back: a share of the calls, and a number of calls at once in a process, both growing step by step. Each step lets one
/// call through whatever its share, for a share of a few calls would be none.
package struct Ramp: Sendable, Equatable {
    package struct Step: Sendable, Equatable {
        package var share: Double
        package var atOnce: Int
    }

    package static let steps = [
        Step(share: 0.05, atOnce: 1), Step(share: 0.1, atOnce: 2), Step(share: 0.2, atOnce: 4),
        Step(share: 0.4, atOnce: 8), Step(share: 0.6, atOnce: 16), Step(share: 0.8, atOnce: 32),
    ]

    package let began: Moment
    package let stepLength: Duration
    private var credit = 1.0
    /// The last step that a call came in.
    private var reached = 0
    package private(set) var out = 0

    package init(began: Moment, stepLength: Duration) {
        self.began = began
        self.stepLength = stepLength
    }

    /// nil: the ramp is over.
    package func step(at now: Moment) -> Int? {
        let step = max(0, (now - began).nanoseconds) / max(1, stepLength.nanoseconds)
        return step < Self.steps.count ? Int(step) : nil
    }

    package mutating func admits(at now: Moment) -> Bool {
        guard let number = step(at: now) else { return true }
        let step = Self.steps[number]
        if number > reached {
            reached = number
            credit = max(credit, 1)
        }
        if credit < 1 { credit += step.share }
        guard credit >= 1, out < step.atOnce else { return false }
        credit -= 1
        out += 1
        return true
    }

    package func nextStep(after now: Moment) -> Moment {
        let passed = max(0, (now - began).nanoseconds) % max(1, stepLength.nanoseconds)
        return now + .nanoseconds(stepLength.nanoseconds - passed)
    }

    package mutating func leave() {
        out = max(0, out - 1)
    }
}
