import TestSupport
import Testing

@testable import Workers

@Suite struct SlotSharesTests {
    /// Workers that hold as many jobs as they are given, up to what they have.
    private struct Model {
        var shares: SlotShares
        var jobs: [Int]
        var running: [Int]

        init(slots: Int, jobs: [Int]) {
            shares = SlotShares(slots: slots, members: jobs.count)
            self.jobs = jobs
            running = jobs.map { _ in 0 }
        }

        /// It starts what it can, and so do those that it calls.
        mutating func start(_ member: Int) {
            var called = [member]
            while let next = called.popLast() { called += work(next) }
        }

        private mutating func work(_ member: Int) -> [Int] {
            var called: [Int] = []
            while running[member] < jobs[member] {
                // It claims what its cap lets it hold.
                let held = max(running[member], min(jobs[member], shares.cap(of: member)))
                let (cap, others) = shares.take(member, running: running[member], held: held)
                called += others
                guard running[member] < cap else {
                    if shares.stops(member, at: cap) { return called }
                    continue
                }
                running[member] += 1
            }
            // It finds nothing more.
            for _ in 0..<2 { called += shares.look(member, running: running[member], held: running[member]).called }
            return called
        }

        mutating func end(_ member: Int) {
            guard running[member] > 0 else { return }
            running[member] -= 1
            for other in shares.settle(member, running: running[member], held: running[member]).called { start(other) }
        }
    }

    @Test func `one that is busy has all slots but one for each idle one`() {
        var model = Model(slots: 100, jobs: [1000, 0, 0, 0])
        model.start(0)
        #expect(model.running == [97, 0, 0, 0])
    }

    @Test func `one that wakes up begins at once, however busy the others are`() {
        var model = Model(slots: 100, jobs: [1000, 0, 0, 0])
        model.start(0)
        model.jobs[2] = 1
        model.start(2)
        #expect(model.running[2] == 1)
    }

    @Test func `the busy ones have the same when some jobs have ended`() {
        var model = Model(slots: 100, jobs: [1000, 0, 1000, 0])
        model.start(0)
        model.start(2)
        for _ in 0..<200 {
            model.end(0)
            model.start(2)
            model.start(0)
            model.end(2)
            model.start(0)
            model.start(2)
        }
        #expect(abs(model.running[0] - model.running[2]) <= 2, "\(model.running)")
        #expect(model.running.reduce(0, +) >= 97)
    }

    @Test func `one with much to do has its share as soon as that many jobs of the others have ended`() {
        var model = Model(slots: 8, jobs: [20, 0])
        model.start(0)
        model.jobs[1] = 20
        model.start(1)
        #expect(model.running == [7, 1])
        for _ in 0..<3 {
            model.end(0)
            model.start(0)
        }
        #expect(model.running == [4, 4])
    }

    @Test func `one that finds nothing more leaves what it was given to look for it`() {
        var model = Model(slots: 8, jobs: [20, 0])
        model.start(0)
        model.jobs[1] = 1
        model.start(1)
        model.end(0)
        model.start(0)
        #expect(model.running == [6, 1], "and one is left for it, so that it can begin another at once")
    }

    @Test func `as many slots as workers: each has one`() {
        var model = Model(slots: 3, jobs: [9, 9, 9])
        for member in 0..<3 { model.start(member) }
        #expect(model.running == [1, 1, 1])
    }

    @Test(arguments: 1...200) func `never more than all slots, and nobody waits while one is free for it`(seed: Int) {
        var random = SeededRandom(seed)
        let members = 2 + random.below(7)
        let slots = members + random.below(40)
        var model = Model(slots: slots, jobs: (0..<members).map { _ in 0 })
        for _ in 0..<400 {
            let member = random.below(members)
            switch random.below(3) {
            case 0: model.jobs[member] = random.below(2 * slots)
            case 1: model.end(member)
            default: model.start(member)
            }
            #expect(model.running.reduce(0, +) <= slots)
            #expect(model.shares.running == model.running.reduce(0, +))
        }
        // Everybody has more than enough to do: by turns all come to about the same.
        for member in 0..<members { model.jobs[member] = 1000 }
        for _ in 0..<(4 * slots) {
            for member in 0..<members {
                model.end(member)
                for other in 0..<members { model.start((member + 1 + other) % members) }
            }
        }
        let fair = slots / members
        #expect(model.running.allSatisfy { $0 >= fair - 1 && $0 >= 1 }, "\(slots) slots: \(model.running)")
        #expect(model.running.reduce(0, +) > slots - members)
    }
}
