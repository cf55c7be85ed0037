/// How many calls may be second attempts. Each first attempt earns a share of a retry; and each second one whole retry, up to a small
/// reserve. Without the latter there would be no retries once no new calls come, and doubtful requests could never be settled.
package struct RetryBudget: Sendable, Equatable {
    /// The most tokens in the budget.
    package static let reserve = 10.0
    /// After this time there is one more.
    package static let pause = Duration.seconds(1)

    package let share: Double
    private var credit = reserve
    private var counted: Moment?

    package init(share: Double) {
        self.share = share
    }

    package mutating func earn() {
        credit = min(Self.reserve, credit + share)
    }

    package mutating func spend(at now: Moment) -> Bool {
        if let counted, now > counted { credit = min(Self.reserve, credit + (now - counted).inSeconds) }
        counted = now
        guard credit >= 1 else { return false }
        credit -= 1
        return true
    }
}
