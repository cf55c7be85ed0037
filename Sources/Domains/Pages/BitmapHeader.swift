/// What a BMP says of itself, in the forms of Windows and of OS/2.
package struct BitmapHeader: Sendable, Equatable {
    package enum Packing: Int, Sendable {
        case none = 0, runs8, runs4, fields
    }

    /// Which bits of a pixel are a colour.
    package struct Field: Sendable, Equatable {
        package var shift = 0
        package var bits = 0

        package init(mask: Int) {
            guard mask > 0, mask <= 0xffff_ffff else { return }
            shift = mask.trailingZeroBitCount
            bits = (~(mask >> shift)).trailingZeroBitCount
        }
    }

    package var width: Int
    package var height: Int
    package var isTopDown = false
    package var bits: Int
    package var packing = Packing.none
    /// Red, green, blue and opacity.
    package var fields: [Field] = []
    /// Blue, green and red of each colour.
    package var palette: [UInt8] = []
    package var dpi: Double?
    /// Where the pixels begin.
    package var data: Int

    package init(_ bytes: Bytes) throws(DocumentRefusal) {
        func number(_ at: Int, _ size: Int) throws(DocumentRefusal) -> Int {
            guard let value = bytes.number(at, size, bigEndian: false) else {
                throw DocumentRefusal(.malformed, "the BMP ends in its header")
            }
            return value
        }
        let head = try number(14, 4)
        let isOld = head == 12
        if isOld {
            (width, height, bits) = (try number(18, 2), try number(20, 2), try number(24, 2))
        } else {
            width = Int(Int32(truncatingIfNeeded: try number(18, 4)))
            height = Int(Int32(truncatingIfNeeded: try number(22, 4)))
            bits = try number(28, 2)
            (isTopDown, height) = (height < 0, abs(height))
        }
        guard width > 0, height > 0 else { throw DocumentRefusal(.malformed, "the BMP has no size") }
        data = try number(10, 4)
        var at = 14 + head
        if head >= 40 {
            let code = try number(30, 4)
            guard let known = code == 6 ? .fields : Packing(rawValue: code) else {
                throw DocumentRefusal(.unsupported, "the BMP is packed in a way that is not supported")
            }
            packing = known
            dpi = PictureHeader.believable(Double(try number(38, 4)) * 0.0254)
            if packing == .fields {
                let hasOpacity = head >= 56 || code == 6
                for index in 0..<(hasOpacity ? 4 : 3) { fields.append(Field(mask: try number(54 + 4 * index, 4))) }
                if head == 40 { at += 4 * fields.count }
            }
        }
        let isSound =
            switch packing {
            case .none: [1, 2, 4, 8, 16, 24, 32].contains(bits)
            case .runs8: bits == 8
            case .runs4: bits == 4
            case .fields: (bits == 16 || bits == 32) && fields.allSatisfy { $0.shift + $0.bits <= bits }
            }
        guard isSound else { throw DocumentRefusal(.malformed, "the BMP has pixels of \(bits) bits") }
        if packing == .none, bits == 16 { fields = [0x7c00, 0x3e0, 0x1f].map { Field(mask: $0) } }
        if bits <= 8 {
            let stated = head >= 40 ? try number(46, 4) : 0
            let count = stated > 0 ? min(stated, 1 << bits) : 1 << bits
            let size = isOld ? 3 : 4
            for index in 0..<count {
                // A palette may end where the pixels begin.
                guard data < 14 + head || at + index * size + 3 <= data,
                    let color = bytes.slice(at + index * size..<at + index * size + 3)
                else { break }
                palette.append(contentsOf: color)
            }
            guard !palette.isEmpty else { throw DocumentRefusal(.malformed, "the BMP has no colours") }
            at += palette.count / 3 * size
        }
        if data < 14 + head { data = at }
        guard data < bytes.count else { throw DocumentRefusal(.malformed, "the BMP has no pixels") }
    }
}

extension PictureHeader {
    package static func bmp(_ bytes: Bytes) throws(DocumentRefusal) -> PictureHeader {
        let bitmap = try BitmapHeader(bytes)
        var header = PictureHeader(width: bitmap.width, height: bitmap.height)
        (header.dpi, header.components) = (bitmap.dpi, 3)
        return header
    }
}
