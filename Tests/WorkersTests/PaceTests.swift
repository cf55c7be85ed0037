import Testing

@testable import Workers

@Suite struct PaceTests {
    @Test func `nobody sleeps longer than the poll interval, and not in step`() {
        let naps = (0..<1000).map { _ in Worker.Pace.nap(.seconds(2)) }
        #expect(naps.allSatisfy { $0 <= .seconds(2) && $0 >= .milliseconds(1800) })
        #expect(Set(naps).count > 900)
    }
}
