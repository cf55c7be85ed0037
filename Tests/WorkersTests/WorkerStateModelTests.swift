import MillraceJobs
import MillraceQueues
import TestSupport
import Testing

@testable import Workers

@Suite struct WorkerStateModelTests {
    /// The database's side: which leases live, and what is left in each.
    struct Model {
        var random: SeededRandom
        var state: WorkerState
        var left: [Int64: Set<Int64>] = [:]
        var completed: Set<Int64> = []
        var lost: Set<Int64> = []
        var recorded: Set<Int64> = []
        var accepted: Set<Int64> = []
        var unread: [Int64: [Claimed]] = [:]
        var runs: [Run] = []
        var flush: Flush?
        var nextJob: Int64 = 0
        var nextNumber: Int64 = 0
        let slots: Int
        let bounds: [Int32: Int]

        init(seed: UInt64, slots: Int, bounds: [Int32: Int]) {
            random = SeededRandom(seed)
            state = WorkerState(slots: slots, bounds: bounds)
            self.slots = slots
            self.bounds = bounds
        }

        mutating func claim() {
            var jobs: [Claimed] = []
            nextNumber += 8
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                nextJob += 1
                let number = nextNumber + (random.chance(0.3) ? 1 : 0)
                let queue = Int32.random(in: 1...3, using: &random)
                jobs.append(claimed(nextJob, number: number, lane: Lane(queue: queue, priority: 4, line: .normal)))
                left[number, default: []].insert(nextJob)
                accepted.insert(nextJob)
            }
            if random.chance(0.7) {
                state.accept(jobs)
            } else {
                state.expect(taken(jobs))
                for job in jobs { unread[job.number, default: []].append(job) }
            }
        }

        /// The jobs of some leases are read; what was lost before does not come, and some the server has forgotten.
        mutating func read(all: Bool = false) {
            let asked = Set(state.expected.map(\.number)).filter { _ in all || random.chance(0.7) }
            for number in asked.sorted() where random.chance(0.2) { lost.insert(number) }
            let live = asked.subtracting(lost).sorted()
            let forgotten = state.arrived(live.flatMap { unread[$0] ?? [] }, of: asked)
            #expect(forgotten == asked.intersection(lost))
            #expect(Set(state.expected.map(\.number)).isDisjoint(with: asked))
            for number in asked { unread[number] = nil }
        }

        mutating func start() {
            guard let job = state.next() else { return }
            let run = makeRun(job)
            #expect(holds(state.started(run) == !lost.contains(job.number)))
            #expect(!runs.contains { $0.job.id == job.id }, "job \(job.id) runs twice")
            runs.append(run)
        }

        mutating func end() {
            guard let index = runs.indices.randomElement(using: &random) else { return }
            let run = runs.remove(at: index)
            let outcome = Outcome.allCases.randomElement(using: &random) ?? .succeeded
            let tells = !lost.contains(run.job.number) || random.chance(0.5)
            state.ended(run, tells ? Ended(job: run.job, outcome: outcome) : nil)
        }

        mutating func send() {
            guard flush == nil else {
                #expect(holds(state.takeFlush() == nil), "two flushes in flight")
                return
            }
            flush = state.takeFlush(
                most: Int.random(in: 1...10, using: &random), plenty: Int.random(in: 1...6, using: &random))
            guard let flush else { return }
            #expect(Set(flush.ended.map(\.job.id)).count == flush.ended.count)
            #expect(Set(flush.ended.map(\.job.id)).isDisjoint(with: recorded), "an end is told twice")
            #expect(Set(flush.partial).isDisjoint(with: flush.complete.map(\.number)))
            #expect(Set(flush.partial).union(flush.complete.map(\.number)) == Set(flush.ended.map(\.job.number)))
            for (number, count) in flush.complete where !lost.contains(number) {
                let mine = Set(flush.ended.filter { $0.job.number == number }.map(\.job.id))
                #expect(left[number] == mine, "lease \(number) is named complete while others are unacknowledged")
                #expect(mine.count == Int(count))
                #expect(holds(completed.insert(number).inserted), "lease \(number) is named complete twice")
            }
            for number in flush.partial where !lost.contains(number) {
                let mine = Set(flush.ended.filter { $0.job.number == number }.map(\.job.id))
                #expect((left[number] ?? []).isStrictSuperset(of: mine), "lease \(number) should be complete")
            }
        }

        mutating func answer() {
            guard let flush else { return }
            self.flush = nil
            var live: Set<Int64> = []
            for end in flush.ended where left[end.job.number] != nil && !lost.contains(end.job.number) {
                live.insert(end.job.number)
                left[end.job.number]?.remove(end.job.id)
                recorded.insert(end.job.id)
            }
            let loss = state.flushed(flush, live: live)
            #expect(Set(loss.refused.map(\.job.number)).isDisjoint(with: live))
            // Those of the flush, and what ended meanwhile of the same leases.
            #expect(
                loss.refused.prefix(flush.ended.count { !live.contains($0.job.number) }).map(\.job.id)
                    == flush.ended.filter { !live.contains($0.job.number) }.map(\.job.id))
            #expect(loss.runs.allSatisfy { lost.contains($0.job.number) })
            #expect(loss.refused.allSatisfy { lost.contains($0.job.number) })
        }

        /// Somebody rescued a lease; the worker hears of it now, or by its next flush.
        mutating func rescue() {
            guard
                let number = left.keys.filter({ !(left[$0]?.isEmpty ?? true) && !lost.contains($0) }).sorted()
                    .randomElement(using: &random), flush?.ended.contains(where: { $0.job.number == number }) != true
            else { return }
            lost.insert(number)
            let running = Set(runs.filter { $0.job.number == number }.map(\.job.id))
            #expect(holds(Set(state.lose([number]).runs.map(\.job.id)) == running))
        }

        func check() {
            #expect(state.runningCount == runs.count && runs.count <= slots)
            for (queue, bound) in bounds {
                #expect(runs.count { $0.job.lane.queue == queue } <= bound)
            }
            #expect(state.held == runs.count + state.waitingCount)
            #expect(state.leaseNumbers.isDisjoint(with: lost))
            let unread = Set(state.expected.map(\.number))
            #expect(runs.allSatisfy { !unread.contains($0.job.number) }, "it began before its lease was read")
            #expect(state.atHand <= state.held)
        }
    }

    @Test(arguments: 0..<150 as Range<UInt64>)
    func `no job is lost or doubled, and a lease is complete exactly once`(seed: UInt64) {
        var model = Model(seed: seed, slots: 5, bounds: seed % 2 == 0 ? [:] : [2: 2, 3: 0])
        for _ in 0..<500 {
            switch Int.random(in: 0..<20, using: &model.random) {
            case 0, 1: model.claim()
            case 2..<8: model.start()
            case 8..<13: model.end()
            case 13..<16: model.send()
            case 16..<18: model.answer()
            case 18: model.read()
            default: if model.random.chance(0.3) { model.rescue() }
            }
            model.check()
        }
        // Wind up: hand back what has not started, end what runs, record it all.
        model.state.stopped = true
        model.state.handBack()
        model.read(all: true)
        while !model.runs.isEmpty { model.end() }
        while model.state.pendingCount > 0 || model.flush != nil {
            model.send()
            model.answer()
        }
        #expect(model.state.isEmpty)
        #expect(model.state.held == 0 && model.state.runningCount == 0)
        let kept = model.left.filter { !model.lost.contains($0.key) }
        #expect(kept.filter { !$0.value.isEmpty }.isEmpty, "jobs were forgotten")
        #expect(model.completed.isSuperset(of: kept.keys))
        let told = model.state.totals.finished + model.state.totals.handedBack
        #expect(told == model.recorded.count)
        #expect(model.state.room == model.bounds)
    }
}
