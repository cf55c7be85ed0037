/// The smallest TrueType font: two glyphs that draw nothing, after the one for missing glyphs. With it a PDF viewer does not look for a
/// substitute.
///
/// pdfium measures a text by what its glyphs cover, and takes one that covers nothing for no text. On a page that is turned by a quarter
/// this is all of it. So the glyphs have an outline: two points, which span a letter and enclose no area.
package enum BlankFont {
    /// Half as wide as high.
    package static let letter: UInt8 = 1
    /// For marks, which stand on a letter and take no place.
    package static let mark: UInt8 = 2

    package static let bytes: [UInt8] = make()

    private static func make() -> [UInt8] {
        func words(_ values: Int...) -> [UInt8] {
            values.flatMap { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] }
        }
        func long(_ value: UInt32) -> [UInt8] {
            stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> $0) }
        }
        let metrics = words(500, 0, 500, 0, 0, 0)
        // Two contours of one point each, at the lower left and the upper right.
        var outline = words(2, 0, 0, 500, 1000, 0, 1, 0)
        outline += [1, 1]  // both lie on the contour
        outline += words(0, 500, 0, 1000)
        outline += [0, 0]  // to a multiple of four
        let tables: [(String, [UInt8])] = [
            ("cmap", words(0, 1, 1, 0, 0, 12, 6, 10, 0, 0, 0)),
            ("glyf", outline + outline),
            (
                "head",
                long(0x0001_0000) + long(0x0001_0000) + long(0) + long(0x5f0f_3cf5) + words(0, 1000) + long(0) + long(0)
                    + long(0) + long(0) + words(0, 0, 500, 1000, 0, 8, 2, 0, 0)
            ),
            ("hhea", long(0x0001_0000) + words(1000, 0, 0, 500, 0, 0, 500, 1, 0, 0, 0, 0, 0, 0, 0, 3)),
            ("hmtx", metrics),
            ("loca", words(0, 0, outline.count / 2, outline.count)),
            ("maxp", long(0x0001_0000) + words(3, 2, 2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0)),
            ("post", long(0x0003_0000) + long(0) + words(0, 0) + long(1) + long(0) + long(0) + long(0) + long(0)),
        ]
        func sum(_ bytes: [UInt8]) -> UInt32 {
            stride(from: 0, to: bytes.count, by: 4).reduce(0) { total, at in
                total &+ (0..<4).reduce(0) { $0 << 8 | (at + $1 < bytes.count ? UInt32(bytes[at + $1]) : 0) }
            }
        }
        var directory = long(0x0001_0000) + words(tables.count, 128, 3, tables.count * 16 - 128)
        var body: [UInt8] = []
        for (name, table) in tables {
            let offset = 12 + 16 * tables.count + body.count
            directory += Array(name.utf8) + long(sum(table)) + long(UInt32(offset)) + long(UInt32(table.count))
            body += table + [UInt8](repeating: 0, count: (4 - table.count % 4) % 4)
        }
        return directory + body
    }
}
