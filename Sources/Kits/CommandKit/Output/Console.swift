/// The way out of every command: results go to `output`, all else to `errors`.
package struct Console: Sendable {
    package enum Format: Sendable {
        case human
        case json
        case jsonLines
    }

    package enum Verbosity: Int, Sendable, Comparable {
        case quiet
        case normal
        case verbose

        package static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
    }

    package let output: Sink
    package let errors: Sink
    package var format = Format.human
    /// Collects errors under `--json`, to be written as one line at the end.
    package let report = ErrorReport()
    package var verbosity = Verbosity.normal
    /// False after NO_COLOR, `--no-color` or TERM=dumb; a pipe gets no colours in any case.
    package var allowsColors = true
    /// False for TERM=dumb, which cannot move its cursor.
    package var movesCursor = true

    package init(output: Sink, errors: Sink) {
        self.output = output
        self.errors = errors
    }

    package static func standard() -> Console { Console(output: .descriptor(1), errors: .descriptor(2)) }

    package var colorsOutput: Bool { allowsColors && output.isTerminal }
    package var colorsErrors: Bool { allowsColors && errors.isTerminal }

    // MARK: results

    /// A line of the result, for people.
    package func print(_ text: String = "", _ style: Style = .plain) {
        output.write(style.paint(text, on: colorsOutput) + "\n")
    }

    package func print(_ table: Table) {
        let lines = table.lines(width: output.columns, colors: colorsOutput)
        output.write(lines.joined(separator: "\n") + "\n")
    }

    /// One result: as an object with its version for machines, or through `human` for people.
    package func show(_ json: @autoclosure () -> JSONValue, human: () -> Void) {
        switch format {
        case .human: human()
        case .json: output.write(Self.versioned(json()).indented + "\n")
        case .jsonLines: output.write(Self.versioned(json()).compact + "\n")
        }
    }

    /// A list: a table for people, `{"version":1,"<name>":[…]}` with `--json`, a line for each with `--jsonl`.
    package func list(_ name: String, _ items: [JSONValue], table: @autoclosure () -> Table) {
        switch format {
        case .human: print(table())
        case .json: output.write(Self.versioned([name: .array(items)]).indented + "\n")
        case .jsonLines: output.write(items.map { $0.compact + "\n" }.joined())
        }
    }

    private static func versioned(_ value: JSONValue) -> JSONValue {
        guard case .object(let members) = value else { return ["version": 1, "value": value] }
        return .object([JSONValue.Member(key: "version", value: 1)] + members)
    }

    // MARK: all else

    /// Prints what is being done; silent with `--quiet`.
    package func note(_ text: String, _ style: Style = .plain) { tell(text, style, from: .normal) }

    /// More of it, with `--verbose`.
    package func detail(_ text: String) { tell(text, .dim, from: .verbose) }

    package func warning(_ text: String) { tell("warning: \(text)", .yellow, from: .normal) }

    /// Prints a failure, even with `--quiet`.
    package func failure(_ text: String) {
        if format == .human { tell("millrace: \(text)", .red, from: .quiet) } else { report.add(problem: text) }
    }

    /// Prints what to do about a failure.
    package func plainError(_ text: String) {
        if format == .human { tell(text, .plain, from: .quiet) } else { report.add(hint: text) }
    }

    /// At the very end: writes the errors that were collected for machines.
    package func writeReport(code: ExitCode) {
        guard format != .human, let json = report.json(code: code) else { return }
        errors.write(json.compact + "\n")
    }

    private func tell(_ text: String, _ style: Style, from level: Verbosity) {
        guard verbosity >= level else { return }
        errors.write(style.paint(text, on: colorsErrors) + "\n")
    }

    /// A region that redraws in place on a terminal, and otherwise prints only new lines.
    package func live(on sink: Sink? = nil) -> LiveRegion {
        let sink = sink ?? errors
        return LiveRegion(sink: sink, redraws: sink.isTerminal && movesCursor)
    }
}
