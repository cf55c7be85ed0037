extension PictureHeader {
    /// The largest picture among the boxes of an HEIC or AVIF file; the file's own picture is one of them.
    package static func heif(_ bytes: Bytes) throws(DocumentRefusal) -> PictureHeader {
        var found: (width: Int, height: Int, area: Int)?
        var (boxes, turned) = (0, 0)
        func walk(_ range: Range<Int>, depth: Int) throws(DocumentRefusal) {
            var at = range.lowerBound
            while at + 8 <= range.upperBound {
                boxes += 1
                guard boxes <= 10_000, depth < 8 else {
                    throw DocumentRefusal(.malformed, "the picture's file has too many boxes")
                }
                guard let box = HEIFBox(bytes, at, in: range) else {
                    throw DocumentRefusal(.malformed, "a box of the picture's file is longer than what it is in")
                }
                let inside = box.inside
                if bytes.starts(with: "meta", at: at + 4) {
                    try walk(min(inside.lowerBound + 4, inside.upperBound)..<inside.upperBound, depth: depth + 1)
                } else if bytes.starts(with: "iprp", at: at + 4) || bytes.starts(with: "ipco", at: at + 4) {
                    try walk(inside, depth: depth + 1)
                } else if bytes.starts(with: "ispe", at: at + 4), inside.count >= 12,
                    let width = bytes.number(inside.lowerBound + 4, 4),
                    let height = bytes.number(inside.lowerBound + 8, 4)
                {
                    // The sides are of 32 bits, so that their product may be too large for a number.
                    let (area, overflow) = width.multipliedReportingOverflow(by: height)
                    let size = overflow ? Int.max : area
                    if size > (found?.area ?? 0) { found = (width, height, size) }
                } else if bytes.starts(with: "irot", at: at + 4), !inside.isEmpty {
                    turned = (bytes.number(inside.lowerBound, 1) ?? 0) & 3
                }
                at = inside.upperBound
            }
        }
        try walk(0..<bytes.count, depth: 0)
        guard let found else { throw DocumentRefusal(.malformed, "the file has no picture, or one without a size") }
        // The decoder turns the picture upright, so the size must be that of the turned one.
        var header = PictureHeader(
            width: turned % 2 == 1 ? found.height : found.width, height: turned % 2 == 1 ? found.width : found.height)
        header.components = 3
        return header
    }
}

/// A box of the formats that grew out of QuickTime: its length, four letters, its content.
struct HEIFBox {
    let inside: Range<Int>

    /// nil if it reaches out of what it is in.
    init?(_ bytes: Bytes, _ at: Int, in range: Range<Int>) {
        guard at <= range.upperBound - 8, var size = bytes.number(at, 4) else { return nil }
        var head = 8
        if size == 1 {
            guard at <= range.upperBound - 16, let long = bytes.number(at + 8, 8) else { return nil }
            (size, head) = (long, 16)
        }
        if size == 0 { size = range.upperBound - at }
        guard size >= head, size <= range.upperBound - at else { return nil }
        inside = at + head..<at + size
    }
}
