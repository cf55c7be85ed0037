/// Wraps text to lines of a given width.
package enum Wrapping {
    /// Breaks at spaces; a word longer than a line stays whole, as a cut command could not be copied.
    package static func lines(_ text: String, columns: Int) -> [String] {
        var lines: [String] = []
        for paragraph in text.split(separator: "\n", omittingEmptySubsequences: false) {
            var line = ""
            var width = 0
            for word in paragraph.split(separator: " ") {
                let wordWidth = DisplayWidth.of(String(word))
                if width > 0, width + 1 + wordWidth > columns {
                    lines.append(line)
                    (line, width) = ("", 0)
                }
                line += width > 0 ? " \(word)" : String(word)
                width += width > 0 ? 1 + wordWidth : wordWidth
            }
            lines.append(line)
        }
        return lines
    }

    /// Names on the left and their meanings on the right; a long name gets its own line.
    package static func definitions(_ items: [(name: String, text: String)], columns: Int) -> [String] {
        let longest = items.map { DisplayWidth.of($0.name) }.filter { $0 <= 26 }.max() ?? 0
        let indent = 2 + longest + 2
        var lines: [String] = []
        for (name, text) in items {
            var texts = Self.lines(text, columns: max(20, columns - indent))
            if DisplayWidth.of(name) > longest {
                lines.append("  \(name)")
            } else {
                let space = String(repeating: " ", count: indent - 2 - DisplayWidth.of(name))
                lines.append("  \(name)\(texts[0].isEmpty ? "" : space + texts[0])")
                texts.removeFirst()
            }
            lines += texts.map { String(repeating: " ", count: indent) + $0 }
        }
        return lines
    }
}
