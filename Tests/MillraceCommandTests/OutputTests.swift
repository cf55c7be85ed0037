import Testing

@testable import MillraceCommand

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
