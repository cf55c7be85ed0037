import CommandKit
import Testing

@Suite struct TableTests {
    private var table: Table {
        var table = Table([.init("queue"), .init("ready", .trailing), .init("note", shrinks: true)])
        table.add(["mail", "1,234", "日本の長い長い長い説明"])
        table.add([.init("日本", .red), "5", "line\nbreak"])
        return table
    }

    @Test func `columns are aligned by what a terminal shows`() {
        #expect(
            table.lines(width: nil, colors: false) == [
                "queue  ready  note", "mail   1,234  日本の長い長い長い説明", "日本       5  line⏎break",
            ])
    }

    @Test func `a terminal cuts what may shrink, a pipe nothing`() {
        let lines = table.lines(width: 26, colors: false)
        #expect(lines.allSatisfy { DisplayWidth.of($0) <= 26 })
        #expect(lines[1].hasSuffix("…"))
        #expect(lines[1].contains("1,234"))
    }

    @Test func `where there is no room the least important columns go, empty ones first, and the key stays`() {
        var table = Table([
            .init("queue", importance: .key), .init("ready", .trailing, importance: .high),
            .init("retention", importance: .low), .init("note"), .init("empty"), .init("state", importance: .high),
        ])
        table.add(["mail", "1,234", "standard", "something", "-", "paused"])
        func heading(_ width: Int) -> String {
            let lines = table.lines(width: width, colors: false)
            #expect(lines.allSatisfy { DisplayWidth.of($0) <= width }, "\(lines)")
            return lines[0].split(separator: " ").joined(separator: " ")
        }
        #expect(heading(49) == "queue ready retention note empty state")
        #expect(heading(48) == "queue ready note empty state")
        #expect(heading(36) == "queue ready note state")
        #expect(heading(29) == "queue ready state")
        #expect(heading(19) == "queue ready")
        #expect(heading(11) == "queue")
        #expect(heading(5) == "queue")
        // Without a key the first column is one.
        var plain = Table([.init("id"), .init("when")])
        plain.add(["1234567", "yesterday"])
        #expect(plain.lines(width: 10, colors: false) == ["id", "1234567"])
    }

    @Test func `colours change nothing but colours`() {
        let painted = table.lines(width: nil, colors: true)
        #expect(painted[2].contains("\u{1b}[31m日本\u{1b}[0m"))
        #expect(Table([.init("x")], whenEmpty: "no queues").lines(width: nil, colors: true) == ["no queues"])
    }
}

@Suite struct PaintedTests {
    private let red = "\u{1b}[31m"
    private let off = "\u{1b}[0m"

    @Test func `colours take no columns and end behind a cut`() {
        let line = "ab\(red)日本\(off)cd"
        #expect(Painted.width(line) == 8)
        #expect(Painted.cut(line, to: 8) == line)
        #expect(Painted.cut(line, to: 7) == "ab\(red)日本\(off)…\(off)")
        #expect(Painted.cut(line, to: 6) == "ab\(red)日…\(off)")
        #expect(Painted.cut(line, to: 2) == "a…")
    }

    @Test func `every control but a colour is made visible`() {
        #expect(Painted.cut("\u{1b}[2Ja\u{1b}", to: 80) == "␛[2Ja␛")
        for columns in 0..<12 {
            #expect(Painted.width(Painted.cut("x\(red)日本\u{1b}[2K\(off)yz😀", to: columns)) <= columns)
        }
    }
}
