/// How many jobs to claim: what the slots can start soon, and no more. Pure.
package struct ClaimDemand: Sendable {
    /// Jobs ended per second, a moving average over about a quarter of a second.
    private(set) var rate = 0.0
    private var ended = 0
    private var since: ContinuousClock.Instant?
    /// For how long the average has been taken, up to its span: a young one soon follows what it sees.
    private var age = Self.youth

    /// How far ahead is claimed, in seconds, so that slots do not wait for a round trip.
    static let ahead = 0.06
    /// For how long a claim waits for its turn: not for less, which would be in vain, nor for more, when others are better side by side.
    private static let turn = (least: 0.003, most: 0.015)
    private static let span = 0.25
    /// Not less, for jobs that began together end together.
    private static let youth = 0.05
    package static let most = 2000
    /// A claim of this many jobs is always loose.
    static let many = 500
    /// Jobs a second from which on they are a stream, of which a claim takes several.
    private static let stream = 1000.0
    /// What a job of a stream may wait for others: longer where more of them come, for there the processor is what is scarce.
    private static let longestGathering = Duration.milliseconds(4)
    private static let gatheringPerJob = Duration.nanoseconds(800)
    /// A claim that found this many was worth it; between the two numbers, the rate decides. A claim that found fewer was cut short by other
    /// workers.
    private static let enough = (least: 12, most: 64)

    package init() {}

    package mutating func ended(_ count: Int, at now: ContinuousClock.Instant) {
        ended += count
        guard let since else {
            self.since = now
            return
        }
        let seconds = since.duration(to: now) / .seconds(1)
        guard seconds >= 0.005 else { return }
        if seconds < Self.span {
            age = min(Self.span, age + seconds)
            rate += (Double(ended) / seconds - rate) * (seconds / age)
        } else {
            (age, rate) = (Self.youth, Double(ended) / seconds)
        }
        ended = 0
        self.since = now
    }

    /// `held`: running and waiting to start. While all slots have work, small claims are put off: what each costs by itself is
    /// shared by more jobs, and what is held ahead then lasts for longer than a claim takes.
    package func wanted(slots: Int, held: Int) -> Int {
        let spare = min(Int((rate * Self.ahead).rounded()), 3 * Self.most)
        let room = slots + spare - held
        guard held < slots || room >= min(spare / 2, Self.most) else { return 0 }
        return max(0, min(room, Self.most))
    }

    /// How long to wait, after a claim that found few, until the next is worth what it costs by itself; nil: no time at all.
    package var gathering: Duration? {
        rate >= Self.stream ? min(Self.gatheringPerJob * rate, Self.longestGathering) : nil
    }

    /// A claim of this many jobs followed a stall, and the next one should not wait.
    package var enough: Int {
        let gathered = Int(2 * rate * ((gathering ?? .zero) / .seconds(1)))
        return min(max(gathered, Self.enough.least), Self.enough.most)
    }

    /// For how long a claim may wait for its turn: while three quarters of what is at hand are worked on. Nil: it should not.
    package func patience(slots: Int, held: Int) -> Duration? {
        let ahead = Double(held - slots)
        guard ahead > 0 else { return nil }
        let wait = min(rate > 0 ? ahead / rate * 0.75 : .infinity, Self.turn.most)
        return wait >= Self.turn.least ? .seconds(wait) : nil
    }

    /// Is it better not to wait for the disk? When there is enough to work on until the leases of a loose claim are confirmed; and when
    /// many are claimed, for then the next claim is what the slots wait for.
    package func isLoose(wanted: Int, slots: Int, held: Int) -> Bool {
        let ahead = Double(held - slots)
        return wanted >= Self.many || ahead > 0 && ahead >= rate * Self.ahead / 4
    }
}
