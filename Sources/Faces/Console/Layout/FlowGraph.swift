import Templates

/// A flow in layers from left to right: each job stands behind all that it waits for. The same flow is always drawn the same way.
struct FlowGraph: Sendable {
    struct Node: Sendable, Equatable {
        let job: Int
        let kind: String
        let state: String
    }

    struct Edge: Sendable, Hashable {
        let from: Int
        let to: Int
        /// The second was made by a run of the first.
        var isMade = false
    }

    let nodes: [Node]
    let edges: [Edge]

    init(nodes: [Node], edges: [Edge]) {
        self.nodes = nodes
        self.edges = edges
    }

    /// As `flow_graph` gives it; nil: it is too large for a drawing.
    init?(_ found: TemplateValue) {
        guard found.isTrue("is_whole") else { return nil }
        nodes = found.list("jobs").compactMap { row in
            row.int("job").map { Node(job: $0, kind: row.text("kind") ?? "", state: row.text("state") ?? "gone") }
        }
        edges = found.list("edges").compactMap { pair in
            let parts = pair.elements
            guard parts.count == 3, let from = parts[0].plainText.flatMap({ Int($0) }),
                let to = parts[1].plainText.flatMap({ Int($0) })
            else { return nil }
            return Edge(from: from, to: to, isMade: parts[2].plainText == "true")
        }
    }

    /// A place in a layer: a job, or where a long line passes between two jobs.
    private struct Spot {
        var node: Int?
        var layer: Int
        /// Its order in the layer, from above.
        var place = 0.0
        var y = 0.0
    }

    /// Where the parts of the drawing stand, in units of a fourteenth of the text's size.
    struct Drawing: Sendable {
        var width = 0.0
        var height = 0.0
        /// By layer, each from above.
        var boxes: [(node: Node, x: Double, y: Double)] = []
        /// The points that each line goes through.
        var lines: [(edge: Edge, points: [(x: Double, y: Double)])] = []
    }

    static let boxWidth = 184.0
    static let boxHeight = 48.0
    private static let gap = 14.0
    private static let channel = 56.0
    private static let margin = 6.0

    /// Without those that lead back, as where a run waits for jobs that it made.
    func forward() -> [Edge] {
        let known = Set(nodes.map(\.job))
        let sorted = edges.sorted { ($0.from, $0.to) < ($1.from, $1.to) }
        let after = Dictionary(grouping: sorted.filter { known.contains($0.to) }, by: \.from)
        var isOpen: [Int: Bool] = [:]
        var kept: [Edge] = []
        func visit(_ job: Int) {
            isOpen[job] = true
            for edge in after[job] ?? [] where isOpen[edge.to] != true {
                kept.append(edge)
                if isOpen[edge.to] == nil { visit(edge.to) }
            }
            isOpen[job] = false
        }
        for job in known.sorted() where isOpen[job] == nil { visit(job) }
        return kept.sorted { ($0.from, $0.to) < ($1.from, $1.to) }
    }

    /// The layer of each job: one more than the last of those before it.
    private func layers(_ edges: [Edge]) -> [Int: Int] {
        var layers = Dictionary(uniqueKeysWithValues: nodes.map { ($0.job, 0) })
        for _ in nodes {
            var moved = false
            for edge in edges {
                guard let from = layers[edge.from], let to = layers[edge.to], to <= from else { continue }
                layers[edge.to] = from + 1
                moved = true
            }
            if !moved { break }
        }
        return layers
    }

    func drawing() -> Drawing {
        let edges = forward()
        let layers = self.layers(edges)
        var spots: [Spot] = []
        var spotOfJob: [Int: Int] = [:]
        for node in nodes.sorted(by: { $0.job < $1.job }) {
            spotOfJob[node.job] = spots.count
            spots.append(Spot(node: node.job, layer: layers[node.job] ?? 0))
        }
        // A line that passes other layers has a spot in each.
        var routes: [(edge: Edge, spots: [Int])] = []
        for edge in edges {
            guard let first = spotOfJob[edge.from], let last = spotOfJob[edge.to] else { continue }
            var route = [first]
            let (from, to) = (spots[first].layer, spots[last].layer)
            if to - from > 1 {
                for layer in (from + 1)..<to {
                    route.append(spots.count)
                    spots.append(Spot(layer: layer))
                }
            }
            routes.append((edge, route + [last]))
        }
        var columns = [[Int]](repeating: [], count: (spots.map(\.layer).max() ?? 0) + 1)
        for index in spots.indices { columns[spots[index].layer].append(index) }
        Self.order(&columns, &spots, routes.map(\.spots))
        return place(columns, &spots, routes)
    }

    /// Each spot goes to the middle of its neighbours, from the left and back, a few times.
    private static func order(_ columns: inout [[Int]], _ spots: inout [Spot], _ routes: [[Int]]) {
        var before = [[Int]](repeating: [], count: spots.count)
        var after = before
        for route in routes {
            for (one, next) in zip(route, route.dropFirst()) {
                before[next].append(one)
                after[one].append(next)
            }
        }
        func number() {
            for column in columns {
                for (place, spot) in column.enumerated() { spots[spot].place = Double(place) }
            }
        }
        number()
        for round in 0..<6 {
            let isForward = round.isMultiple(of: 2)
            let neighbours = isForward ? before : after
            for layer in isForward ? Array(columns.indices) : columns.indices.reversed() {
                let wishes = columns[layer].map { spot -> (Double, Int) in
                    let places = neighbours[spot].map { spots[$0].place }
                    return (places.isEmpty ? spots[spot].place : places.reduce(0, +) / Double(places.count), spot)
                }
                columns[layer] = wishes.sorted { $0 < $1 }.map(\.1)
                for (place, spot) in columns[layer].enumerated() { spots[spot].place = Double(place) }
            }
        }
    }

    private func place(_ columns: [[Int]], _ spots: inout [Spot], _ routes: [(edge: Edge, spots: [Int])]) -> Drawing {
        let byJob = Dictionary(uniqueKeysWithValues: nodes.map { ($0.job, $0) })
        func height(_ spot: Spot) -> Double { spot.node == nil ? 0 : Self.boxHeight }
        let heights = columns.map { column in
            column.reduce(0) { $0 + height(spots[$1]) } + Double(max(0, column.count - 1)) * Self.gap
        }
        let highest = heights.max() ?? 0
        var drawing = Drawing()
        drawing.height = highest + 2 * Self.margin
        drawing.width =
            Double(columns.count) * Self.boxWidth + Double(columns.count - 1) * Self.channel + 2 * Self.margin
        func left(_ layer: Int) -> Double { Self.margin + Double(layer) * (Self.boxWidth + Self.channel) }
        for (layer, column) in columns.enumerated() {
            var y = Self.margin + (highest - heights[layer]) / 2
            for spot in column {
                let tall = height(spots[spot])
                spots[spot].y = y + tall / 2
                if let node = spots[spot].node.flatMap({ byJob[$0] }) {
                    drawing.boxes.append((node, left(layer), y))
                }
                y += tall + Self.gap
            }
        }
        for (edge, route) in routes {
            var points: [(x: Double, y: Double)] = []
            for (index, spot) in route.enumerated() {
                let (x, y) = (left(spots[spot].layer), spots[spot].y)
                if index > 0 { points.append((x, y)) }
                if index < route.count - 1 { points.append((x + Self.boxWidth, y)) }
            }
            drawing.lines.append((edge, points))
        }
        return drawing
    }
}

/// The drawing as SVG, whose jobs are links; and the same as a table.
extension FlowGraph {
    private static let mostNamed = 10

    var table: ConsolePart {
        let before = Dictionary(grouping: edges, by: \.to)
        let rows = nodes.sorted { $0.job < $1.job }.map { node -> [ConsoleCell] in
            let jobs = (before[node.job] ?? []).map(\.from).sorted()
            let rest = jobs.count > Self.mostNamed ? " and \(jobs.count - Self.mostNamed) more" : ""
            let named = jobs.prefix(Self.mostNamed).map { "\($0)" }.joined(separator: ", ")
            return [
                ConsoleCell("\(node.job)", href: PageAddress.job(node.job)), .text(node.kind), .state(node.state),
                .text(named + rest),
            ]
        }
        return .table(
            ConsoleTable(
                columns: [.text("Job"), .text("Kind"), .text("State"), .text("Comes after")], rows: rows, empty: ""))
    }

    /// - Parameter here: the job whose page it is.
    func html(here: Int) -> String {
        let drawing = self.drawing()
        let states = Dictionary(grouping: nodes, by: \.state).mapValues(\.count).sorted { $0.key < $1.key }
            .map { "\($0.value) \($0.key)" }.joined(separator: ", ")
        let says = "\(nodes.count) \(nodes.count == 1 ? "job" : "jobs") of the flow: \(states)"
        var out = "<div class=\"graph\" tabindex=\"0\" role=\"region\" aria-label=\"Drawing of the flow\">"
        out += "<svg role=\"group\" aria-label=\"\(Chart.escaped(says))\" width=\"\(Self.one(drawing.width / 14))em\""
        out += " height=\"\(Self.one(drawing.height / 14))em\""
        out += " viewBox=\"0 0 \(Self.one(drawing.width)) \(Self.one(drawing.height))\">"
        for line in drawing.lines { out += Self.path(line.points, isMade: line.edge.isMade) }
        for box in drawing.boxes { out += Self.box(box.node, box.x, box.y, isHere: box.node.job == here) }
        let made = edges.contains(where: \.isMade) ? ", a broken one to a job that a run made" : ""
        let words = "\(says). A line leads to a job that waits\(made)."
        return out + "</svg></div><p class=\"says\">\(Chart.escaped(words))</p>"
    }

    private static func path(_ points: [(x: Double, y: Double)], isMade: Bool) -> String {
        guard let first = points.first, let last = points.last else { return "" }
        var way = "M\(one(first.x)) \(one(first.y))"
        for (from, to) in zip(points, points.dropFirst()) {
            let middle = one((from.x + to.x) / 2)
            way += "C\(middle) \(one(from.y)) \(middle) \(one(to.y)) \(one(to.x)) \(one(to.y))"
        }
        let (x, y) = (one(last.x - 6), last.y)
        return "<path class=\"wire\(isMade ? " made" : "")\" d=\"\(way)\"/>"
            + "<path class=\"wire\" d=\"M\(x) \(one(y - 4))L\(one(last.x)) \(one(y))L\(x) \(one(y + 4))\"/>"
    }

    private static func box(_ node: Node, _ x: Double, _ y: Double, isHere: Bool) -> String {
        let tone = StateTone.of(node.state) ?? "quiet"
        let words = "Job \(node.job)\(node.kind.isEmpty ? "" : ", \(node.kind)"), \(node.state)"
        func text(_ text: String, _ left: Double, _ down: Double, _ more: String = "") -> String {
            "<text x=\"\(one(x + left))\" y=\"\(one(y + down))\"\(more)>\(Chart.escaped(text))</text>"
        }
        let current = isHere ? " class=\"here\" aria-current=\"true\"" : ""
        return "<a href=\"\(PageAddress.job(node.job))\" aria-label=\"\(Chart.escaped(words))\"\(current)>"
            + "<rect x=\"\(one(x))\" y=\"\(one(y))\" width=\"\(one(boxWidth))\" height=\"\(one(boxHeight))\" rx=\"6\"/>"
            + text(cut(node.kind.isEmpty ? "–" : node.kind), 12, 20)
            + "<circle class=\"\(tone)\" cx=\"\(one(x + 16))\" cy=\"\(one(y + 34))\" r=\"4\"/>"
            + text(node.state, 26, 38, " class=\"small \(tone)\"")
            + text("\(node.job)", boxWidth - 12, 38, " class=\"small number\"") + "</a>"
    }

    /// What a box has room for; wide letters count twice.
    static func cut(_ text: String, to most: Int = 22) -> String {
        var (out, width) = ("", 0)
        for character in text {
            width += character.unicodeScalars.contains { $0.value > 0x2E80 } ? 2 : 1
            if width > most { return String(out.dropLast()) + "…" }
            out.append(character)
        }
        return out
    }

    private static func one(_ value: Double) -> String {
        let text = "\((value * 10).rounded() / 10)"
        return text.hasSuffix(".0") ? String(text.dropLast(2)) : text
    }
}
