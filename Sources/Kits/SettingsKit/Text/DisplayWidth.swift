import CTerminal
import Glibc

/// How many columns of a terminal a text takes, and how to keep it within them.
package enum DisplayWidth {
    // The process's own locale may be C, in which glibc knows no width beyond ASCII. Never freed: it lives as long as we.
    private static let locale = Locale(handle: newlocale(LC_CTYPE_MASK, "C.UTF-8", nil))

    /// A locale object is immutable once made, so sharing the pointer between threads is safe.
    private struct Locale: @unchecked Sendable {
        let handle: locale_t?
    }

    package static func of(_ text: String) -> Int {
        let isPlain = text.utf8.allSatisfy { $0 >= 0x20 && $0 < 0x7f }
        return isPlain ? text.utf8.count : text.reduce(0) { $0 + of($1) }
    }

    /// A character made of several scalars is as wide as its widest; a joined emoji or a flag is two columns.
    package static func of(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        let isFlag = scalars.allSatisfy { (0x1f1e6...0x1f1ff).contains($0.value) } && scalars.count == 2
        if isFlag || scalars.contains("\u{fe0f}") || (scalars.count > 1 && scalars.contains("\u{200d}")) { return 2 }
        let before = uselocale(locale.handle)
        defer { uselocale(before) }
        return scalars.reduce(0) { max($0, Int(millrace_wcwidth(wchar_t($1.value)))) }
    }

    /// The text, cut to this many columns, with `…` where something is missing.
    package static func cut(_ text: String, to columns: Int) -> String {
        guard of(text) > columns else { return text }
        guard columns > 0 else { return "" }
        var kept = ""
        var width = 0
        for character in text {
            width += of(character)
            if width > columns - 1 { break }
            kept.append(character)
        }
        return kept + "…"
    }

    /// The text, safe for a terminal: a job's arguments must not move cursors, change colours or change the direction of the text.
    package static func harmless(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) { return text }
        var safe = ""
        for scalar in text.unicodeScalars {
            switch scalar.value {
            case 0x0a: safe += "⏎"
            case 0x09: safe += " "
            case 0..<0x20: safe.unicodeScalars.append(Unicode.Scalar(0x2400 + scalar.value) ?? "?")
            case 0x7f..<0xa0, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: safe += "\u{fffd}"
            default: safe.unicodeScalars.append(scalar)
            }
        }
        return safe
    }
}
