/// The nearest known name for a mistyped one, or none when nothing is near enough to be meant.
package enum Suggestions {
    package static func closest(to typed: String, among names: [String]) -> String? {
        let typed = typed.lowercased()
        guard !typed.isEmpty, typed.count <= 64 else { return nil }
        if typed.count >= 3 {
            let longer = names.filter { $0.lowercased().hasPrefix(typed) }
            if longer.count == 1 { return longer[0] }
        }
        let allowed = max(1, typed.count / 3)
        var best: (name: String, distance: Int)?
        for name in names {
            let distance = distance(Array(typed), Array(name.lowercased()))
            // A name of which every letter would have to change is no suggestion.
            guard distance <= allowed, distance < max(typed.count, name.count) else { continue }
            if distance < best?.distance ?? .max { best = (name, distance) }
        }
        return best?.name
    }

    /// Insertions, deletions, replacements, and swaps of neighbours: what fingers do.
    package static func distance(_ left: [Character], _ right: [Character]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, from) in left.enumerated() {
            var current = [row + 1]
            for (column, to) in right.enumerated() {
                var cost = min(current[column], last[column + 1]) + 1
                cost = min(cost, last[column] + (from == to ? 0 : 1))
                if row > 0, column > 0, from == right[column - 1], left[row - 1] == to {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            (beforeLast, last) = (last, current)
        }
        return last[right.count]
    }
}
