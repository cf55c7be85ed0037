import MillraceQueues

extension StatusReport {
    /// The conditions that hold; one that cannot be judged counts as one that holds.
    func hits(of failIf: FailIf) -> [Finding] {
        failIf.conditions.compactMap { condition in
            guard let now = measure(condition.metric) else {
                return Finding(alarm: .condition, severity: .critical, sentence: "\(condition.text) cannot be judged")
            }
            guard condition.comparison.holds(now.value, condition.value) else { return nil }
            return Finding(alarm: .condition, severity: .critical, sentence: "\(condition.text): it is \(now.text)")
        }
    }

    private func measure(_ metric: FailIf.Metric) -> (value: Double, text: String)? {
        func count(_ number: Int?) -> (value: Double, text: String)? {
            number.map { (Double($0), Humane.count($0)) }
        }
        switch metric {
        case .oldest:
            guard let queues = queues.value else { return nil }
            let oldest = queues.filter { $0.pausedAt == nil }.compactMap(\.oldestAge).max() ?? 0
            return (oldest, Humane.duration(.seconds(oldest)))
        case .failed:
            guard let rates = rates.value else { return nil }
            let share = RateSum(rates).failedShare ?? 0
            return (share, Humane.percent(share))
        case .ready: return count(queues.value.map { $0.reduce(0) { $0 + $1.ready } })
        case .running: return count(queues.value.map { $0.reduce(0) { $0 + $1.running } })
        case .dead: return count(deadLastDay.value)
        case .workers: return count(workers.value?.count)
        case .retrying: return count(retries.value.map { $0.reduce(0) { $0 + $1.jobs } })
        case .paused: return count(queues.value.map { $0.filter { $0.pausedAt != nil }.reduce(0) { $0 + $1.ready } })
        case .failing: return count(troubles.value.map { $0.count { $0.trouble != .retrying } })
        case .unserved: return count(rooms.value.map { $0.count(where: \.isUnserved) })
        }
    }
}

extension Severity {
    var style: Style {
        switch self {
        case .ok: .green
        case .degraded: .yellow
        case .critical: .red
        }
    }
}
