import Pages

/// Decodes a BMP. What is missing at the end of a file stays white.
struct BitmapDecoder {
    private let header: BitmapHeader
    private let data: [UInt8]
    private let palette: [Canvas.Color]

    init(_ bytes: Bytes) throws(DocumentRefusal) {
        header = try BitmapHeader(bytes)
        data = bytes.slice(header.data..<bytes.count).map(Array.init) ?? []
        let colors = header.palette
        palette = stride(from: 0, to: colors.count - 2, by: 3).map { (at: Int) -> Canvas.Color in
            Canvas.Color(Int(colors[at + 2]), Int(colors[at + 1]), Int(colors[at]))
        }
    }

    func canvas(keepsColor: Bool) throws(DocumentRefusal) -> Canvas {
        var canvas = Canvas(header.width, header.height, keepsColor: keepsColor)
        switch header.packing {
        case .runs4, .runs8: runs(into: &canvas)
        case .none, .fields:
            let row = (header.width * header.bits + 31) / 32 * 4
            // The padding of the only row may be missing.
            guard data.count >= min(row, (header.width * header.bits + 7) / 8) else { throw Canvas.malformed("BMP") }
            rows(row, into: &canvas)
        }
        return canvas
    }

    private func line(_ row: Int) -> Int { header.isTopDown ? row : header.height - 1 - row }

    private func rows(_ size: Int, into canvas: inout Canvas) {
        let isOpaque = !hasOpacity(size)
        for row in 0..<header.height {
            let (start, y) = (row * size, line(row))
            for x in 0..<header.width {
                guard start + ((x + 1) * header.bits + 7) / 8 <= data.count else { return }
                guard let color = color(start, x, isOpaque: isOpaque) else { continue }
                canvas.set(x, y, color)
            }
        }
    }

    /// nil: a colour that the palette has not.
    private func color(_ start: Int, _ x: Int, isOpaque: Bool) -> Canvas.Color? {
        switch header.bits {
        case 24:
            let at = start + 3 * x
            return Canvas.Color(Int(data[at + 2]), Int(data[at + 1]), Int(data[at]))
        case 32 where header.fields.isEmpty:
            let at = start + 4 * x
            return Canvas.Color(Int(data[at + 2]), Int(data[at + 1]), Int(data[at]))
        case 16, 32:
            let value = pixel(start, x)
            return Canvas.Color(
                Self.part(value, header.fields[0]), Self.part(value, header.fields[1]),
                Self.part(value, header.fields[2]), opacity: isOpaque ? 255 : Self.part(value, header.fields[3]))
        default:
            let bit = x * header.bits
            let value = Int(data[start + bit / 8]) >> (8 - header.bits - bit % 8) & (1 << header.bits - 1)
            return value < palette.count ? palette[value] : nil
        }
    }

    private func pixel(_ start: Int, _ x: Int) -> Int {
        let size = header.bits / 8
        return (0..<size).reduce(0) { $0 | Int(data[start + x * size + $1]) << (8 * $1) }
    }

    private static func part(_ value: Int, _ field: BitmapHeader.Field) -> Int {
        guard field.bits > 0 else { return 0 }
        let most = 1 << field.bits - 1
        return (value >> field.shift & most) * 255 / most
    }

    /// Many writers leave the opacity at nothing in every pixel, and mean the picture to be seen.
    private func hasOpacity(_ size: Int) -> Bool {
        guard header.fields.count == 4, header.fields[3].bits > 0 else { return false }
        for row in 0..<header.height {
            for x in 0..<header.width {
                guard row * size + (x + 1) * header.bits / 8 <= data.count else { return false }
                if Self.part(pixel(row * size, x), header.fields[3]) != 0 { return true }
            }
        }
        return false
    }

    private func runs(into canvas: inout Canvas) {
        var (x, row, at) = (0, 0, 0)
        func put(_ value: Int, _ number: Int) {
            if value < palette.count { canvas.set(x + number, line(row), palette[value]) }
        }
        /// What reaches out of the row is not seen.
        func seen(_ count: Int) -> Int { min(count, max(0, header.width - x)) }
        /// Of a byte, or of one of its halves.
        func index(_ byte: UInt8, _ number: Int) -> Int {
            header.packing == .runs8 ? Int(byte) : number % 2 == 0 ? Int(byte >> 4) : Int(byte & 15)
        }
        while at + 1 < data.count, row < header.height {
            let (count, value) = (Int(data[at]), data[at + 1])
            at += 2
            if count > 0 {
                for number in 0..<seen(count) { put(index(value, number), number) }
                x += count
                continue
            }
            switch value {
            case 0: (x, row) = (0, row + 1)
            case 1: return
            case 2:
                guard at + 1 < data.count else { return }
                (x, row, at) = (x + Int(data[at]), row + Int(data[at + 1]), at + 2)
            default:
                let bytes = header.packing == .runs8 ? Int(value) : (Int(value) + 1) / 2
                for number in 0..<seen(Int(value)) {
                    let place = at + (header.packing == .runs8 ? number : number / 2)
                    guard place < data.count else { return }
                    put(index(data[place], number), number)
                }
                (x, at) = (x + Int(value), at + bytes + bytes % 2)
            }
        }
    }
}
