import FoundationEssentials
import Templates

/// Draws lines over time. Only numbers and our own words come into the SVG; its labels are HTML beside it.
struct Chart: Sendable {
    struct Line: Sendable {
        let name: String
        let values: [Double?]
        /// A class of the stylesheet: ok, no, going, waits, other.
        let tone: String
    }

    struct Event: Sendable {
        let at: Date
        let text: String
    }

    var title: String
    var scale = Scale.count
    var times: [Date]
    var lines: [Line]
    /// Flags on the line of time, with their names below.
    var events: [Event] = []

    private static let width = 1000.0
    private static let height = 200.0
    private static let mostFlags = 9

    var part: ConsolePart {
        let steps = scale.steps(to: lines.flatMap { $0.values.compactMap { $0 } }.max() ?? 0)
        let flags = flags
        return .chart(
            ChartPart(
                title: title, svg: svg(steps), pins: pins(flags), says: says,
                keys: lines.count > 1 ? lines.map { ($0.name, $0.tone) } : [], steps: steps.reversed().map(scale.spell),
                times: labels, flags: flags.map { "\(Figures.clock($0.at, withDay: hasDays)) \($0.text)" }))
    }

    /// Five times, from the first to the last.
    private var labels: [String] {
        guard let first = times.first, let last = times.last, last > first else { return [] }
        return (0...4).map { part in
            let time = first.addingTimeInterval(last.timeIntervalSince(first) * Double(part) / 4)
            return Figures.clock(time, withDay: hasDays)
        }
    }

    private var hasDays: Bool {
        guard let first = times.first, let last = times.last else { return false }
        return last.timeIntervalSince(first) > 86_400 * 1.5
    }

    private func x(_ index: Int) -> Double {
        times.count > 1 ? Self.width * Double(index) / Double(times.count - 1) : 0
    }

    private static func y(_ value: Double, _ most: Double, height: Double = height) -> Double {
        height - height * min(max(value, 0), most) / most
    }

    private func svg(_ steps: [Double]) -> String {
        let most = steps.last ?? 1
        var out =
            "<svg viewBox=\"0 0 1000 200\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"\(Self.escaped(title)): \(Self.escaped(says))\""
            + " data-points=\"\(Self.escaped(points))\">"
        for step in steps {
            let place = Self.one(Self.y(step, most))
            out += "<line class=\"grid\" x1=\"0\" x2=\"1000\" y1=\"\(place)\" y2=\"\(place)\"/>"
        }
        for line in lines {
            let path = Self.path(line.values, x, most, height: Self.height)
            guard !path.isEmpty else { continue }
            if lines.count == 1 { out += Self.area(line.values, line.tone, x, most, height: Self.height) }
            out += "<path class=\"line \(line.tone)\" d=\"\(path)\"><title>\(Self.escaped(line.name))</title></path>"
        }
        return out + "</svg>"
    }

    /// A gap in the data is a gap in the line.
    private static func path(_ values: [Double?], _ x: (Int) -> Double, _ most: Double, height: Double) -> String {
        var commands = ""
        var draws = false
        for (index, value) in values.enumerated() {
            guard let value else {
                draws = false
                continue
            }
            // A point between gaps is drawn as a dot.
            commands +=
                "\(draws ? "L" : "M")\(one(x(index))) \(one(y(value, most, height: height)))\(draws ? "" : "h.1")"
            draws = true
        }
        return commands
    }

    /// Below each unbroken piece of the line.
    private static func area(
        _ values: [Double?], _ tone: String, _ x: (Int) -> Double, _ most: Double, height: Double
    ) -> String {
        var commands = ""
        var last: Int?
        for (index, value) in values.enumerated() {
            guard let value else {
                if let last { commands += "L\(one(x(last))) \(one(height))Z" }
                last = nil
                continue
            }
            if last == nil { commands += "M\(one(x(index))) \(one(height))" }
            commands += "L\(one(x(index))) \(one(y(value, most, height: height)))"
            last = index
        }
        if let last { commands += "L\(one(x(last))) \(one(height))Z" }
        return "<path class=\"area \(tone)\" d=\"\(commands)\"/>"
    }

    /// The newest events of the time that is drawn, the oldest first.
    private var flags: [Event] {
        guard let first = times.first, let last = times.last, last > first else { return [] }
        return Array(events.filter { $0.at >= first && $0.at <= last }.sorted { $0.at < $1.at }.suffix(Self.mostFlags))
    }

    /// Above the drawing, without a scale of its own: numbers stay round and readable at every width.
    private func pins(_ flags: [Event]) -> String {
        guard let first = times.first, let last = times.last, !flags.isEmpty else { return "" }
        var out =
            "<svg role=\"img\" aria-label=\"\(flags.count) \(flags.count == 1 ? "event" : "events"), named below\">"
        for (index, event) in flags.enumerated() {
            let place = Self.one(event.at.timeIntervalSince(first) / last.timeIntervalSince(first) * 100)
            out += "<line class=\"event\" x1=\"\(place)%\" x2=\"\(place)%\" y1=\"8\" y2=\"100%\"/>"
            out += "<circle class=\"pin\" cx=\"\(place)%\" cy=\"0\" r=\"8\"/>"
            out += "<text class=\"pin-word\" x=\"\(place)%\" y=\"4\">\(index + 1)</text>"
        }
        return out + "</svg>"
    }

    /// A line of the last values, for beside a figure.
    static func spark(_ values: [Double?], tone: String, says: String) -> String? {
        let known = values.compactMap { $0 }
        guard known.count > 1 else { return nil }
        let most = max(known.max() ?? 0, 1e-9)
        let x = { (index: Int) in 200 * Double(index) / Double(values.count - 1) }
        return "<svg viewBox=\"0 0 200 40\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"\(escaped(says))\">"
            + area(values, tone, x, most * 1.05, height: 40)
            + "<path class=\"line \(tone)\" d=\"\(path(values, x, most * 1.05, height: 40))\"/></svg>"
    }

    /// A span of time in its row: from one share of the whole to another.
    static func bar(from left: Double, to right: Double, tone: String, says: String) -> String {
        let (start, width) = (min(max(left, 0), 1) * 1000, max(2, (right - left) * 1000))
        return "<svg viewBox=\"0 0 1000 16\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"\(escaped(says))\">"
            + "<line class=\"rail\" x1=\"0\" x2=\"1000\" y1=\"8\" y2=\"8\"/>"
            + "<rect class=\"bar \(tone)\" x=\"\(one(start))\" y=\"2\" width=\"\(one(width))\" height=\"12\"/></svg>"
    }

    /// Moments in a row.
    static func marks(_ shares: [Double], says: String) -> String {
        "<svg viewBox=\"0 0 1000 16\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"\(escaped(says))\">"
            + "<line class=\"rail\" x1=\"0\" x2=\"1000\" y1=\"8\" y2=\"8\"/>"
            + shares.map {
                "<rect class=\"bar waits\" x=\"\(one(min($0, 1) * 996))\" y=\"2\" width=\"4\" height=\"12\"/>"
            }
            .joined() + "</svg>"
    }

    /// What hovering says, a text for each place.
    private var points: String {
        times.indices.map { index in
            let values = lines.map { line in
                let value = line.values[index]
                return "\(line.name) \(value.map(scale.spell) ?? "unknown")"
            }
            return "\(Figures.clock(times[index], withDay: hasDays)): \(values.joined(separator: ", "))"
        }.joined(separator: "|")
    }

    /// The same in words, for those who do not see the picture.
    private var says: String {
        let parts = lines.map { line -> String in
            let values = line.values.compactMap { $0 }
            guard let last = values.last, let most = values.max() else { return "\(line.name): nothing recorded" }
            return "\(line.name): now \(scale.spell(last)), at most \(scale.spell(most))"
        }
        return parts.joined(separator: "; ") + "."
    }

    private static func one(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

    static func escaped(_ text: String) -> String {
        var out = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": out += "&amp;"
            case "<": out += "&lt;"
            case ">": out += "&gt;"
            case "\"": out += "&quot;"
            case "'": out += "&#39;"
            default: out.unicodeScalars.append(scalar)
            }
        }
        return out
    }
}

/// A drawing with the words around it.
struct ChartPart: Sendable {
    var title: String
    var svg: String
    var pins = ""
    /// The sentence that says the same.
    var says: String
    var keys: [(name: String, tone: String)] = []
    /// The labels of both axes, from the top and from the left.
    var steps: [String] = []
    var times: [String] = []
    var flags: [String] = []

    var value: TemplateValue {
        .object([
            "title": .string(title), "svg": .string(svg), "pins": .string(pins), "says": .string(says),
            "keys": .list(keys.map { .object(["name": .string($0.name), "tone": .string($0.tone)]) }),
            "steps": .list(steps.map { .object(["step": .string($0)]) }),
            "times": .list(times.map { .object(["time": .string($0)]) }), "flagged": .bool(!flags.isEmpty),
            "flags": .list(flags.map { .object(["flag": .string($0)]) }),
        ])
    }
}
