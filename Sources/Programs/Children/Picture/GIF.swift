import Pages

/// Unpacks the first frame of a GIF. What is missing at the end of a file stays white.
struct GIFDecoder {
    private let header: GIFHeader
    private let data: [UInt8]

    init(_ bytes: Bytes) throws(DocumentRefusal) {
        header = try GIFHeader(bytes)
        data = bytes.slice(header.data..<bytes.count).map(Array.init) ?? []
    }

    func canvas(keepsColor: Bool) throws(DocumentRefusal) -> Canvas {
        let colors = stride(from: 0, to: header.palette.count - 2, by: 3).map { (at: Int) -> Canvas.Color in
            Canvas.Color(Int(header.palette[at]), Int(header.palette[at + 1]), Int(header.palette[at + 2]))
        }
        var canvas = Canvas(header.width, header.height, keepsColor: keepsColor)
        let frame = header.frame
        let rows = Self.rows(frame.height, isInterlaced: header.isInterlaced)
        let transparent = header.transparent ?? -1
        var (row, x) = (0, 0)
        let count = try codes(most: frame.width * frame.height) { index in
            if index != transparent, index < colors.count {
                canvas.set(frame.left + x, frame.top + rows[row], colors[index])
            }
            x += 1
            if x == frame.width { (x, row) = (0, row + 1) }
        }
        guard count > 0 else { throw Canvas.malformed("GIF") }
        return canvas
    }

    private static func rows(_ height: Int, isInterlaced: Bool) -> [Int] {
        guard isInterlaced else { return Array(0..<height) }
        return [(0, 8), (4, 8), (2, 4), (1, 2)].flatMap { Array(stride(from: $0.0, to: height, by: $0.1)) }
    }

    /// Calls back with each pixel, `most` times at most; how many there were.
    private func codes(most: Int, _ pixel: (Int) -> Void) throws(DocumentRefusal) -> Int {
        guard let least = data.first.map(Int.init), (1...11).contains(least) else { throw Canvas.malformed("GIF") }
        let (clear, end) = (1 << least, 1 << least + 1)
        // What a code stands for: the code before its last pixel, and that pixel.
        var prefix = [Int](repeating: -1, count: 4096)
        var suffix = [Int](repeating: 0, count: 4096)
        for index in 0..<clear { suffix[index] = index }
        var stack = [Int](repeating: 0, count: 4097)
        var (size, next, last, first) = (least + 1, clear + 2, -1, 0)
        var (held, bits, at, left, count) = (0, 0, 1, 0, 0)
        while count < most {
            while bits < size {
                if left == 0 {
                    guard at < data.count, data[at] > 0 else { return count }
                    (left, at) = (Int(data[at]), at + 1)
                }
                guard at < data.count else { return count }
                held |= Int(data[at]) << bits
                (at, left, bits) = (at + 1, left - 1, bits + 8)
            }
            let code = held & ((1 << size) - 1)
            held >>= size
            bits -= size
            if code == clear {
                (size, next, last) = (least + 1, clear + 2, -1)
                continue
            }
            guard code != end, last >= 0 ? code <= next && code != clear + 1 : code < clear else { return count }
            // The pixels of a code come from its last to its first.
            var (walk, depth) = (code, 0)
            if code == next, last >= 0 {
                guard next < 4096 else { return count }
                stack[0] = first
                (walk, depth) = (last, 1)
            }
            while walk >= clear, depth < 4096 {
                stack[depth] = suffix[walk]
                (walk, depth) = (prefix[walk], depth + 1)
                guard walk >= 0 else { return count }
            }
            first = suffix[walk]
            stack[depth] = first
            if last >= 0, next < 4096 {
                (prefix[next], suffix[next]) = (last, first)
                next += 1
                if next == 1 << size, size < 12 { size += 1 }
            }
            last = code
            for index in stride(from: depth, through: 0, by: -1) where count < most {
                pixel(stack[index])
                count += 1
            }
        }
        return count
    }
}
