/// The few ways a text may stand out; meaning is never in the colour alone.
package enum Style: String, Sendable {
    case plain = ""
    case bold = "1"
    case dim = "2"
    case red = "31"
    case green = "32"
    case yellow = "33"
    case blue = "34"
    case cyan = "36"

    package func paint(_ text: String, on colors: Bool) -> String {
        guard colors, self != .plain, !text.isEmpty else { return text }
        return "\u{1b}[\(rawValue)m\(text)\u{1b}[0m"
    }
}
