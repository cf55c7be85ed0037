import Supervision

/// The same numbers for the same seed, so that a failure can be had again.
struct Dice: RandomNumberGenerator {
    private var state: UInt64

    init(_ seed: Int) { state = UInt64(truncatingIfNeeded: seed) &* 0x9e37_79b9_7f4a_7c15 }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ mixed >> 30) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ mixed >> 27) &* 0x94d0_49bb_1331_11eb
        return mixed ^ mixed >> 31
    }

    mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: next() % UInt64(bound)) }
}

extension Moment {
    static let start = Moment(nanoseconds: 1_000_000_000_000)

    func after(_ milliseconds: Int) -> Moment { self + .milliseconds(milliseconds) }
}

let sequences = 100_000
