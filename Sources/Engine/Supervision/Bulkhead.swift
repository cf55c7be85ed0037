/// At most a fixed number of calls of a provider at once; the others wait in line, first come, first served.
package struct Bulkhead: Sendable {
    package let slots: Int
    package private(set) var taken = 0
    private var line: [Int64] = []
    private var first = 0
    private var gone: Set<Int64> = []
    private var last: Int64 = 0

    package init(slots: Int) {
        self.slots = slots
    }

    package var waiting: Int { line.count - first - gone.count }

    package mutating func enter() -> Bool {
        guard taken < slots, waiting == 0 else { return false }
        taken += 1
        return true
    }

    /// Takes a place even if all are taken, for calls that must not wait.
    package mutating func enterAnyway() { taken += 1 }

    package mutating func queue() -> Int64 {
        last += 1
        line.append(last)
        return last
    }

    /// The caller stops waiting. False: it has the slot already.
    package mutating func giveUp(_ ticket: Int64) -> Bool {
        guard let index = line[first...].firstIndex(of: ticket), !gone.contains(line[index]) else { return false }
        gone.insert(ticket)
        tidy()
        return true
    }

    /// The ticket whose turn it is now; the slot has passed to it.
    package mutating func leave() -> Int64? {
        tidy()
        guard first < line.count, taken <= slots else {
            taken -= 1
            return nil
        }
        defer {
            first += 1
            tidy()
        }
        return line[first]
    }

    private mutating func tidy() {
        while first < line.count, gone.remove(line[first]) != nil { first += 1 }
        if first > 64, first * 2 > line.count {
            line.removeFirst(first)
            first = 0
        }
    }
}
