/// How long a child may take for a request. Time in which it was ready to run and had no processor is the machine's, and does not count. A
/// child that has had little processor time all the same (the machine swaps, or holds it back) goes on while it gets some.
package struct RequestTime: Sendable {
    package enum Verdict: Sendable, Equatable {
        /// Look again after this time.
        case goesOn(Duration)
        /// It took its time, or it stands still.
        case isOver
        /// The machine had no time for it.
        case isStarved
    }

    /// However busy the machine is, in times of the limit.
    package static let most = 10

    private let limit: Duration
    /// The processor time at the last look after the limit.
    private var seen: Duration?

    package init(limit: Duration) { self.limit = limit }

    /// - Parameter waited: how long it was ready to run and did not
    /// - Parameter cpu: the processor time it has had
    package mutating func verdict(elapsed: Duration, waited: Duration, cpu: Duration) -> Verdict {
        let (own, most) = (elapsed - waited, limit * Self.most)
        if own < limit { return elapsed < most ? .goesOn(min(limit - own, most - elapsed)) : .isStarved }
        guard cpu * 2 < limit else { return .isOver }
        defer { seen = cpu }
        if let seen, cpu - seen < limit / 200 { return .isOver }
        return elapsed < most ? .goesOn(min(limit / 4, most - elapsed)) : .isStarved
    }
}
