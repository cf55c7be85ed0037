/// A length as HTML and CSS write it.
package struct PageLength: Sendable, Equatable {
    /// Points, or a share of what is around.
    package var value: Double
    package var isShare: Bool

    package init(points: Double) {
        value = points
        isShare = false
    }

    package init(share: Double) {
        value = share
        isShare = true
    }

    package func points(of whole: Double) -> Double { isShare ? value * whole : value }

    private static let units: [(String, Double)] = [
        ("mm", 72 / 25.4), ("cm", 72 / 2.54), ("in", 72), ("pt", 1), ("px", 0.75),
    ]

    /// - Parameter em: the size of the letters, in points
    init?(_ text: String, em: Double) {
        let text = text.stripped.lowercased()
        if text.hasSuffix("%"), let share = Self.number(text.dropLast()) {
            self.init(share: share / 100)
        } else if text.hasSuffix("em"), let count = Self.number(text.dropLast(2)) {
            self.init(points: count * em)
        } else if let (unit, points) = Self.units.first(where: { text.hasSuffix($0.0) }),
            let count = Self.number(text.dropLast(unit.count))
        {
            self.init(points: count * points)
        } else if let pixels = Self.number(text[...]) {
            self.init(points: pixels * 0.75)
        } else {
            return nil
        }
    }

    private static func number(_ text: some StringProtocol) -> Double? {
        guard text.utf8.allSatisfy({ $0 &- 48 < 10 || $0 == UInt8(ascii: ".") }), let number = Double(text.description),
            number <= 10_000
        else { return nil }
        return number
    }
}

package struct PageColor: Sendable, Equatable {
    package var red: Double
    package var green: Double
    package var blue: Double

    package static let black = PageColor(red: 0, green: 0, blue: 0)

    package init(red: Double, green: Double, blue: Double) {
        self.red = red
        self.green = green
        self.blue = blue
    }

    private static let named: [String: UInt32] = [
        "black": 0, "white": 0xffffff, "red": 0xff0000, "green": 0x008000, "blue": 0x0000ff, "gray": 0x808080,
        "grey": 0x808080, "silver": 0xc0c0c0, "maroon": 0x800000, "navy": 0x000080, "teal": 0x008080,
        "purple": 0x800080, "olive": 0x808000, "orange": 0xffa500, "yellow": 0xffff00, "lightgray": 0xd3d3d3,
        "lightgrey": 0xd3d3d3, "darkgray": 0xa9a9a9, "darkgrey": 0xa9a9a9, "whitesmoke": 0xf5f5f5,
    ]

    init?(_ text: String) {
        let text = text.stripped.lowercased()
        var number = Self.named[text]
        if number == nil, text.hasPrefix("#") {
            var digits = String(text.dropFirst())
            if digits.utf8.count == 3 { digits = digits.map { "\($0)\($0)" }.joined() }
            if digits.utf8.count == 6 { number = UInt32(digits, radix: 16) }
        }
        guard let number else { return nil }
        self.init(
            red: Double(number >> 16 & 255) / 255, green: Double(number >> 8 & 255) / 255,
            blue: Double(number & 255) / 255)
    }
}

extension String {
    var stripped: String {
        let spaces: Set<Character> = [" ", "\t", "\n", "\r", "\u{c}"]
        return String(self.drop { spaces.contains($0) }.reversed().drop { spaces.contains($0) }.reversed())
    }
}
