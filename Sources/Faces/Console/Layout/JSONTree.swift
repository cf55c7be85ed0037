/// Indented JSON as a tree of folds. Its text, read from the page, is the JSON as it was, so that it can be selected and copied.
enum JSONTree {
    /// Larger texts stand as they are: folds by the thousand keep a browser busy.
    private static let largest = 262_144
    /// What has at most as many lines is open from the start.
    private static let mostOpen = 80
    /// Deeper ones do not fold.
    private static let deepest = 30

    /// nil: it is no such text, or has nothing to fold.
    static func html(_ text: String) -> String? {
        guard text.hasPrefix("{\n") || text.hasPrefix("[\n"), text.utf8.count <= largest else { return nil }
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        guard let counts = members(lines) else { return nil }
        let isOpen = lines.count <= mostOpen
        var out = ""
        var depth = 0
        for (index, line) in lines.enumerated() {
            let written = Chart.escaped(String(line)) + (index == lines.count - 1 ? "" : "\n")
            if opens(line) {
                out +=
                    folds(depth)
                    ? "<details\(isOpen ? " open" : "")><summary data-count=\"\(counts[index])\">\(written)</summary>"
                    : written
                depth += 1
            } else if closes(line) {
                depth -= 1
                out += written + (folds(depth) ? "</details>" : "")
            } else {
                out += written
            }
        }
        return out
    }

    /// The whole value does not fold.
    private static func folds(_ depth: Int) -> Bool { (1...deepest).contains(depth) }

    private static func opens(_ line: Substring) -> Bool { line.last == "{" || line.last == "[" }

    private static func closes(_ line: Substring) -> Bool {
        let first = line.first { $0 != " " }
        return first == "}" || first == "]"
    }

    /// How many members each line opens; nil where the folds do not match, or there are none inside of the whole value.
    private static func members(_ lines: [Substring]) -> [Int]? {
        var counts = [Int](repeating: 0, count: lines.count)
        var open: [Int] = []
        var isNested = false
        for (index, line) in lines.enumerated() {
            if closes(line) {
                guard open.popLast() != nil, !open.isEmpty || index == lines.count - 1 else { return nil }
                continue
            }
            if let parent = open.last { counts[parent] += 1 }
            if opens(line) {
                isNested = isNested || !open.isEmpty
                open.append(index)
            }
        }
        return open.isEmpty && isNested ? counts : nil
    }
}
