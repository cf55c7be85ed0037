/// The first frame of a GIF, which is the page. Nothing of it is unpacked here.
package struct GIFHeader: Sendable, Equatable {
    /// The whole picture; the frame may be a part of it.
    package var width: Int
    package var height: Int
    package var frame: PictureHeader.Frame
    /// Red, green and blue of each colour.
    package var palette: [UInt8]
    /// The colour that stands for nothing.
    package var transparent: Int?
    package var isInterlaced: Bool
    /// Where the packed picture begins, with the size of its codes.
    package var data: Int

    package init(_ bytes: Bytes) throws(DocumentRefusal) {
        func cut() -> DocumentRefusal { DocumentRefusal(.malformed, "the GIF ends before its first frame") }
        func number(_ at: Int, _ size: Int) throws(DocumentRefusal) -> Int {
            guard let value = bytes.number(at, size, bigEndian: false) else { throw cut() }
            return value
        }
        func colors(_ at: Int, _ flags: Int) throws(DocumentRefusal) -> [UInt8] {
            guard flags & 0x80 != 0 else { return [] }
            guard let slice = bytes.slice(at..<at + 3 << (flags & 7 + 1)) else { throw cut() }
            return Array(slice)
        }
        let (screenWidth, screenHeight, flags) = (try number(6, 2), try number(8, 2), try number(10, 1))
        let general = try colors(13, flags)
        var at = 13 + general.count
        transparent = nil
        while true {
            switch try number(at, 1) {
            case 0x21:
                if try number(at + 1, 1) == 0xf9, try number(at + 3, 1) & 1 != 0 { transparent = try number(at + 6, 1) }
                at += 2
                while true {
                    let length = try number(at, 1)
                    at += 1 + length
                    if length == 0 { break }
                }
            case 0x2c:
                frame = PictureHeader.Frame(
                    left: try number(at + 1, 2), top: try number(at + 3, 2), width: try number(at + 5, 2),
                    height: try number(at + 7, 2))
                let local = try number(at + 9, 1)
                let own = try colors(at + 10, local)
                palette = own.isEmpty ? general : own
                isInterlaced = local & 0x40 != 0
                data = at + 10 + own.count
                guard frame.width > 0, frame.height > 0 else {
                    throw DocumentRefusal(.malformed, "the GIF's first frame has no size")
                }
                guard !palette.isEmpty else { throw DocumentRefusal(.malformed, "the GIF has no colours") }
                // Viewers make room for a frame that reaches out of the picture.
                width = max(screenWidth, frame.left + frame.width)
                height = max(screenHeight, frame.top + frame.height)
                return
            case 0: at += 1  // some writers leave a byte between two blocks
            default: throw DocumentRefusal(.malformed, "the GIF has no frame")
            }
        }
    }
}

extension PictureHeader {
    package static func gif(_ bytes: Bytes) throws(DocumentRefusal) -> PictureHeader {
        let gif = try GIFHeader(bytes)
        var header = PictureHeader(width: gif.width, height: gif.height)
        header.components = 3
        return header
    }
}
