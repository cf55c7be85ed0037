/// A number that a room brings, or one for each of some labels.
package struct RoomGauge: Sendable {
    package var name: String
    /// gauge or counter.
    package var kind = "gauge"
    package var help: String
    /// A histogram's values carry the end of their names.
    package var values: [(labels: String, value: Double, suffix: String)]

    package init(name: String, kind: String = "gauge", help: String, value: Double) {
        self.init(name: name, kind: kind, help: help, values: [("", value)])
    }

    package init(name: String, kind: String = "gauge", help: String, values: [(labels: String, value: Double)]) {
        self.name = name
        self.kind = kind
        self.help = help
        self.values = values.map { ($0.labels, $0.value, "") }
    }

    package var text: String {
        let lines = values.map { labels, value, suffix in
            let number = Int(exactly: value).map(String.init) ?? "\(value)"
            return "millrace_\(name)\(suffix)\(labels) \(number)\n"
        }
        return "# HELP millrace_\(name) \(help)\n# TYPE millrace_\(name) \(kind)\n" + lines.joined()
    }
}

extension RoomGauge {
    /// `{queue="mail",kind="k"}`; nothing where there are none.
    package static func labels(_ pairs: [(String, String)]) -> String {
        guard !pairs.isEmpty else { return "" }
        return "{" + pairs.map { "\($0.0)=\"\(escaped($0.1))\"" }.joined(separator: ",") + "}"
    }

    /// Escapes a label's value.
    private static func escaped(_ text: String) -> String {
        // Names of queues and kinds hold nothing that needs it, and there are thousands of labels.
        guard text.utf8.contains(where: { $0 == 0x5C || $0 == 0x22 || $0 == 0x0A }) else { return text }
        return text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n")
    }
}
