import MillraceQueues
import Testing

@testable import Workers

@Suite struct WorkerWatchTests {
    static let start = ContinuousClock.now

    static func sign(_ beat: Int64, direct: Bool = true, free: Bool = false, session: Int64 = 1) -> Sign {
        Sign(session: session, beat: beat, direct: direct, lockIsFree: free)
    }

    static func at(_ seconds: Double) -> ContinuousClock.Instant {
        start + .seconds(seconds)
    }

    @Test func `a beat that stands still for thirty seconds is dead`() {
        var watch = Watch()
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(0)).isEmpty))
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(29.9)).isEmpty))
        let dead = watch.look([Self.sign(5)], at: Self.at(30))
        #expect(dead.count == 1 && dead[0] == (1, 5))
    }

    @Test func `a beat that moves is alive, however slowly`() {
        var watch = Watch()
        for beat in 0..<20 {
            #expect(holds(watch.look([Self.sign(Int64(beat))], at: Self.at(Double(beat) * 29)).isEmpty))
        }
    }

    @Test func `a free session lock that was seen held shortens the wait to five seconds`() {
        var watch = Watch()
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(0)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(4.9)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(5)).count == 1))
    }

    @Test func `after a restart of the database, when all locks are free, nobody is dead in five seconds`() {
        var watch = Watch()
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(0)).isEmpty))
        watch.reconnected()
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(40)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(49.9)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(50)).count == 1))
    }

    @Test func `a lock never seen held and free from the first look proves something only after ten seconds`() {
        var watch = Watch()
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(0)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(9.9)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, free: true)], at: Self.at(10)).count == 1))
    }

    @Test func `a worker behind a pooler has no lock to lose`() {
        var watch = Watch()
        #expect(holds(watch.look([Self.sign(5, direct: false)], at: Self.at(0)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, direct: false, free: true)], at: Self.at(29)).isEmpty))
        #expect(holds(watch.look([Self.sign(5, direct: false, free: true)], at: Self.at(31)).count == 1))
    }

    @Test func `a frozen watcher starts again once it has reconnected`() {
        var watch = Watch()
        _ = watch.look([Self.sign(5)], at: Self.at(0))
        watch.reconnected()
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(3600)).isEmpty))
        #expect(holds(watch.look([Self.sign(6)], at: Self.at(3602)).isEmpty))
    }

    /// What passes between the last look over one connection and the first over the next is not counted: nobody's beats were seen.
    @Test func `the silence that was watched counts across reconnects`() {
        var watch = Watch()
        for cut in 0..<5 {
            let began = Double(cut) * 100
            #expect(holds(watch.look([Self.sign(5)], at: Self.at(began)).isEmpty))
            #expect(holds(watch.look([Self.sign(5)], at: Self.at(began + 5.9)).isEmpty))
            watch.reconnected()
        }
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(500)).isEmpty))
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(501.9)).isEmpty))
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(502)).count == 1))
    }

    @Test func `a beat after a reconnect forgives the silence before it`() {
        var watch = Watch()
        _ = watch.look([Self.sign(5)], at: Self.at(0))
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(29)).isEmpty))
        watch.reconnected()
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(30)).isEmpty))
        #expect(holds(watch.look([Self.sign(6)], at: Self.at(31)).isEmpty))
        #expect(holds(watch.look([Self.sign(6)], at: Self.at(60)).isEmpty))
        #expect(holds(watch.look([Self.sign(6)], at: Self.at(61)).count == 1))
    }

    /// Whatever the spans between cuts are, long or shorter than any rule asks for.
    @Test(arguments: [0.5, 1.5, 3, 7, 29.5])
    func `no series of cuts puts a rescue off for more than a minute of connected time`(span: Double) {
        var watch = Watch()
        var (now, connected) = (0.0, 0.0)
        while connected < 61 {
            for step in 0...10 where watch.look([Self.sign(5)], at: Self.at(now + span * Double(step) / 10)).count == 1
            {
                #expect(connected + span * Double(step) / 10 >= 29.9)
                return
            }
            connected += span
            now += span + 40
            watch.reconnected()
        }
        Issue.record("it was never rescued")
    }

    /// One that beats within two seconds of each reconnect, and every two seconds after that.
    @Test(arguments: [0.5, 1.5, 3, 7, 29.5]) func `no series of cuts makes a living worker a dead one`(span: Double) {
        var watch = Watch()
        var (now, beat, since) = (0.0, Int64(0), 0.0)
        for _ in 0..<200 {
            var at = 0.0
            while at <= span {
                if since >= 1.9 { (beat, since) = (beat + 1, 0) }
                #expect(holds(watch.look([Self.sign(beat, free: true)], at: Self.at(now + at)).isEmpty))
                at += 0.1
                since += 0.1
            }
            now += span + 40
            watch.reconnected()
        }
    }

    @Test func `a frozen worker that beats again is forgiven`() {
        var watch = Watch()
        _ = watch.look([Self.sign(5)], at: Self.at(0))
        #expect(holds(watch.look([Self.sign(5)], at: Self.at(25)).isEmpty))
        #expect(holds(watch.look([Self.sign(6)], at: Self.at(29)).isEmpty))
        #expect(holds(watch.look([Self.sign(6)], at: Self.at(58)).isEmpty))
        #expect(holds(watch.look([Self.sign(6)], at: Self.at(59)).count == 1))
    }

    @Test func `only the watcher's own clock counts`() {
        var watch = Watch()
        // The beat's number may jump back, as after a restore: what matters is that it moved.
        _ = watch.look([Self.sign(500)], at: Self.at(0))
        #expect(holds(watch.look([Self.sign(1)], at: Self.at(31)).isEmpty))
    }

    @Test func `sessions are watched each for itself, and forgotten when they are gone`() {
        var watch = Watch()
        _ = watch.look([Self.sign(1, session: 1), Self.sign(1, session: 2)], at: Self.at(0))
        #expect(watch.others == 2)
        let dead = watch.look([Self.sign(1, session: 1), Self.sign(2, session: 2)], at: Self.at(30))
        #expect(dead.map(\.session) == [1])
        #expect(holds(watch.look([Self.sign(2, session: 2)], at: Self.at(31)).isEmpty))
        #expect(watch.others == 1)
        #expect(holds(watch.look([Self.sign(1, session: 1)], at: Self.at(62)).isEmpty))
    }
}
