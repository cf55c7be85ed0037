import Testing

@testable import Workers

@Suite struct ClaimPaceTests {
    private let start = ContinuousClock.now

    @Test func `after a single job it lingers for 20 ms`() {
        var pace = ClaimPace(at: start)
        pace.sleeps()
        pace.worked(at: start + .seconds(60))
        #expect(pace.pause(at: start + .seconds(60)) == .milliseconds(2))
        #expect(pace.pause(at: start + .seconds(60) + .milliseconds(19)) == .milliseconds(2))
        #expect(pace.pause(at: start + .seconds(60) + .milliseconds(20)) == nil)
    }

    @Test func `a stream that has lasted is waited for longer`() {
        var pace = ClaimPace(at: start)
        for step in 0...400 { pace.worked(at: start + .milliseconds(step)) }
        let last = start + .milliseconds(400)
        #expect(pace.pause(at: last + .milliseconds(40)) == .milliseconds(4))
        #expect(pace.pause(at: last + .milliseconds(99)) == .milliseconds(5))
        #expect(pace.pause(at: last + .milliseconds(100)) == nil, "a quarter of what it has lasted")
    }

    @Test func `none is waited for longer than a quarter of a second`() {
        var pace = ClaimPace(at: start)
        pace.worked(at: start)
        pace.worked(at: start + .seconds(3600))
        #expect(pace.pause(at: start + .seconds(3600) + .milliseconds(249)) != nil)
        #expect(pace.pause(at: start + .seconds(3600) + .milliseconds(250)) == nil)
    }

    @Test func `a stream starts again after sleep`() {
        var pace = ClaimPace(at: start)
        pace.worked(at: start + .seconds(10))
        pace.sleeps()
        pace.worked(at: start + .seconds(20))
        #expect(pace.pause(at: start + .seconds(20) + .milliseconds(20)) == nil)
    }

    @Test func `work ends a careful look`() {
        var pace = ClaimPace(at: start)
        #expect(pace.careful, "the first look goes everywhere")
        pace.worked(at: start)
        #expect(!pace.careful)
    }

    @Test func `nobody sleeps longer than the poll interval, and not in step`() {
        let naps = (0..<1000).map { _ in ClaimPace.nap(.seconds(2)) }
        #expect(naps.allSatisfy { $0 <= .seconds(2) && $0 >= .milliseconds(1800) })
        #expect(Set(naps).count > 900)
    }

    @Test func `where nothing calls, the naps grow with the silence, to the poll interval`() {
        var pace = ClaimPace(at: start)
        pace.worked(at: start)
        #expect(pace.unheardNap(.seconds(1), at: start) == .milliseconds(50))
        #expect(pace.unheardNap(.seconds(1), at: start + .seconds(4)) == .milliseconds(500))
        #expect(pace.unheardNap(.seconds(1), at: start + .seconds(3600)) <= .seconds(1))
    }
}
