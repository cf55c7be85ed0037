/// What a picture's first bytes tell, before anything is decoded.
package struct PictureHeader: Codable, Sendable, Equatable {
    package var width: Int
    package var height: Int
    package var dpi: Double?
    /// In the numbers of EXIF: 1 is upright, 3 upside down, 6 must be turned clockwise, 8 counterclockwise. 2, 4, 5 and 7 are mirrored,
    /// too. Decoders deliver a picture as it is stored; only `rotation` and `isMirrored` say how it is shown.
    package var orientation = 1
    package var components = 1
    package var bits = 8
    /// Where the directory of a TIFF's frame begins.
    package var directory = 0
    /// A PNG in which one colour is transparent.
    package var hasColorKey = false
    /// Where the first frame of a WebP, or the codestream of a JPEG 2000, stands in the file.
    package var content = 0..<0
    /// Where that frame stands in the picture; nil: it fills it.
    package var frame: Frame?

    package struct Frame: Codable, Sendable, Equatable {
        package var left: Int
        package var top: Int
        package var width: Int
        package var height: Int
    }

    package init(width: Int, height: Int) {
        self.width = width
        self.height = height
    }

    /// How far it must be turned clockwise.
    package var rotation: Int {
        switch orientation {
        case 3, 4: 180
        case 5, 6: 90
        case 7, 8: 270
        default: 0
        }
    }

    /// Left and right are exchanged after it has been turned.
    package var isMirrored: Bool { [2, 4, 5, 7].contains(orientation) }

    package static func png(_ bytes: Bytes) throws(DocumentRefusal) -> PictureHeader {
        guard bytes.starts(with: "IHDR", at: 12), let width = bytes.number(16, 4), let height = bytes.number(20, 4),
            let bits = bytes.number(24, 1), let color = bytes.number(25, 1)
        else { throw DocumentRefusal(.malformed, "the PNG has no header") }
        var header = PictureHeader(width: width, height: height)
        header.bits = bits
        header.components = [0: 1, 2: 3, 3: 1, 4: 2, 6: 4][color] ?? 1
        var at = 33
        // Only a limited part before the picture is examined.
        for _ in 0..<64 {
            guard let length = bytes.number(at, 4), !bytes.starts(with: "IDAT", at: at + 4) else { break }
            if bytes.starts(with: "pHYs", at: at + 4), let x = bytes.number(at + 8, 4), bytes.number(at + 16, 1) == 1 {
                header.dpi = believable(Double(x) * 0.0254)
            } else if bytes.starts(with: "tRNS", at: at + 4) {
                header.hasColorKey = color == 0 || color == 2
            }
            at += 12 + length
        }
        return header
    }

    package static func jpeg(_ bytes: Bytes) throws(DocumentRefusal) -> PictureHeader {
        var (at, dpi, orientation) = (2, Double?.none, 1)
        for _ in 0..<4096 {
            // As decoders do, past bytes that are no marker: some writers leave a few between two segments.
            while let two = bytes.number(at, 2), two >> 8 != 0xff || two == 0xff00 || two == 0xffff { at += 1 }
            guard let marker = bytes.number(at, 2) else { break }
            if marker == 0xffd8 || marker == 0xff01 || (0xffd0...0xffd7).contains(marker) {
                at += 2
                continue
            }
            guard marker != 0xffd9, marker != 0xffda, let length = bytes.number(at + 2, 2), length >= 2 else { break }
            switch marker {
            case 0xffc0...0xffcf where ![0xffc4, 0xffc8, 0xffcc].contains(marker):
                guard let height = bytes.number(at + 5, 2), let width = bytes.number(at + 7, 2),
                    let components = bytes.number(at + 9, 1), let bits = bytes.number(at + 4, 1)
                else { throw DocumentRefusal(.malformed, "the JPEG ends in its header") }
                var header = PictureHeader(width: width, height: height)
                (header.dpi, header.orientation, header.components, header.bits) = (dpi, orientation, components, bits)
                return header
            case 0xffe0 where bytes.starts(with: "JFIF\0", at: at + 4):
                if let unit = bytes.number(at + 11, 1), let x = bytes.number(at + 12, 2), unit == 1 || unit == 2 {
                    dpi = believable(Double(x) * (unit == 2 ? 2.54 : 1))
                }
            case 0xffe1 where bytes.starts(with: "Exif\0\0", at: at + 4):
                if let exif = bytes.slice(at + 10..<max(at + 10, min(bytes.count, at + 2 + length))),
                    let frames = try? tiff(Bytes(exif), most: 1, isWhole: false), let frame = frames.first
                {
                    orientation = frame.orientation
                    dpi = frame.dpi ?? dpi
                }
            default: break
            }
            at += 2 + length
        }
        throw DocumentRefusal(.malformed, "the JPEG has no size")
    }

    static func believable(_ dpi: Double) -> Double? {
        dpi >= 30 && dpi <= 2400 ? dpi : nil
    }
}
