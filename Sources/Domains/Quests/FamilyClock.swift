package import Calendars

/// Which local date of a family is open, and how the earlier ones ended. `millrace.quest_roll` and `family_zone` do the same for many
/// families at once; tests compare them with this clock.
package struct FamilyClock: Sendable, Equatable {
    package enum State: String, Sendable {
        /// Next: done; missed when it ends.
        case open
        case done
        /// Next: done, within the grace period.
        case missed
        case notLived = "not_lived"
    }

    package private(set) var zone: Zone
    package private(set) var today: CivilDate
    package private(set) var opened: Int64
    package private(set) var ends: Int64
    package private(set) var states: [Int: State]
    package private(set) var streak = Streak()

    package init(zone: Zone, at now: Int64) {
        self.zone = zone
        today = zone.begunDay(at: now)
        opened = zone.startOfDay(today)
        ends = zone.startOfDay(today.adding(days: 1))
        states = [today.dayNumber: .open]
    }

    /// Processes every midnight up to `now`, one after the other.
    package mutating func pass(to now: Int64) {
        while ends <= now {
            let number = today.dayNumber
            if states[number] == .open { states[number] = .missed }
            streak.pass(outcome(of: number))
            today = today.adding(days: 1)
            let end = max(zone.startOfDay(today.adding(days: 1)), ends)
            if states[today.dayNumber] == nil { states[today.dayNumber] = end == ends ? .notLived : .open }
            (opened, ends) = (ends, end)
        }
    }

    /// A move east over midnight ends today at once, and skips the dates in between; a move west extends today until the clock there has
    /// passed midnight.
    package mutating func move(to zone: Zone, at now: Int64) {
        pass(to: now)
        self.zone = zone
        ends = zone.begunDay(at: now) > today ? now : zone.startOfDay(today.adding(days: 1))
        pass(to: now)
    }

    /// Completes today's quest, or the last lived day's before it if its grace period is not over.
    ///
    /// - Returns: false if it is too late.
    package mutating func complete(_ day: CivilDate, at now: Int64, grace: Int64) -> Bool {
        var seen = self
        seen.pass(to: now)
        let before = seen.states.keys.filter { $0 < seen.today.dayNumber && seen.states[$0] != .notLived }.max()
        guard day == seen.today || (day.dayNumber == before && now <= seen.opened + grace) else { return false }
        states[day.dayNumber] = .done
        if day < today { refold() }
        return true
    }

    private mutating func refold() {
        streak = Streak.folding(states.keys.filter { $0 < today.dayNumber }.sorted().map(outcome(of:)))
    }

    private func outcome(of day: Int) -> Streak.Outcome {
        switch states[day] {
        case .done: .done
        case .notLived: .notLived
        case .open, .missed, nil: .missed
        }
    }
}

extension Zone {
    /// The latest date that has begun: a clock that is put back over midnight does not bring yesterday back.
    package func begunDay(at instant: Int64) -> CivilDate {
        let date = date(at: instant)
        let next = date.adding(days: 1)
        return startOfDay(next) <= instant ? next : date
    }
}
