/// What is on a page, and so what is to be done with it.
package enum PageAssessment: String, Codable, Sendable, CaseIterable {
    /// It says its text itself.
    case text
    /// It says some text itself, and has a picture that may hold more.
    case mixed
    /// It has to be read.
    case image
    /// Nothing is on it.
    case blank

    /// Whether it is blank can only be told when it has been drawn.
    package init(_ page: Inspection.Page, own: PageText?, drawn: Raster? = nil) {
        if let own, own.wordCount > 0 {
            self = page.pictures > 0 && (page.dpi ?? 0) >= 90 ? .mixed : .text
        } else {
            self = drawn.map { Self.isBlank($0.pixels, width: $0.width, height: $0.height) } == true ? .blank : .image
        }
    }

    /// Every other pixel of every other row: no letter is so thin that none of it is seen.
    static func isBlank(_ pixels: ArraySlice<UInt8>, width: Int, height: Int) -> Bool {
        var counts = [Int](repeating: 0, count: 256)
        pixels.withUnsafeBufferPointer { pixels in
            for row in stride(from: 0, to: height, by: 2) {
                for column in stride(from: 0, to: width, by: 2) { counts[Int(pixels[row * width + column])] += 1 }
            }
        }
        let total = counts.reduce(0, +)
        let paper = counts.indices.max { counts[$0] < counts[$1] } ?? 255
        // Light on dark is writing too.
        let ink = counts[..<max(0, paper - 40)].reduce(0, +) + counts[min(256, paper + 90)...].reduce(0, +)
        return ink <= total / 100_000
    }
}
