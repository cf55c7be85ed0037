/// Gathers text into paragraphs, with white space as HTML has it.
struct RunCollector {
    private var runs: [TextRun] = []
    private let keepsSpace: Bool
    /// A blank that comes before the next letter, unless a line begins there.
    private var blank: TextStyle?
    private var beginsLine = true

    init(keepsSpace: Bool = false) {
        self.keepsSpace = keepsSpace
    }

    mutating func add(_ text: String, _ style: TextStyle) {
        // Control characters are no letters.
        let shown = text.unicodeScalars.filter {
            $0.value >= 32 && $0.value != 127 || $0 == "\n" || $0 == "\t" || $0 == "\r" || $0.value == 12
        }
        guard !keepsSpace else {
            return put(String(String.UnicodeScalarView(shown.filter { $0 != "\r" && $0.value != 12 })), style)
        }
        var words = String.UnicodeScalarView()
        for scalar in shown {
            if scalar == " " || scalar == "\n" || scalar == "\t" || scalar == "\r" || scalar.value == 12 {
                if !words.isEmpty {
                    put(String(words), style)
                    words = String.UnicodeScalarView()
                }
                if !beginsLine, blank == nil { blank = style }
                continue
            }
            if words.isEmpty, let before = blank {
                put(" ", before)
                blank = nil
            }
            words.append(scalar)
            beginsLine = false
        }
        if !words.isEmpty { put(String(words), style) }
    }

    mutating func count(_ counter: TextRun.Counter, _ style: TextStyle) {
        if let before = blank { put(" ", before) }
        blank = nil
        beginsLine = false
        runs.append(TextRun(text: "", style: style, counter: counter))
    }

    mutating func lineBreak(_ style: TextStyle) {
        blank = nil
        beginsLine = true
        put("\n", style)
    }

    private mutating func put(_ text: String, _ style: TextStyle) {
        if let last = runs.last, last.style == style, last.counter == nil {
            runs[runs.count - 1].text += text
        } else {
            runs.append(TextRun(text: text, style: style))
        }
    }

    /// The paragraph is over.
    mutating func end(_ made: inout [PageBlock], _ style: PageStyle) {
        defer { self = RunCollector(keepsSpace: keepsSpace) }
        // A last line end would be an empty line.
        if var last = runs.last, last.counter == nil, last.text.hasSuffix("\n") {
            last.text.removeLast()
            runs[runs.count - 1] = last
        }
        guard runs.contains(where: { !$0.text.isEmpty || $0.counter != nil }) else { return }
        made.append(
            .text(
                PageParagraph(
                    runs: runs, alignment: style.alignment, direction: style.direction, lineHeight: style.lineHeight)))
    }
}
