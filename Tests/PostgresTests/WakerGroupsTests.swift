import Testing

@testable import Postgres

@Suite struct WakerGroupsTests {
    /// Groups that are told what happens at a millisecond, and say whom they order what, sorted.
    private struct Stage {
        var groups = WakerGroups()
        let start = ContinuousClock.now

        init(_ workers: Int, takes: (Int) -> String = { _ in "a" }) {
            groups.isHeard = true
            for id in 1...workers {
                groups.came(id, at: start)
                _ = groups.takes(id, takes(id), at: start)
            }
        }

        func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

        private func text(_ orders: WakerGroups.Orders) -> [String] {
            orders.map { "\($0.id) \($0.order.rawValue)" }.sorted()
        }

        mutating func say(_ state: WakerState, _ ids: Int..., at time: Int) -> [String] {
            text(ids.flatMap { groups.said($0, state, at: at(time)) })
        }

        mutating func settle(at time: Int) -> [String] { text(groups.settle(at: at(time))) }
        mutating func hold(at time: Int) -> [String] { text(groups.holds(at: at(time))) }
        mutating func wait(at time: Int) -> [String] { text(groups.waits(at: at(time))) }
        mutating func note(at time: Int) -> [String] { text(groups.noted(at: at(time))) }
        func needsNotes(at time: Int) -> Bool { groups.needsNotes(at: at(time)) }
        func uncovered(at time: Int) -> [Int] { groups.uncovered(at: at(time)).sorted() }
    }

    @Test func `writers notify where some sleep and nobody looks, and what was written before is looked for by two`() {
        var stage = Stage(4)
        #expect(!stage.needsNotes(at: 0), "nobody has said that it sleeps")
        #expect(stage.say(.asleep, 1, 2, 3, 4, at: 0) == [])
        #expect(stage.needsNotes(at: 0))
        #expect(stage.wait(at: 1) == ["1 look", "2 look"], "as long as only some notify")
        #expect(stage.hold(at: 2) == ["1 covered", "2 covered", "3 covered", "3 look", "4 covered", "4 look"])
        #expect(stage.hold(at: 3) == [] && stage.settle(at: 4) == [], "once")
        stage.groups.gives()
        #expect(stage.hold(at: 5) == ["1 look", "2 look"], "again after a gap, however short")
    }

    @Test func `where one looks the others are covered, until it sleeps, is full, is stuck or has gone`() {
        for end in ["asleep", "full", "stuck", "gone"] {
            var stage = Stage(3)
            _ = stage.say(.asleep, 1, 2, 3, at: 0)
            #expect(stage.say(.awake, 1, at: 0) == ["1 covered", "2 covered", "3 covered"])
            #expect(!stage.needsNotes(at: 200) && stage.uncovered(at: 200).isEmpty)
            var time = 200
            switch end {
            case "asleep": #expect(stage.say(.asleep, 1, at: time) == ["1 uncovered", "2 uncovered", "3 uncovered"])
            case "full":
                #expect(stage.say(.full, 1, at: time) == [])
                #expect(!stage.needsNotes(at: 209), "it is likely to look again")
                time = 210
            case "stuck": time = 250
            default: stage.groups.left(1)
            }
            #expect(stage.needsNotes(at: time), "\(end)")
            #expect(stage.uncovered(at: time).contains(2) && stage.uncovered(at: time).contains(3), "\(end)")
            _ = stage.settle(at: time)
            #expect(stage.hold(at: time).count { $0.hasSuffix("look") } == 2, "\(end)")
        }
    }

    @Test func `a group loses its cover while writers notify for another: it looks at once`() {
        var stage = Stage(4) { $0 < 3 ? "a" : "b" }
        _ = stage.say(.asleep, 1, 2, 3, at: 0)
        _ = stage.hold(at: 0)
        _ = stage.say(.awake, 4, at: 1)
        #expect(stage.needsNotes(at: 1) && stage.uncovered(at: 1) == [1, 2])
        #expect(stage.say(.asleep, 4, at: 2) == ["3 look", "4 look"], "it was not told of what came meanwhile")
    }

    @Test func `of more than two that look the others are relieved, and two are left`() {
        var stage = Stage(20)
        for id in 1...20 { _ = stage.say(.awake, id, at: 0) }
        var relieved: Set<Int> = []
        for id in 1...20 where stage.say(.awake, id, at: 50).contains("\(id) enough") { relieved.insert(id) }
        #expect(relieved.count == 18)
        for id in relieved { #expect(stage.say(.asleep, id, at: 51) == []) }
        #expect(!stage.needsNotes(at: 51) && stage.uncovered(at: 51).isEmpty)
        var two = Stage(2) { "\($0)" }
        #expect(!(two.say(.awake, 1, 2, at: 0) + two.say(.awake, 1, 2, at: 50)).contains { $0.hasSuffix("enough") })
    }

    @Test func `in a stream of notes two of each group are asked to look, and others if they do not`() {
        var stage = Stage(6) { $0 < 4 ? "a" : "b" }
        _ = stage.say(.asleep, 1, 2, 3, 4, 5, at: 0)
        _ = stage.hold(at: 0)
        var told: [Int: [String]] = [:]
        for time in 0..<200 {
            let orders = stage.note(at: time)
            if !orders.isEmpty { told[time] = orders }
        }
        let first = WakerGroups.stream.notes - 1
        #expect(told.keys.sorted() == [first, first + 50, first + 100, first + 150])
        #expect(told[first]?.allSatisfy { $0.hasSuffix("watch") } == true && told[first]?.count == 4)
        #expect(Set(told.values.joined()).count == 5, "each in turn; 6 does not sleep")
        var calm = Stage(2)
        _ = calm.say(.asleep, 1, 2, at: 0)
        #expect((0..<100).allSatisfy { calm.note(at: $0 * 20).isEmpty }, "fifty a second are none")
    }

    @Test func `who is full may have left something, so that another looks`() {
        var stage = Stage(3)
        _ = stage.say(.asleep, 1, 2, 3, at: 0)
        _ = stage.hold(at: 0)
        #expect(stage.say(.full, 1, at: 1) == ["2 look", "3 look"])
        #expect(stage.say(.full, 2, at: 2) == ["3 look"])
        #expect(stage.say(.full, 2, at: 3) == [] && stage.say(.full, 3, at: 3) == [])
        #expect(!stage.needsNotes(at: 3))
    }

    /// Whatever workers and the locks do: once all is still and writers notify, one of each group that sleeps has looked,
    /// or was told to, after the last job that nobody was told of.
    @Test(arguments: 1...200) func `nothing that nobody was told of goes unlooked for`(seed: UInt64) {
        var random = SplitMix(seed)
        var stage = Stage(5) { $0 < 4 ? "a" : "b" }
        func group(_ id: Int) -> String { id < 4 ? "a" : "b" }
        /// When jobs came that nobody was told of, and nobody has looked for since, by group.
        var unheard: [String: [Int]] = [:]
        /// What each said last, and when.
        var words: [Int: (state: WakerState, time: Int)] = [:]
        func obey(_ orders: WakerGroups.Orders) {
            for one in orders where one.order == .look && words[one.id]?.state == .asleep {
                unheard[group(one.id)] = []
            }
        }
        var time = 0
        for _ in 0..<300 {
            time += Int(random.next() % 40)
            let now = stage.at(time)
            let id = Int(random.next() % 5) + 1
            switch random.next() % 8 {
            case 0, 1, 2:
                let isTold = stage.groups.isHeld && stage.groups.uncovered(at: now).contains(id)
                if !isTold { unheard[group(id), default: []].append(time) }
            case 3, 4:
                let state: WakerState = [.asleep, .awake, .full][Int(random.next() % 3)]
                // It has looked once since it said that it is awake or full, at the earliest right then.
                if let before = words[id], before.state != .asleep {
                    unheard[group(id)]?.removeAll { $0 <= before.time }
                }
                words[id] = (state, time)
                obey(stage.groups.said(id, state, at: now))
            case 5: if stage.groups.needsNotes(at: now) { obey(stage.groups.holds(at: now)) }
            case 6: if !stage.groups.needsNotes(at: now) { stage.groups.gives() }
            default: obey(stage.groups.settle(at: now))
            }
        }
        time += 1000  // those that said that they look are stuck
        obey(stage.groups.settle(at: stage.at(time)))
        if stage.groups.needsNotes(at: stage.at(time)) { obey(stage.groups.holds(at: stage.at(time))) }
        let asleep = Set(words.filter { $0.value.state == .asleep }.keys.map(group))
        for (group, times) in unheard where asleep.contains(group) {
            #expect(times.isEmpty, "seed \(seed), group \(group): \(times) of \(time)")
        }
    }
}

private struct SplitMix {
    private var state: UInt64

    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }
}
