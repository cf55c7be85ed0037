import Synchronization

/// The lines that a live region has drawn, and the text that turns them into the next picture.
package struct LiveFrame: Sendable {
    private var drawn: [String] = []

    package init() {}

    /// Lines may be painted; text from elsewhere goes through `DisplayWidth.harmless` or a table's cell first.
    package mutating func redraw(_ lines: [String], above: [String] = [], columns: Int, rows: Int) -> String {
        let lines = lines.prefix(max(1, rows - 1)).map { Painted.cut($0, to: max(1, columns - 1)) }
        // The window may be narrower by now, so that one row has become several.
        let height = drawn.reduce(0) { $0 + max(1, (Painted.width($1) + columns - 1) / max(1, columns)) }
        var text = height > 0 ? "\u{1b}[\(height)A\r" : ""
        text += "\u{1b}[J"
        for line in above + lines { text += line + "\n" }
        drawn = lines
        return text
    }

    /// For a pipe or a file: only the lines that were not there before.
    package mutating func append(_ lines: [String], above: [String] = []) -> String {
        let new = lines.filter { !drawn.contains($0) }
        drawn = lines
        return (above + new).map { $0 + "\n" }.joined()
    }
}

/// Progress that redraws in place on a terminal, and is printed line by line elsewhere; any thread may call it.
package final class LiveRegion: Sendable {
    private let sink: Sink
    private let redraws: Bool
    private let frame = Mutex(LiveFrame())

    package init(sink: Sink, redraws: Bool) {
        self.sink = sink
        self.redraws = redraws
    }

    /// Shows these lines in place of the last ones, and leaves `above` standing over them.
    package func update(_ lines: [String], above: [String] = []) {
        let (columns, rows) = (sink.columns ?? 80, sink.rows ?? 24)
        // Written under the lock, against the house rule: two pictures that cross would leave a torn one.
        frame.withLock { frame in
            let text =
                redraws
                ? frame.redraw(lines, above: above, columns: columns, rows: rows) : frame.append(lines, above: above)
            if !text.isEmpty { sink.write(text) }
        }
    }

    /// Leaves the last picture standing, and starts a new one below.
    package func finish() { frame.withLock { $0 = LiveFrame() } }
}
