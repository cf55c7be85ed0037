extension PictureHeader {
    /// Of a picture that moves, the first frame is the page.
    package static func webp(_ bytes: Bytes) throws(DocumentRefusal) -> PictureHeader {
        var header = PictureHeader(width: 0, height: 0)
        var (at, alpha) = (12, Int?.none)
        // What the file says of its length does not matter: parts may be missing at its end.
        for _ in 0..<10_000 {
            guard let length = bytes.number(at + 4, 4, bigEndian: false) else { break }
            let inside = at + 8..<max(at + 8, min(bytes.count, at + 8 + length))
            if bytes.starts(with: "VP8X", at: at), header.width == 0 {
                header.width = (bytes.number(at + 12, 3, bigEndian: false) ?? -1) + 1
                header.height = (bytes.number(at + 15, 3, bigEndian: false) ?? -1) + 1
            } else if bytes.starts(with: "ALPH", at: at), header.content.isEmpty {
                alpha = at
            } else if bytes.starts(with: "VP8 ", at: at) || bytes.starts(with: "VP8L", at: at), header.content.isEmpty {
                header.content = (alpha ?? at)..<inside.upperBound
                if header.width == 0, let size = size(bytes, at) { (header.width, header.height) = size }
            } else if bytes.starts(with: "ANMF", at: at), header.content.isEmpty, inside.count > 24 {
                func number(_ offset: Int) -> Int { bytes.number(at + 8 + offset, 3, bigEndian: false) ?? 0 }
                header.frame = Frame(
                    left: number(0) * 2, top: number(3) * 2, width: number(6) + 1, height: number(9) + 1)
                header.content = inside.lowerBound + 16..<inside.upperBound
            } else if bytes.starts(with: "EXIF", at: at), var exif = bytes.slice(inside) {
                if Bytes(exif).starts(with: "Exif\0\0") { exif = UnsafeRawBufferPointer(rebasing: exif.dropFirst(6)) }
                if let frame = (try? tiff(Bytes(exif), most: 1, isWhole: false))?.first {
                    (header.orientation, header.dpi) = (frame.orientation, frame.dpi)
                }
            }
            at += 8 + length + length % 2
        }
        guard header.width > 0, header.height > 0, !header.content.isEmpty else {
            throw DocumentRefusal(.malformed, "the WebP has no picture")
        }
        if let frame = header.frame {
            guard frame.left + frame.width <= header.width, frame.top + frame.height <= header.height else {
                throw DocumentRefusal(.malformed, "the WebP's first frame is not in its picture")
            }
            if frame.width == header.width, frame.height == header.height { header.frame = nil }
        }
        header.components = 3
        return header
    }

    /// As the data of a picture says it.
    private static func size(_ bytes: Bytes, _ at: Int) -> (Int, Int)? {
        if bytes.starts(with: "VP8L", at: at) {
            guard bytes.number(at + 8, 1) == 0x2f, let bits = bytes.number(at + 9, 4, bigEndian: false) else {
                return nil
            }
            return (bits & 0x3fff + 1, bits >> 14 & 0x3fff + 1)
        }
        guard bytes.number(at + 11, 3) == 0x9d012a, let width = bytes.number(at + 14, 2, bigEndian: false),
            let height = bytes.number(at + 16, 2, bigEndian: false)
        else { return nil }
        return (width & 0x3fff, height & 0x3fff)
    }
}
