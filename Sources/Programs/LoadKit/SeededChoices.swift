import CommandKit

/// Choices that a seed replays. SplitMix64.
package struct SeededChoices: RandomNumberGenerator, Sendable {
    private var state: UInt64

    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    package mutating func chance(_ share: Double) -> Bool { Double.random(in: 0..<1, using: &self) < share }

    /// One of these, each as likely as its weight says.
    package mutating func pick<Element>(_ choices: [(Element, Int)]) -> Element? {
        var place = Int.random(in: 0..<max(1, choices.reduce(0) { $0 + $1.1 }), using: &self)
        for (choice, weight) in choices {
            if place < weight { return choice }
            place -= weight
        }
        return choices.last?.0
    }
}
