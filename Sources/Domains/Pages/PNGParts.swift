/// The parts of a PNG, if a PDF can hold them unchanged.
package struct PNGParts {
    package var header: PictureHeader
    package var palette: [UInt8]?
    package var data: [UInt8] = []

    /// nil for a PNG with transparency, an interlaced one, and one that is cut short.
    package init?(_ bytes: Bytes) throws(DocumentRefusal) {
        header = try PictureHeader.png(bytes)
        let (color, interlace) = (bytes.number(25, 1) ?? 0, bytes.number(28, 1) ?? 1)
        guard interlace == 0, [0, 2, 3].contains(color), [1, 2, 4, 8, 16].contains(header.bits) else { return nil }
        var at = 8
        while let length = bytes.number(at, 4), let part = bytes.slice(at + 8..<at + 8 + length) {
            if bytes.starts(with: "IDAT", at: at + 4) {
                data.append(contentsOf: part)
            } else if bytes.starts(with: "PLTE", at: at + 4) {
                if color == 3 { palette = Array(part) }
            } else if bytes.starts(with: "tRNS", at: at + 4) {
                return nil
            } else if bytes.starts(with: "IEND", at: at + 4) {
                guard !data.isEmpty, color != 3 || (3...768).contains(palette?.count ?? 0) else { return nil }
                return
            }
            at += 12 + length
        }
        return nil
    }
}
