import TestSupport
import Testing

@testable import Workers

@Suite struct BelowFloorScanTests {
    static let dear = Duration.milliseconds(6)

    /// Looks piece by piece through a world in which each unit costs what `cost` says, until the round is over.
    static func round(
        of backstop: inout BelowFloorScan, below bottom: Double, cost: (_ above: Double, _ upTo: Double) -> Duration
    ) -> [(above: Double, upTo: Double)] {
        var pieces: [(above: Double, upTo: Double)] = []
        repeat {
            let piece = backstop.piece(below: bottom + Double(pieces.count))  // which goes on meanwhile
            pieces.append(piece)
            backstop.lookedAtPiece(took: cost(piece.above, piece.upTo))
        } while (pieces.last?.above ?? 0) > 0 && pieces.count < 100_000
        return pieces
    }

    @Test func `looks are whole until one is dear`() {
        var backstop = BelowFloorScan(firstReach: 10, end: 0)
        #expect(!backstop.isDear)
        backstop.lookedWhole(took: .milliseconds(5))
        #expect(!backstop.isDear)
        backstop.lookedWhole(took: Self.dear)
        #expect(backstop.isDear)
    }

    @Test(arguments: 0..<50 as Range<UInt64>)
    func `a round leaves nothing out, whatever its pieces cost`(seed: UInt64) {
        var random = SeededRandom(seed)
        var backstop = BelowFloorScan(firstReach: 10, end: 0)
        backstop.lookedWhole(took: Self.dear)
        for _ in 0..<3 {
            let pieces = Self.round(of: &backstop, below: 12_345) { _, _ in
                .microseconds(Int.random(in: 0...20_000, using: &random))
            }
            #expect(pieces.first?.upTo == 12_345)
            #expect(pieces.last?.above == 0)
            for (piece, next) in zip(pieces, pieces.dropFirst()) { #expect(piece.above == next.upTo) }
        }
    }

    @Test func `a piece is the same until it has been looked at`() {
        var backstop = BelowFloorScan(firstReach: 10, end: 0)
        let piece = backstop.piece(below: 1000)
        #expect(backstop.piece(below: 2000) == piece)
        backstop.lookedAtPiece(took: .zero)
        #expect(backstop.piece(below: 2000).upTo == piece.above)
    }

    @Test func `pieces come to take what is enough, where the ground is even and where it changes`() {
        var backstop = BelowFloorScan(firstReach: 10_000, end: 0)
        backstop.lookedWhole(took: .seconds(2))
        // Half a microsecond for each place, and ten times as much in a range.
        let pieces = Self.round(of: &backstop, below: 5_000_000) { above, upTo in
            .nanoseconds(Int((upTo - above) * (upTo < 2_000_000 && above > 1_000_000 ? 5000 : 500)))
        }
        let long = pieces.filter { ($0.upTo - $0.above) * 0.5 > 5100 }
        #expect(long.isEmpty)
        #expect(pieces.count < 3000)
        #expect(backstop.isDear)
    }

    @Test func `they are whole again once a round has cost next to nothing`() {
        var backstop = BelowFloorScan(firstReach: 1, end: -6e10)
        backstop.lookedWhole(took: .seconds(2))
        var count = 0
        while backstop.isDear, count < 100 {
            _ = backstop.piece(below: 8e8)
            backstop.lookedAtPiece(took: .microseconds(300))
            count += 1
        }
        #expect(!backstop.isDear)
        #expect(count < 60)  // one a second
    }
}
