/// How much one statement asks for: half as much after each that was too slow or too large, and slowly more again. Pure.
package struct BatchSize: Sendable {
    private let whole: Int
    private let least: Int
    package private(set) var size: Int
    private var successes = 0

    /// After this number of successes the next statement may ask for twice as much.
    private static let patience = 8

    package init(_ whole: Int, least: Int) {
        self.whole = whole
        self.least = least
        size = whole
    }

    package var isLeast: Bool { size == least }

    package mutating func failed() {
        size = max(least, size / 2)
        successes = 0
    }

    /// As little as possible: what is asked for may hold something that cannot be answered at all.
    package mutating func gaveWay() {
        size = least
        successes = 0
    }

    package mutating func worked() {
        guard size < whole else { return }
        successes += 1
        guard successes >= Self.patience else { return }
        size = min(whole, max(1, size) * 2)
        successes = 0
    }
}
