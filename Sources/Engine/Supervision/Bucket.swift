/// When the next call may go, so that the fleet as a whole keeps to a provider's pace. Time is cut into cells, which are dealt out to the
/// workers in turn by the fleet's clock. Each worker uses its own cells, so no two calls meet and no worker has to ask.
package struct Bucket: Sendable {
    package struct Share: Sendable, Equatable {
        /// Our place among the callers, from 0.
        package var rank = 0
        package var callers = 1

        package init(rank: Int = 0, callers: Int = 1) {
            self.callers = max(1, callers)
            self.rank = min(max(0, rank), self.callers - 1)
        }
    }

    /// A little less than the allowed pace, because calls take different times on their way.
    package static let caution = 0.97

    /// The configured pace; the provider's own statement counts if it is lower.
    package let cap: Double?
    /// Calls a second for the whole fleet, as the provider states it. nil: not known.
    package private(set) var learned: Double?
    package private(set) var share = Share()
    /// No call goes before then.
    package private(set) var blocked = Moment(nanoseconds: .min)
    /// How far the fleet's clock is ahead of ours.
    private var ahead: Int64 = 0
    private var lastTaken = Moment(nanoseconds: .min / 2)
    private var throttles = 0

    package init(cap: Double? = nil) {
        self.cap = cap
    }

    package var rate: Double? {
        switch (cap, learned) {
        case (let cap?, let learned?): min(cap, learned)
        case (let some?, nil), (nil, let some?): some
        case (nil, nil): nil
        }
    }

    private var cell: Int64? { rate.map { max(1, Int64(1e9 / ($0 * Self.caution))) } }
    /// From one of our cells to the next.
    package var interval: Int64? { cell.map { $0 * Int64(share.callers) } }

    /// When this call may go; its place is taken then.
    package mutating func take(at now: Moment) -> Moment {
        guard let time = next(at: now) else { return max(now, blocked) }
        lastTaken = time
        return time
    }

    /// When the next call may go.
    package func peek(at now: Moment) -> Moment {
        next(at: now) ?? max(now, blocked)
    }

    private func next(at now: Moment) -> Moment? {
        guard let interval, let cell else { return nil }
        let earliest = max(now, blocked)
        // Our present cell, if it is unused: half an interval keeps the call apart from the last one.
        let notBefore = lastTaken.nanoseconds + interval / 2
        let fleet = earliest.nanoseconds + ahead - Int64(share.rank) * cell
        let current = fleet.floored(by: interval) * interval + Int64(share.rank) * cell - ahead
        if current >= notBefore { return earliest }
        let steps = max(1, (notBefore - current + interval - 1) / interval)
        return Moment(nanoseconds: current + steps * interval)
    }

    /// The place was not used. It is free again unless a later one was taken.
    package mutating func giveBack(_ time: Moment) {
        guard let interval, time == lastTaken else { return }
        lastTaken = Moment(nanoseconds: lastTaken.nanoseconds - interval)
    }

    package mutating func learn(rate: Double?) {
        learned = rate
    }

    package mutating func dealt(_ share: Share, ahead: Int64) {
        self.share = share
        self.ahead = ahead
    }

    /// The provider says that we call too fast, and how long to wait. Returns until when everybody should wait, if all should know.
    package mutating func throttled(wait: Duration?, at now: Moment) -> Moment? {
        throttles = min(throttles + 1, 7)
        if let interval {
            // Others use the same allowance, or the clocks disagree: we skip some of our turns, and the pace stays.
            let skipped = Int64(1 << (throttles - 1)) * interval
            let pause = min(wait?.nanoseconds ?? 0, 60_000_000_000)
            lastTaken = max(lastTaken, now)
            block(until: Moment(nanoseconds: now.nanoseconds + max(min(skipped, 60_000_000_000), pause)))
            return nil
        }
        let pause = wait ?? .seconds(1 << (throttles - 1))
        block(until: now + min(pause, .seconds(86_400)))
        return blocked
    }

    package mutating func served() {
        throttles = 0
    }

    package mutating func block(until moment: Moment) {
        blocked = max(blocked, moment)
    }
}

extension Int64 {
    fileprivate func floored(by divisor: Int64) -> Int64 {
        let quotient = self / divisor
        return self % divisor < 0 ? quotient - 1 : quotient
    }
}
