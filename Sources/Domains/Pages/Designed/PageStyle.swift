/// How text looks.
package struct TextStyle: Sendable, Equatable {
    package var font: String?
    package var size = 10.5
    package var isBold = false
    package var isItalic = false
    package var isUnderlined = false
    package var isStruck = false
    package var color = PageColor.black
    package var background: PageColor?
    /// Above the line, in points; below it where it is negative.
    package var rise = 0.0

    package init() {}
}

package enum PageAlignment: String, Sendable { case start, end, left, right, center, justify }
package enum PageDirection: String, Sendable { case ltr, rtl, auto }
package enum CellPlace: String, Sendable { case top, middle, bottom }

package struct PageLine: Sendable, Equatable {
    package var width: Double
    package var color: PageColor
}

/// What an element says of itself, and what its children have from it.
package struct PageStyle: Sendable, Equatable {
    package var text = TextStyle()
    package var alignment = PageAlignment.start
    package var direction = PageDirection.auto
    package var lineHeight = 1.25
    // Not handed down.
    package var above: Double?
    package var below: Double?
    package var marginLeft: Double?
    package var width: PageLength?
    package var height: PageLength?
    package var padding: Double?
    package var fill: PageColor?
    package var borders: [PageEdge: PageLine?] = [:]
    package var place: CellPlace?
    package var breaksBefore = false
    package var breaksAfter = false
    package var staysWhole = false

    package init() {}

    /// What an element begins with, within this one.
    func handedDown() -> PageStyle {
        var style = PageStyle()
        style.text = text
        style.alignment = alignment
        style.direction = direction
        style.lineHeight = lineHeight
        return style
    }
}

package enum PageEdge: String, Sendable, CaseIterable { case top, bottom, left, right }

extension PageStyle {
    static let properties = [
        "background", "background-color", "border", "border-bottom", "border-left", "border-right", "border-top",
        "color",
        "font-family", "font-size", "font-style", "font-weight", "height", "line-height", "margin-bottom",
        "margin-left",
        "margin-top", "padding", "page-break-after", "page-break-before", "page-break-inside", "text-align",
        "text-decoration", "vertical-align", "width",
    ]

    /// Takes over what a style says.
    mutating func take(_ css: String, of element: MarkupElement) throws(DocumentRefusal) {
        for part in css.split(separator: ";") where !String(part).stripped.isEmpty {
            let halves = part.split(separator: ":", maxSplits: 1).map { String($0).stripped }
            guard halves.count == 2, !halves[1].isEmpty else {
                throw element.refusal("the style of <\(element.name)> is malformed")
            }
            let name = halves[0].lowercased()
            guard Self.properties.contains(name) else {
                throw element.refusal(
                    "the style \(name.prefix(32)) is not known; known are \(Self.properties.joined(separator: ", "))")
            }
            guard try set(name, halves[1], of: element) else {
                throw element.refusal("the style \(name) has a value that is not known: \(halves[1].prefix(40))")
            }
        }
    }

    /// False: the value is not known.
    private mutating func set(_ name: String, _ value: String, of element: MarkupElement) throws(DocumentRefusal)
        -> Bool
    {
        let word = value.lowercased()
        func length() -> PageLength? { PageLength(value, em: text.size) }
        func points() -> Double? { length().flatMap { $0.isShare ? nil : $0.value } }
        switch name {
        case "color":
            guard let color = PageColor(value) else { return false }
            text.color = color
        case "background", "background-color":
            if word == "none" || word == "transparent" {
                fill = nil
                return true
            }
            guard let color = PageColor(value) else { return false }
            fill = color
        case "font-family": text.font = Self.family(value)
        case "font-size":
            guard let size = length().map({ $0.points(of: text.size) }), (1...144).contains(size) else { return false }
            text.size = size
        case "font-style":
            guard ["normal", "italic", "oblique"].contains(word) else { return false }
            text.isItalic = word != "normal"
        case "font-weight":
            guard ["normal", "bold"].contains(word) || Int(word).map({ (1...1000).contains($0) }) == true else {
                return false
            }
            text.isBold = word == "bold" || Int(word).map { $0 >= 600 } == true
        case "text-align":
            guard let known = PageAlignment(rawValue: word) else { return false }
            alignment = known
        case "text-decoration":
            guard ["none", "underline", "line-through"].contains(word) else { return false }
            text.isUnderlined = word == "underline"
            text.isStruck = word == "line-through"
        case "line-height":
            guard let factor = Double(word) ?? length().map({ $0.points(of: text.size) / text.size }),
                (0.5...5).contains(factor)
            else { return false }
            lineHeight = factor
        case "margin-top", "margin-bottom", "margin-left", "padding":
            guard let space = points(), space <= 2000 else { return false }
            switch name {
            case "margin-top": above = space
            case "margin-bottom": below = space
            case "margin-left": marginLeft = space
            default: padding = space
            }
        case "width", "height":
            guard let length = length(), length.value > 0 else { return false }
            if name == "width" { width = length } else { height = length }
        case "vertical-align":
            guard let known = CellPlace(rawValue: word) else { return false }
            place = known
        case "page-break-before", "page-break-after":
            guard ["always", "auto"].contains(word) else { return false }
            if name == "page-break-before" { breaksBefore = word == "always" } else { breaksAfter = word == "always" }
        case "page-break-inside":
            guard ["avoid", "auto"].contains(word) else { return false }
            staysWhole = word == "avoid"
        default: return setBorder(name, word)
        }
        return true
    }

    /// `none`, or a width, a colour and the word `solid` in any order.
    private mutating func setBorder(_ name: String, _ value: String) -> Bool {
        var line: PageLine? = PageLine(width: 0.5, color: .black)
        if value == "none" || value == "0" {
            line = nil
        } else {
            for word in value.split(separator: " ").map(String.init) where word != "solid" {
                if let length = PageLength(word, em: text.size), !length.isShare, length.value <= 50 {
                    line?.width = length.value
                } else if let color = PageColor(word) {
                    line?.color = color
                } else {
                    return false
                }
            }
        }
        let edges = name == "border" ? PageEdge.allCases : PageEdge.allCases.filter { name == "border-\($0.rawValue)" }
        for edge in edges { borders[edge] = .some(line) }
        return true
    }

    /// The first of the families that are named, without quotes.
    private static func family(_ value: String) -> String {
        let first = value.split(separator: ",").first.map { String($0).stripped } ?? ""
        let name = String(first.filter { $0 != "'" && $0 != "\"" }.prefix(100))
        return ["sans-serif": "Sans", "serif": "Serif", "monospace": "Monospace"][name.lowercased()] ?? name
    }
}
