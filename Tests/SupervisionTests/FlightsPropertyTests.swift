import Supervision
import TestSupport
import Testing

@Suite struct FlightsPropertyTests {
    @Test func `everyone who waits is told once, and nobody joins what is dying`() async {
        for seed in 0..<sequences {
            if seed.isMultiple(of: 16) { await Task.yield() }  // other tests want the thread, too
            var random = SeededRandom(seed)
            var flights = Flights<Int>()
            var waits: [Int64: Int64] = [:]  // caller: flight
            var up: [Int64: Int] = [:]  // flight: key
            var dying: Set<Int64> = []
            var last: Int64 = 0
            func fail(_ what: String) { Issue.record("sequence \(seed): \(what)") }
            for _ in 0..<40 {
                switch random.below(6) {
                case 0...2:
                    let key = random.below(3)
                    last += 1
                    let joined = flights.join(key, last)
                    guard !dying.contains(joined.flight) else { return fail("joined a dying flight") }
                    switch joined {
                    case .started(let flight):
                        guard !up.values.contains(key) else { return fail("a second flight for \(key)") }
                        up[flight] = key
                    case .joined(let flight):
                        guard up[flight] == key else { return fail("joined another key's flight") }
                    }
                    waits[last] = joined.flight
                case 3, 4:
                    guard let (caller, flight) = waits.randomElement(using: &random) else { continue }
                    waits[caller] = nil
                    let wasLast = flights.leave(flight, caller)
                    guard wasLast == !waits.values.contains(flight) else { return fail("called off wrongly") }
                    if wasLast == true {
                        up[flight] = nil
                        dying.insert(flight)
                    }
                    guard flights.leave(flight, caller) == nil else { return fail("left twice") }
                default:
                    guard let flight = (Array(up.keys) + dying).sorted().randomElement(using: &random) else { continue }
                    let told = flights.land(flight)
                    let expected = Set(waits.filter { $0.value == flight }.keys)
                    guard told == expected else { return fail("told \(told), and not \(expected)") }
                    for caller in told { waits[caller] = nil }
                    up[flight] = nil
                    guard flights.land(flight).isEmpty else { return fail("landed twice") }
                }
            }
            for flight in up.keys {
                for caller in flights.land(flight) { waits[caller] = nil }
            }
            guard waits.isEmpty, flights.count == 0 else { return fail("left waiting: \(waits)") }
        }
    }
}
