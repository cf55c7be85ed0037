/// Whom to tell first of new jobs. If all that sleep were told of each, all would ask the database for it, through the same few connections:
/// a few are told at once, in turn, and the others a moment later, for all that came meanwhile.
struct WakerTurns {
    /// Two, because the first may not know the kind or may have just gone.
    static let few = 2

    private var last = 0
    /// Who was told of each line already.
    private var told: [String: Set<Int>] = [:]

    /// Those to tell now. The others are owed it.
    mutating func first(of line: String, asleep: [Int]) -> [Int] {
        let already = told[line] ?? []
        let left = asleep.filter { !already.contains($0) }.sorted()
        let from = left.firstIndex { $0 > last } ?? 0
        let chosen = (0..<min(Self.few, left.count)).map { left[(from + $0) % left.count] }
        if let one = chosen.last { last = one }
        told[line] = already.union(chosen)
        return chosen
    }

    /// What each is still owed, in no order: it says only where to look.
    mutating func rest(of all: some Collection<Int>) -> [(line: String, to: [Int])] {
        defer { told = [:] }
        return told.map { line, told in (line, all.filter { !told.contains($0) }) }
    }
}
