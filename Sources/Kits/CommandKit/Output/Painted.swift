/// Lines that hold colours already: what `Style.paint` writes counts no columns, and every other control is made harmless.
package enum Painted {
    private enum Segment {
        case style(Substring)
        case text(String)

        var content: String {
            switch self {
            case .style(let style): String(style)
            case .text(let text): text
            }
        }
    }

    package static func width(_ line: String) -> Int {
        segments(of: line).reduce(0) { width, segment in
            guard case .text(let text) = segment else { return width }
            return width + DisplayWidth.of(text)
        }
    }

    /// The line, cut to this many columns; a colour that is still on at the cut is turned off.
    package static func cut(_ line: String, to columns: Int) -> String {
        let segments = segments(of: line)
        var left = columns
        guard width(line) > columns else { return segments.map(\.content).joined() }
        var result = ""
        for segment in segments {
            switch segment {
            case .style(let style): result += style
            case .text(let text) where DisplayWidth.of(text) >= left:
                // Room for the mark is kept even when the text itself would just fit: more follows it.
                let kept = DisplayWidth.cut(text + " ", to: left)
                result += kept
                return result.contains("\u{1b}") ? result + "\u{1b}[0m" : result
            case .text(let text):
                result += text
                left -= DisplayWidth.of(text)
            }
        }
        return result
    }

    private static func segments(of line: String) -> [Segment] {
        var segments: [Segment] = []
        var rest = line[...]
        while let start = rest.firstIndex(of: "\u{1b}") {
            let sequence = rest[start...]
            let parameters = sequence.dropFirst(2).prefix { $0.isASCII && ($0.isNumber || $0 == ";") }
            let isStyle = sequence.dropFirst().first == "[" && sequence[parameters.endIndex...].first == "m"
            if start > rest.startIndex { segments.append(.text(DisplayWidth.harmless(String(rest[..<start])))) }
            let end = isStyle ? sequence.index(after: parameters.endIndex) : sequence.index(after: start)
            segments.append(isStyle ? .style(sequence[..<end]) : .text(DisplayWidth.harmless(String(sequence[..<end]))))
            rest = rest[end...]
        }
        if !rest.isEmpty { segments.append(.text(DisplayWidth.harmless(String(rest)))) }
        return segments
    }
}
