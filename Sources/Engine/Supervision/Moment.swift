import Glibc

/// A point of this machine's steady clock: a plain number, for the call path reads it twice a call.
package struct Moment: Comparable, Hashable, Sendable {
    package var nanoseconds: Int64

    package init(nanoseconds: Int64) {
        self.nanoseconds = nanoseconds
    }

    package static var now: Moment {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Moment(nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec))
    }

    package static func < (one: Moment, other: Moment) -> Bool { one.nanoseconds < other.nanoseconds }
    package static func + (moment: Moment, span: Duration) -> Moment {
        Moment(nanoseconds: moment.nanoseconds.saturatingAdd(span.nanoseconds))
    }
    package static func - (one: Moment, other: Moment) -> Duration {
        .nanoseconds(one.nanoseconds - other.nanoseconds)
    }
}

extension Duration {
    /// Clamped to what 64 bits hold, some 292 years.
    package var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        let (whole, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
        if overflow { return seconds < 0 ? .min : .max }
        return whole.saturatingAdd(attoseconds / 1_000_000_000)
    }

    package var inSeconds: Double { Double(nanoseconds) / 1e9 }
}

extension Int64 {
    fileprivate func saturatingAdd(_ other: Int64) -> Int64 {
        let (sum, overflow) = addingReportingOverflow(other)
        return overflow ? (other < 0 ? .min : .max) : sum
    }
}
