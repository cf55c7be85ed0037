/// How many of the calls may be second attempts: each first one earns a share of a retry, up to a small reserve.
package struct RetryBudget: Sendable, Equatable {
    /// So many are there without having been earned.
    package static let reserve = 10.0

    package let share: Double
    private var credit = reserve

    package init(share: Double) {
        self.share = share
    }

    package mutating func earn() {
        credit = min(Self.reserve, credit + share)
    }

    package mutating func spend() -> Bool {
        guard credit >= 1 else { return false }
        credit -= 1
        return true
    }
}
