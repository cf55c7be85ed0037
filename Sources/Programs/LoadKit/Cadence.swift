import CommandKit

/// When the calls of a steady rate are due, whatever happened to the earlier ones. Pure; times are those of `PracticeMarks.now()`.
package struct Cadence: Sendable, Equatable {
    /// When the first call is due, in nanoseconds.
    package var began: Int64
    package var perSecond: Double
    package var calls: Int

    package init(began: Int64, perSecond: Double, calls: Int) {
        self.began = began
        self.perSecond = perSecond
        self.calls = calls
    }

    /// From the whole and not from the call before: rounding does not add up.
    package func due(_ call: Int) -> Int64 {
        began + Int64((Double(call) / perSecond * 1e9).rounded())
    }

    /// When the call after the last would be due: the rate was offered until then.
    package var end: Int64 { due(calls) }

    /// How many are due by then.
    package func count(by now: Int64) -> Int {
        guard now >= began else { return 0 }
        return min(calls, Int(Double(now - began) / 1e9 * perSecond) + 1)
    }

    /// The index of the equal part in which a call lies.
    package func part(of call: Int, parts: Int) -> Int {
        min(parts - 1, max(0, call * parts / max(1, calls)))
    }
}
