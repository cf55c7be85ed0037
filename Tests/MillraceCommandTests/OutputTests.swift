import Testing

@testable import MillraceCommand

@Suite struct DisplayWidthTests {
    @Test(arguments: [
        ("abc", 3), ("é", 1), ("e\u{301}", 1), ("日本", 4), ("😀", 2), ("👩‍👩‍👧", 2), ("🇩🇪", 2), ("❤️", 2), ("ｱ", 1), ("", 0),
    ])
    func `columns are counted as a terminal does`(text: String, columns: Int) {
        #expect(DisplayWidth.of(text) == columns)
    }

    @Test func `a cut text is never too wide`() {
        #expect(DisplayWidth.cut("日本語", to: 4) == "日…")
        #expect(DisplayWidth.cut("日本語", to: 6) == "日本語")
        #expect(DisplayWidth.cut("abc", to: 2) == "a…")
        #expect(DisplayWidth.cut("abc", to: 0) == "")
    }

    @Test func `what moves a cursor or turns text around is made visible`() {
        #expect(DisplayWidth.harmless("a\u{1b}[2Jb\nc\t\u{9b}\u{202e}") == "a␛[2Jb⏎c \u{fffd}\u{fffd}")
        #expect(DisplayWidth.harmless("👩‍👩‍👧 日本") == "👩‍👩‍👧 日本")
    }
}

@Suite struct HumaneTests {
    @Test func `numbers are grouped`() {
        #expect(
            [0, 12, 123, 1234, 1_234_567, -1000].map(Humane.count) == [
                "0", "12", "123", "1,234", "1,234,567", "-1,000",
            ])
        #expect(Humane.count(.min) == "-9,223,372,036,854,775,808")
    }

    @Test(arguments: [
        (Duration.zero, "0 s"), (.microseconds(50), "50 µs"), (.microseconds(1500), "1.5 ms"),
        (.milliseconds(412), "412 ms"),
        (.milliseconds(1240), "1.24 s"), (.seconds(42), "42 s"), (.seconds(192), "3m 12s"), (.seconds(3600), "1h"),
        (.seconds(90_061), "1d 1h"), (.seconds(-192), "-3m 12s"),
    ])
    func `durations have two units at most`(duration: Duration, text: String) {
        #expect(Humane.duration(duration) == text)
    }

    @Test func `times are told from now`() {
        #expect(Humane.relative(.seconds(-192)) == "3m 12s ago")
        #expect(Humane.relative(.seconds(300)) == "in 5m")
        #expect(Humane.relative(.milliseconds(-7500)) == "7s ago")
        #expect(Humane.relative(.milliseconds(300)) == "now")
    }

    @Test func `sizes and shares`() {
        #expect(
            [0, 1023, 1536, 10 << 20, 3 << 40].map(Humane.bytes) == ["0 B", "1023 B", "1.5 KiB", "10 MiB", "3 TiB"])
        #expect(Humane.bytes((1 << 20) - 1) == "1 MiB")
        #expect(Humane.percent(0.125) == "12.5 %")
        #expect(Humane.decimal(-0.5, places: 2) == "-0.5")
    }
}

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

@Suite struct LiveFrameTests {
    @Test func `a terminal gets the new picture in place of the old one`() {
        var frame = LiveFrame()
        #expect(frame.redraw(["a", "b"], columns: 80, rows: 24) == "\u{1b}[Ja\nb\n")
        #expect(frame.redraw(["c"], above: ["log"], columns: 80, rows: 24) == "\u{1b}[2A\r\u{1b}[Jlog\nc\n")
        #expect(frame.redraw([], columns: 80, rows: 24) == "\u{1b}[1A\r\u{1b}[J")
    }

    @Test func `a picture never grows over the terminal's edges`() {
        var frame = LiveFrame()
        let text = frame.redraw((0..<50).map { "\($0) " + String(repeating: "日", count: 50) }, columns: 40, rows: 10)
        let lines = text.split(separator: "\n")
        #expect(lines.count == 9)
        #expect(lines.dropFirst().allSatisfy { DisplayWidth.of(String($0)) < 40 })
        // Half as wide by now: each drawn row has become two.
        #expect(frame.redraw([], columns: 20, rows: 10).hasPrefix("\u{1b}[18A"))
    }

    @Test func `a pipe gets only what is new`() {
        let capture = Capture()
        let live = capture.console.live()
        live.update(["a 1", "b 1"])
        live.update(["a 1", "b 2"], above: ["done"])
        live.update(["a 1", "b 2"])
        #expect(capture.errors == "a 1\nb 1\ndone\nb 2\n")
    }
}

@Suite struct ConsoleTests {
    private let items: [JSONValue] = [["id": 1], ["id": 2]]

    private func table() -> Table {
        var table = Table([.init("id", .trailing)])
        for id in 1...2 { table.add([.init("\(id)")]) }
        return table
    }

    @Test func `a list is a table, one object, or a line for each`() {
        let expected: [(Console.Format, String)] = [
            (.human, "id\n 1\n 2\n"), (.jsonLines, "{\"id\":1}\n{\"id\":2}\n"),
        ]
        for (format, text) in expected {
            let capture = Capture()
            var console = capture.console
            console.format = format
            console.list("jobs", items, table: table())
            #expect(capture.output == text)
        }
        let capture = Capture()
        var console = capture.console
        console.format = .json
        console.list("jobs", items, table: table())
        #expect(try! JSONValue.read(capture.output).compact == #"{"version":1,"jobs":[{"id":1},{"id":2}]}"#)
    }

    @Test func `results and remarks never share a stream, and the quiet hear failures only`() {
        let capture = Capture()
        var console = capture.console
        console.verbosity = .quiet
        console.note("note")
        console.warning("hm")
        console.failure("no")
        console.print("result")
        #expect(capture.output == "result\n")
        #expect(capture.errors == "millrace: no\n")
    }

    @Test func `colours are for terminals that allow them`() {
        for (columns, allows, expected) in [
            (80, true, "\u{1b}[31mx\u{1b}[0m\n"), (80, false, "x\n"), (nil, true, "x\n"),
        ] {
            let capture = Capture(columns: columns)
            var console = capture.console
            console.allowsColors = allows
            console.print("x", .red)
            #expect(capture.output == expected)
        }
    }
}
