import MillraceQueues

extension [FlowNode] {
    /// A line for each job, drawn as a tree; nothing for a job that stands alone.
    func lines(current: Int64, colors: Bool) -> [String] {
        guard count > 1 else { return [] }
        var lines = [Style.dim.paint("flow", on: colors)]
        for node in self {
            let indent = String(repeating: "  ", count: node.depth + 1)
            let name = "\(node.job) \(node.kind)"
            let state = node.state == "dead" ? Style.red.paint(node.state, on: colors) : node.state
            lines.append("\(indent)\(node.job == current ? Style.bold.paint(name, on: colors) : name)  \(state)")
            if node.hidden > 0 { lines.append("\(indent)  … and \(Humane.count(node.hidden, "more job"))") }
        }
        return lines
    }

    var json: JSONValue {
        .array(
            map {
                [
                    "depth": .int($0.depth), "id": .int(Int($0.job)), "kind": .string($0.kind),
                    "state": .string($0.state),
                    "waiting_for_it": .int($0.below), "hidden": .int($0.hidden),
                ]
            })
    }
}
