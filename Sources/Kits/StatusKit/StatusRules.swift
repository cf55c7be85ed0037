import Faults
import FoundationEssentials
package import MillraceQueues
package import Supervision

// What counts as late, silent, overdue: the same for `status`, the console and its alarms.

extension QueueDepth {
    /// `10,000+` where counting stopped.
    package static func counted(_ count: Int, cap: Int?) -> String {
        Humane.count(count) + (cap.map { count >= $0 } ?? false ? "+" : "")
    }

    /// How many jobs are ready: counted, estimated, or more than were counted.
    package func amount(cap: Int?) -> Amount {
        if let estimated { return Amount(count: max(estimated, ready), certainty: .about) }
        return Amount(count: ready, certainty: cap.map { ready >= $0 } ?? false ? .moreThan : .exact)
    }

    /// Longer than anybody should wait without knowing.
    package var isLate: Bool { (oldestAge ?? 0) > 300 }
}

/// A count, and how much is known of it; the same in `status`, in its alarms and in the console.
package struct Amount: Sendable, Equatable {
    package enum Certainty: Int, Sendable, Comparable {
        case exact, about, moreThan

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    package var count: Int
    package var certainty: Certainty

    package init(count: Int = 0, certainty: Certainty = .exact) {
        self.count = count
        self.certainty = certainty
    }

    /// `52`, `about 200,000`, `more than 10,002`
    package var text: String {
        switch certainty {
        case .exact: Humane.count(count)
        case .about: "about \(Humane.count(count))"
        case .moreThan: "more than \(Humane.count(count))"
        }
    }

    package static func + (left: Self, right: Self) -> Self {
        Self(count: left.count + right.count, certainty: max(left.certainty, right.certainty))
    }
}

extension WorkerRow {
    /// Three beats missed: something is wrong there, or between us.
    package var isSilent: Bool { beatAge > 8 }

    package var clockSentence: String {
        let ahead = clockAhead ?? 0
        let apart = Humane.duration(.seconds(ahead.magnitude))
        return "its clock is \(apart) \(ahead > 0 ? "ahead of" : "behind") the database's"
    }
}

extension ScheduleRow {
    /// So late that no worker can be there: they look once a second.
    package var isOverdue: Bool {
        problem == nil && (untilNext.map { $0 < -60 } ?? (pausedAt == nil && now.timeIntervalSince(changedAt) > 60))
    }

    /// By the database's clock.
    package var untilNext: Double? { nextAt?.timeIntervalSince(now) }

    package var missedLately: Bool {
        lastMissedAt.map { now.timeIntervalSince($0) < 3600 } ?? false
    }
}

extension ProviderRow {
    package var label: String { name == "default" || name == "*" ? provider : "\(provider) (\(name))" }

    /// By the database's clock.
    package var stateAge: Double { max(0, now.timeIntervalSince(changedAt)) }

    /// It will not recover without somebody's action.
    package var isGrave: Bool {
        let word = reason.map { String($0.prefix { $0.isLetter || $0 == "_" }) } ?? ""
        return state == "open" && ErrorClass(rawValue: word)?.bearing == .refusing
    }

    package var stateText: String { String(state.map { $0 == "_" ? " " : $0 }) }
}
