import FoundationEssentials

/// Draws lines over time as SVG. Only numbers and our own words come into it.
struct Chart: Sendable {
    struct Line: Sendable {
        let name: String
        let values: [Double?]
    }

    struct Event: Sendable {
        let at: Date
        let text: String
    }

    var title: String
    var times: [Date]
    var lines: [Line]
    var events: [Event] = []
    /// How a value is spelled, on the axis and in the sentence.
    var spell: @Sendable (Double) -> String = { Figures.count(Int($0.rounded())) }

    private static let width = 600.0
    private static let height = 180.0
    private static let left = 56.0
    private static let bottom = 22.0
    private static let top = 10.0

    var part: ConsolePart {
        .chart(title: title, svg: svg, says: says, keys: zip(lines, Self.tones).map { ($0.name, $1) })
    }

    private static let tones = ["one", "two", "three"]

    private var most: Double { Self.rounded(lines.flatMap { $0.values.compactMap { $0 } }.max() ?? 0) }

    /// The next 1, 2 or 5 with zeros.
    private static func rounded(_ value: Double) -> Double {
        guard value > 0 else { return 1 }
        var step = 1e-6
        while true {
            for factor in [1.0, 2, 5] where step * factor >= value { return step * factor }
            step *= 10
        }
    }

    private func x(_ index: Int) -> Double {
        guard times.count > 1 else { return Self.left }
        return Self.left + (Self.width - Self.left - 6) * Double(index) / Double(times.count - 1)
    }

    private func y(_ value: Double, _ most: Double) -> Double {
        Self.height - Self.bottom - (Self.height - Self.bottom - Self.top) * min(max(value, 0), most) / most
    }

    private var svg: String {
        let most = most
        var out =
            "<svg viewBox=\"0 0 600 180\" role=\"img\" aria-label=\"\(Self.escaped(title)): \(Self.escaped(says))\""
            + " data-left=\"\(Int(Self.left))\" data-points=\"\(Self.escaped(points))\">"
        for share in [0.0, 0.5, 1] {
            let place = Self.one(y(most * share, most))
            out += "<line class=\"grid\" x1=\"\(Int(Self.left))\" x2=\"600\" y1=\"\(place)\" y2=\"\(place)\"/>"
            out +=
                "<text x=\"\(Int(Self.left) - 6)\" y=\"\(Self.one(y(most * share, most) + 4))\" text-anchor=\"end\">\(Self.escaped(spell(most * share)))</text>"
        }
        for (index, line) in lines.enumerated() { out += path(line, Self.tones[index % 3], most) }
        for event in events.prefix(100) {
            guard let first = times.first, let last = times.last, last > first, event.at >= first, event.at <= last
            else { continue }
            let share = event.at.timeIntervalSince(first) / last.timeIntervalSince(first)
            let place = Self.one(Self.left + (Self.width - Self.left - 6) * share)
            out +=
                "<line class=\"event\" x1=\"\(place)\" x2=\"\(place)\" y1=\"\(Int(Self.top))\" y2=\"\(Int(Self.height - Self.bottom))\"><title>\(Self.escaped(event.text))</title></line>"
        }
        if let first = times.first, let last = times.last {
            out +=
                "<text x=\"\(Int(Self.left))\" y=\"175\">\(Self.clock(first))</text><text x=\"596\" y=\"175\" text-anchor=\"end\">\(Self.clock(last))</text>"
        }
        return out + "</svg>"
    }

    /// A gap in the data is a gap in the line.
    private func path(_ line: Line, _ tone: String, _ most: Double) -> String {
        var commands = ""
        var draws = false
        for (index, value) in line.values.enumerated() {
            guard let value else {
                draws = false
                continue
            }
            // A point between gaps is drawn as a dot.
            commands += "\(draws ? "L" : "M")\(Self.one(x(index))) \(Self.one(y(value, most)))\(draws ? "" : "h.1")"
            draws = true
        }
        guard !commands.isEmpty else { return "" }
        return "<path class=\"line \(tone)\" d=\"\(commands)\"><title>\(Self.escaped(line.name))</title></path>"
    }

    /// What hovering says, a text for each place.
    private var points: String {
        times.indices.map { index in
            let values = lines.map { line in
                let value = line.values[index]
                return "\(line.name) \(value.map(spell) ?? "unknown")"
            }
            return "\(Self.clock(times[index])): \(values.joined(separator: ", "))"
        }.joined(separator: "|")
    }

    /// The same in words, for those who do not see the picture.
    private var says: String {
        let parts = lines.map { line -> String in
            let values = line.values.compactMap { $0 }
            guard let last = values.last, let most = values.max() else { return "\(line.name): nothing recorded" }
            return "\(line.name): now \(spell(last)), at most \(spell(most))"
        }
        return parts.joined(separator: "; ") + "."
    }

    private static func one(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }

    private static func clock(_ date: Date) -> String {
        let text = Figures.utc(date)
        return String(text.dropFirst(5).prefix(11))
    }

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
