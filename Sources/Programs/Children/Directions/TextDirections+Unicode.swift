import CFriBidi
package import Pages

extension TextDirections {
    /// By FriBidi.
    package static let unicode = TextDirections { text, isRightToLeft in
        var levels = [Int8](repeating: 0, count: text.count)
        guard millrace_bidi_levels(text.map(\.value), Int32(text.count), isRightToLeft, &levels) else {
            return [Int](repeating: isRightToLeft ? 1 : 0, count: text.count)
        }
        return levels.map { Int($0) }
    }
}
