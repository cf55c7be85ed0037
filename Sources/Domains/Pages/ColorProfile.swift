import Glibc

/// The ICC profile of sRGB (IEC 61966-2-1), made here: a matrix and a curve, version 2.4.
package enum ColorProfile {
    package static let sRGB: [UInt8] = make()

    private static func make() -> [UInt8] {
        let curve = curve()
        let tags: [(String, [UInt8])] = [
            ("desc", description("sRGB IEC61966-2.1")),
            ("cprt", kind("text") + Array("No copyright, use freely\0".utf8)),
            ("wtpt", place(0.9642, 1, 0.8249)), ("rXYZ", place(0.43607, 0.22249, 0.01392)),
            ("gXYZ", place(0.38515, 0.71687, 0.09708)), ("bXYZ", place(0.14307, 0.06061, 0.7141)),
            ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
        ]
        var (table, body): ([UInt8], [UInt8]) = (big(tags.count), [])
        let start = 128 + 4 + 12 * tags.count
        var known: [(content: [UInt8], at: Int)] = []
        for (name, content) in tags {
            let at: Int
            if let old = known.first(where: { $0.content == content }) {
                at = old.at
            } else {
                at = start + body.count
                known.append((content, at))
                body += content + [UInt8](repeating: 0, count: (4 - content.count % 4) % 4)
            }
            table += Array(name.utf8) + big(at) + big(content.count)
        }
        var head = big(start + body.count) + big(0) + big(0x0240_0000) + Array("mntrRGB XYZ ".utf8)
        for number in [2026, 1, 1, 0, 0, 0] { head += big(number, 2) }
        head += Array("acsp".utf8) + [UInt8](repeating: 0, count: 28)
        // Perceptual; seen by the light of D50.
        head += place(0.9642, 1, 0.8249).dropFirst(8)
        head += [UInt8](repeating: 0, count: 128 - head.count)
        return head + table + body
    }

    private static func curve() -> [UInt8] {
        let count = 1024
        return kind("curv") + big(count)
            + (0..<count).flatMap { step in
                let value = Double(step) / Double(count - 1)
                let linear = value <= 0.04045 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
                return big(Int((linear * 65_535).rounded()), 2)
            }
    }

    private static func description(_ text: String) -> [UInt8] {
        let letters = Array(text.utf8) + [0]
        // No Unicode and no Macintosh text.
        return kind("desc") + big(letters.count) + letters + [UInt8](repeating: 0, count: 4 + 4 + 2 + 1 + 67)
    }

    private static func place(_ x: Double, _ y: Double, _ z: Double) -> [UInt8] {
        kind("XYZ ") + [x, y, z].flatMap { big(Int(($0 * 65_536).rounded())) }
    }

    private static func kind(_ name: String) -> [UInt8] { Array(name.utf8) + big(0) }

    private static func big(_ value: Int, _ size: Int = 4) -> [UInt8] {
        (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
}
