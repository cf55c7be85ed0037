/// Who of a queue's lines comes next, so that each gets its share of what is claimed however much stands in the others. Pure.
///
/// A line's clock runs by what it was given, slower the greater its weight; the one whose clock is furthest behind comes first.
/// A line that had nothing to give does not save up: it begins where those being served stand.
package struct FairShares: Sendable {
    /// A line of a queue, and its weight beside the others.
    package struct Line: Sendable, Equatable {
        package var main: Int32
        package var weight: Double

        package init(main: Int32, weight: Double) {
            self.main = main
            self.weight = weight
        }
    }

    private var clocks: [Int32: Double] = [:]
    /// Where the lines being served stand, for each queue.
    private var fronts: [Int32: Double] = [:]

    package init() {}

    func clock(_ queue: Int32, of line: Line) -> Double {
        max(clocks[queue] ?? 0, fronts[line.main] ?? 0)
    }

    /// Of what a line was given, this number of jobs did not start.
    mutating func returned(_ counts: [Int32: Int], lines: [Int32: Line]) {
        for (queue, count) in counts {
            guard let line = lines[queue], let clock = clocks[queue] else { continue }
            clocks[queue] = max(0, clock - Double(count) / line.weight)
        }
    }

    /// One claim gave each of these lines this number of jobs.
    mutating func given(_ counts: [Int32: Int], lines: [Int32: Line]) {
        var starts: [Int32: Double] = [:]
        for (queue, count) in counts {
            guard let line = lines[queue], count > 0 else { continue }
            let start = clock(queue, of: line)
            clocks[queue] = start + Double(count) / line.weight
            starts[line.main] = min(starts[line.main] ?? start, start)
        }
        for (main, start) in starts { fronts[main] = max(fronts[main] ?? 0, start) }
        // A clock that the front has passed says nothing any more.
        if clocks.count > 4096 {
            clocks = clocks.filter { queue, clock in
                guard let line = lines[queue] else { return false }
                return clock > fronts[line.main] ?? 0
            }
        }
    }
}
