/// Whom to tell of new jobs. If all that sleep were told of each, all would ask the database for it, through the same few connections.
///
/// A few are told at once, in turn. While they are awake they find what else comes by themselves; one that falls asleep again is told of
/// what came meanwhile. The others are told a moment later, for the few may not know the kind; and in a stream of jobs more and more rarely,
/// unless one of them has found something to do. Pure.
struct WakerTurns {
    /// Two, because the first may not know the kind or may have just gone.
    static let few = 2
    /// In a stream, the others are told at the latest after this multiple of the first pause.
    static let longest = 8

    private struct Line {
        /// Who was told and has not fallen asleep since, with the number of notes at that time.
        var awake: [Int: Int] = [:]
        var notes = 0
        /// The notes that the others were told of.
        var settled = 0
        /// Who were told as others, the last time.
        var others: Set<Int> = []
        var due: ContinuousClock.Instant
        var pause: Duration
    }

    private var last = 0
    private var lines: [String: Line] = [:]
    private let pause: Duration

    init(pause: Duration) {
        self.pause = pause
    }

    /// Those to tell now.
    mutating func said(_ text: String, asleep: [Int], at now: ContinuousClock.Instant) -> [Int] {
        var line = lines[text] ?? Line(due: now + pause, pause: pause)
        line.notes += 1
        let left = asleep.filter { line.awake[$0] == nil }.sorted()
        let from = left.firstIndex { $0 > last } ?? 0
        let chosen = (0..<min(max(0, Self.few - line.awake.count), left.count)).map { left[(from + $0) % left.count] }
        if let one = chosen.last { last = one }
        for id in chosen { line.awake[id] = line.notes }
        line.others.subtract(chosen)
        lines[text] = line
        return chosen
    }

    /// It has nothing to do: of which lines it is told again, because something came that it may not have seen.
    mutating func fellAsleep(_ id: Int) -> [String] {
        var again: [String] = []
        for (text, line) in lines {
            guard let told = line.awake[id] else { continue }
            let isNeeded = told < line.notes && line.awake.count <= Self.few
            lines[text]?.awake[id] = isNeeded ? line.notes : nil
            if isNeeded { again.append(text) }
        }
        return again
    }

    /// It can take nothing more, or has gone.
    mutating func isOut(_ id: Int) {
        for text in lines.keys { lines[text]?.awake[id] = nil }
    }

    /// Whom to tell as others, now that their time has come: all that were not told of the newest. One that is awake may be in the midst of a
    /// look that began before it came.
    mutating func settle(
        among all: some Collection<Int>, at now: ContinuousClock.Instant
    ) -> [(line: String, to: [Int])] {
        var found: [(line: String, to: [Int])] = []
        for (text, line) in lines where line.due <= now {
            guard line.notes > line.settled else {
                // Nothing has come since: the next is the first again.
                lines[text] = nil
                continue
            }
            var line = line
            let to = all.filter { (line.awake[$0] ?? 0) < line.notes }
            let areBusy = line.others.contains { line.awake[$0] != nil }
            line.pause = areBusy ? pause : min(line.pause * 2, pause * Self.longest)
            line.others = Set(to.filter { line.awake[$0] == nil })
            (line.settled, line.due) = (line.notes, now + line.pause)
            for id in to { line.awake[id] = line.notes }
            lines[text] = line
            found.append((text, to))
        }
        return found
    }

    /// When the next others are told.
    var due: ContinuousClock.Instant? { lines.values.map(\.due).min() }
}
