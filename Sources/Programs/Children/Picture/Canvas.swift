import Pages

/// Rows of a picture that is decoded here, over white: in grey, or in red, green and blue.
struct Canvas {
    let width: Int
    let height: Int
    let components: Int
    private(set) var bytes: [UInt8]

    init(_ width: Int, _ height: Int, keepsColor: Bool) {
        (self.width, self.height, components) = (width, height, keepsColor ? 3 : 1)
        bytes = [UInt8](repeating: 255, count: width * height * components)
    }

    /// As it is stored here: red, green and blue, or their lightness by leptonica's weights.
    struct Color {
        var red: UInt8
        var green: UInt8
        var blue: UInt8
        var grey: UInt8

        init(_ red: Int, _ green: Int, _ blue: Int, opacity: Int = 255) {
            func over(_ value: Int) -> Int { opacity == 255 ? value : (value * opacity + 255 * (255 - opacity)) / 255 }
            let (red, green, blue) = (over(red), over(green), over(blue))
            self.red = UInt8(truncatingIfNeeded: red)
            self.green = UInt8(truncatingIfNeeded: green)
            self.blue = UInt8(truncatingIfNeeded: blue)
            grey = UInt8(truncatingIfNeeded: (3 * red + 5 * green + 2 * blue + 5) / 10)
        }
    }

    mutating func set(_ x: Int, _ y: Int, _ color: Color) {
        let at = y * width + x
        if components == 1 {
            bytes[at] = color.grey
        } else {
            bytes[at * 3] = color.red
            bytes[at * 3 + 1] = color.green
            bytes[at * 3 + 2] = color.blue
        }
    }

    /// A part of a row. What does not fit is left out.
    mutating func replace(_ part: UnsafeBufferPointer<UInt8>, left: Int, row: Int) {
        guard left >= 0, left < width, row >= 0, row < height else { return }
        let start = (row * width + left) * components
        let count = min(part.count, (width - left) * components)
        bytes.replaceSubrange(start..<start + count, with: part.prefix(count))
    }

    static func malformed(_ name: String) -> DocumentRefusal {
        DocumentRefusal(.malformed, "the \(name) cannot be decoded")
    }
}
