/// How many days in a row, and what a missed one costs. `millrace.streak_step` decides the same in the database.
package struct Streak: Sendable, Equatable {
    package enum Outcome: String, Sendable, CaseIterable {
        case done
        case missed
        /// The calendar left the day out, or a family moved past it: it neither helps nor harms.
        case notLived = "not_lived"
    }

    package var length = 0
    package var best = 0
    package var freezes = 0

    /// This many days in a row earn a freeze; this many days with a mood earn an award.
    package static let week = 7
    package static let mostFreezes = 2

    package init() {}

    package init(length: Int, best: Int, freezes: Int) {
        self.length = length
        self.best = best
        self.freezes = freezes
    }

    package mutating func pass(_ outcome: Outcome) {
        switch outcome {
        case .done:
            length += 1
            best = max(best, length)
            if length.isMultiple(of: Self.week) { freezes = min(freezes + 1, Self.mostFreezes) }
        case .missed where length > 0 && freezes > 0: freezes -= 1
        case .missed: length = 0
        case .notLived: break
        }
    }

    package static func folding(_ outcomes: some Sequence<Outcome>) -> Streak {
        var streak = Streak()
        for outcome in outcomes { streak.pass(outcome) }
        return streak
    }

    /// A streak of days that are known only by having something in them, and the days at which it reached a full week.
    ///
    /// - Parameter days: day numbers, each once, in order.
    /// - Parameter lived: false for a day that does not count.
    package static func folding(
        days: [Int], lived: (Int) -> Bool
    ) -> (streak: Streak, full: [Int]) {
        var streak = Streak()
        var full: [Int] = []
        var last: Int?
        for day in days {
            // More missed days than freezes and one end any streak.
            if let last, day - last > 1 {
                let missed = day - last > 12 ? mostFreezes + 1 : (last + 1..<day).count(where: lived)
                for _ in 0..<min(missed, mostFreezes + 1) { streak.pass(.missed) }
            }
            streak.pass(.done)
            if streak.length.isMultiple(of: week) { full.append(day) }
            last = day
        }
        return (streak, full)
    }
}
