/// How to look at what lies below the bottoms, where nothing should be: whole as long as that costs nothing, and piece by piece from the
/// bottom back once it is dear, as it is while a snapshot is held open that keeps all that ever was. A whole look would then hold a core
/// for seconds. Pure; places and times are numbers here.
package struct BelowFloorScan: Sendable {
    /// To where a round has come back, and how far the next piece reaches.
    private var upTo: Double?
    private var reach: Double
    private var isQuick = true
    /// A whole look takes longer than a piece may.
    package private(set) var isDear = false

    private let firstReach: Double
    private let end: Double

    /// A piece may take so long. Its size follows.
    static let enough = Duration.milliseconds(5)

    /// - Parameter end: nothing stands at it or below.
    package init(firstReach: Double, end: Double) {
        (reach, self.firstReach, self.end) = (firstReach, firstReach, end)
    }

    package mutating func lookedWhole(took: Duration) {
        isDear = took > Self.enough
        begin()
    }

    /// The next piece, without its lower end. The same until it has been looked at.
    package mutating func piece(below bottom: Double) -> (above: Double, upTo: Double) {
        let upTo = self.upTo ?? bottom
        self.upTo = upTo
        return (max(upTo - reach, end), upTo)
    }

    package mutating func lookedAtPiece(took: Duration) {
        guard let upTo else { return }
        if took > Self.enough { isQuick = false }
        let above = piece(below: upTo).above
        guard above > end else {
            if isQuick { isDear = false }
            return begin()
        }
        self.upTo = above
        reach = max(reach * min(max(Self.enough / max(took, .microseconds(1)), 0.1), 2), firstReach / 10)
    }

    private mutating func begin() {
        (upTo, reach, isQuick) = (nil, firstReach, true)
    }
}
