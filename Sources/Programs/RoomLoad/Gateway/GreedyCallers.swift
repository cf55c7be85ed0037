import Glibc
import LoadKit
import Synchronization
import Threads

/// Ordinary people beside a greedy one: each calls at a steady pace on a connection that stays open.
final class OrdinaryPeople: Sendable {
    struct Heard: Sendable {
        /// Milliseconds of each call, sorted.
        var times: [Double] = []
        /// Calls that were not answered as they should be.
        var refused = 0
        /// What the first of these was told.
        var said: String?

        var p99: Double { percentile(times, 0.99) }
    }

    /// Makes a call of a person, its first or a later one.
    typealias Call = @Sendable (GatewayClient, _ person: Int, _ number: Int) -> GatewayClient.Answer

    private let isOver = Atomic(false)
    private let running: Atomic<Int>
    private let heard = Mutex(Heard())

    init(_ people: Int, port: UInt16, pause: Duration, call: @escaping Call) {
        running = Atomic(people)
        let pause = UInt32(pause / .microseconds(1))
        for person in 0..<people {
            Thread.start(name: "ordinary") { [self] in
                let client = GatewayClient(port: port, address: "203.0.113.\(person + 1)")
                // Not all in the same moment.
                usleep(pause / UInt32(people) * UInt32(person))
                var mine = Heard()
                var number = 0
                while !isOver.load(ordering: .relaxed) {
                    let began = ContinuousClock.now
                    let answer = call(client, person, number)
                    mine.times.append(began.duration(to: .now) / .milliseconds(1))
                    if !answer.isGood {
                        mine.refused += 1
                        mine.said = mine.said ?? "\(answer.status) \(answer.text.prefix(300))"
                    }
                    number += 1
                    usleep(pause)
                }
                let all = mine
                heard.withLock { heard in
                    heard.times += all.times
                    heard.refused += all.refused
                    heard.said = heard.said ?? all.said
                }
                running.subtract(1, ordering: .acquiringAndReleasing)
            }
        }
    }

    func stop() -> Heard {
        isOver.store(true, ordering: .relaxed)
        while running.load(ordering: .acquiring) > 0 { usleep(1000) }
        var all = heard.withLock { $0 }
        all.times.sort()
        return all
    }
}

/// One person, or one visitor, who asks for one kind of thing on many connections at once, and again as soon as there is an answer.
struct GreedyFlood: Sendable {
    /// All of it comes from one place.
    static let address = "198.51.100.9"

    let name: String
    /// Asks once more; the status of the answer.
    let ask: @Sendable (GatewayClient, _ caller: Int, _ number: Int) -> Int

    final class Running: Sendable {
        private let isOver = Atomic(false)
        private let running: Atomic<Int>
        private let counts = Mutex<[Int: Int]>([:])

        fileprivate init(_ flood: GreedyFlood, callers: Int, port: UInt16) {
            running = Atomic(callers)
            for caller in 0..<callers {
                Thread.start(name: "greedy") { [self] in
                    let client = GatewayClient(port: port, address: GreedyFlood.address)
                    var number = 0
                    while !isOver.load(ordering: .relaxed) {
                        let status = flood.ask(client, caller, number)
                        counts.withLock { $0[status, default: 0] += 1 }
                        number += 1
                    }
                    client.hangUp()
                    running.subtract(1, ordering: .acquiringAndReleasing)
                }
            }
        }

        /// How many answers of each status came.
        func stop() -> [Int: Int] {
            isOver.store(true, ordering: .relaxed)
            while running.load(ordering: .acquiring) > 0 { usleep(1000) }
            return counts.withLock { $0 }
        }
    }

    func start(callers: Int, port: UInt16) -> Running { Running(self, callers: callers, port: port) }
}
