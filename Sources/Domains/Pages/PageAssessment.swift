/// What is on a page, and so what to do with it.
package enum PageAssessment: String, Codable, Sendable, CaseIterable {
    /// It contains all its text.
    case text
    /// It contains some text, and a picture that may hold more.
    case mixed
    /// It needs OCR.
    case image
    /// It is empty.
    case blank

    /// Only a drawn page can be found blank.
    package init(_ page: Inspection.Page, own: PageText?, drawn: Raster? = nil) {
        if let own, own.wordCount > 0 {
            self = page.pictures > 0 && (page.dpi ?? 0) >= 90 && page.undrawn == nil ? .mixed : .text
        } else {
            self = drawn.map { Self.isBlank($0.pixels, width: $0.width, height: $0.height) } == true ? .blank : .image
        }
    }

    /// Looks at every other pixel of every other row: no letter is so thin that it is missed completely.
    static func isBlank(_ pixels: ArraySlice<UInt8>, width: Int, height: Int) -> Bool {
        var counts = [Int](repeating: 0, count: 256)
        pixels.withUnsafeBufferPointer { pixels in
            for row in stride(from: 0, to: height, by: 2) {
                for column in stride(from: 0, to: width, by: 2) { counts[Int(pixels[row * width + column])] += 1 }
            }
        }
        let total = counts.reduce(0, +)
        let paper = counts.indices.max { counts[$0] < counts[$1] } ?? 255
        // Light text on dark paper counts, too.
        let ink = counts[..<max(0, paper - 40)].reduce(0, +) + counts[min(256, paper + 90)...].reduce(0, +)
        return ink <= total / 100_000
    }
}
