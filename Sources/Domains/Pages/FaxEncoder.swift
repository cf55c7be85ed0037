/// Packs a picture of black and white as fax machines do (ITU-T T.6, "Group 4"), without loss.
package enum FaxEncoder {
    /// - Parameter rows: a bit for each pixel, from the highest of a byte; each row begins with a byte of its own. 0 is black.
    package static func packed(_ rows: some RandomAccessCollection<UInt8>, width: Int, height: Int) -> [UInt8] {
        var bits = BitWriter()
        let stride = (width + 7) / 8
        // Where a row changes its colour, beginning with the first black pixel.
        var above: [Int] = []
        var start = rows.startIndex
        for _ in 0..<height {
            let end = rows.index(start, offsetBy: stride)
            let changes = changes(in: rows[start..<end], width)
            line(changes, above, width, &bits)
            (above, start) = (changes, end)
        }
        bits.add("000000000001000000000001")
        return bits.finished()
    }

    private static func changes(in row: some Collection<UInt8>, _ width: Int) -> [Int] {
        var changes: [Int] = []
        var (at, last) = (0, UInt8(0xff))
        for byte in row {
            if byte == last, byte == 0 || byte == 0xff {
                at += 8
                continue
            }
            for shift in Swift.stride(from: 7, through: 0, by: -1) where at < width {
                let bit = byte >> UInt8(shift) & 1
                if bit != last & 1 {
                    changes.append(at)
                    last = bit
                }
                at += 1
            }
            last = last & 1 == 1 ? 0xff : 0
        }
        return changes
    }

    private static func line(_ row: [Int], _ above: [Int], _ width: Int, _ bits: inout BitWriter) {
        func at(_ changes: [Int], _ index: Int) -> Int { index < changes.count ? changes[index] : width }
        var (place, isBlack, next, over) = (-1, false, 0, 0)
        while place < width {
            while next < row.count, row[next] <= place { next += 1 }
            // The row's next change to the other colour.
            if next < row.count, (next % 2 == 0) == isBlack { next += 1 }
            let a1 = at(row, next)
            over = max(0, over - 2)
            while over < above.count, above[over] <= place || (over % 2 == 0) == isBlack { over += 1 }
            let (b1, b2) = (at(above, over), at(above, over + 1))
            if b2 < a1 {
                bits.add("0001")
                place = b2
            } else if let mode = vertical[a1 - b1] {
                bits.add(mode)
                place = a1
                isBlack.toggle()
            } else {
                let a2 = at(row, next + 1)
                bits.add("001")
                run(a1 - max(0, place), isBlack, &bits)
                run(a2 - a1, !isBlack, &bits)
                place = a2
            }
        }
    }

    private static let vertical = [
        0: "1", 1: "011", 2: "000011", 3: "0000011", -1: "010", -2: "000010", -3: "0000010",
    ]

    private static func run(_ length: Int, _ isBlack: Bool, _ bits: inout BitWriter) {
        var left = length
        while left >= 2560 {
            bits.add(long[12])
            left -= 2560
        }
        if left >= 1792 {
            bits.add(long[(left - 1792) / 64])
        } else if left >= 64 {
            bits.add((isBlack ? blackMany : whiteMany)[left / 64 - 1])
        }
        bits.add((isBlack ? black : white)[left % 64])
    }

    private static func list(_ text: String) -> [String] { text.split(whereSeparator: \.isWhitespace).map(String.init) }

    private static let white = list(
        """
        00110101 000111 0111 1000 1011 1100 1110 1111 10011 10100 00111 01000 001000 000011 110100 110101
        101010 101011 0100111 0001100 0001000 0010111 0000011 0000100 0101000 0101011 0010011 0100100 0011000 00000010 00000011 00011010
        00011011 00010010 00010011 00010100 00010101 00010110 00010111 00101000 00101001 00101010 00101011 00101100 00101101 00000100 00000101 00001010
        00001011 01010010 01010011 01010100 01010101 00100100 00100101 01011000 01011001 01011010 01011011 01001010 01001011 00110010 00110011 00110100
        """)
    private static let black = list(
        """
        0000110111 010 11 10 011 0011 0010 00011 000101 000100 0000100 0000101 0000111 00000100 00000111 000011000
        0000010111 0000011000 0000001000 00001100111 00001101000 00001101100 00000110111 00000101000 00000010111 00000011000
        000011001010 000011001011 000011001100 000011001101 000001101000 000001101001 000001101010 000001101011 000011010010 000011010011
        000011010100 000011010101 000011010110 000011010111 000001101100 000001101101 000011011010 000011011011 000001010100 000001010101
        000001010110 000001010111 000001100100 000001100101 000001010010 000001010011 000000100100 000000110111 000000111000 000000100111
        000000101000 000001011000 000001011001 000000101011 000000101100 000001011010 000001100110 000001100111
        """)
    private static let whiteMany = list(
        """
        11011 10010 010111 0110111 00110110 00110111 01100100 01100101 01101000 01100111 011001100 011001101 011010010 011010011
        011010100 011010101 011010110 011010111 011011000 011011001 011011010 011011011 010011000 010011001 010011010 011000 010011011
        """)
    private static let blackMany = list(
        """
        0000001111 000011001000 000011001001 000001011011 000000110011 000000110100 000000110101 0000001101100 0000001101101
        0000001001010 0000001001011 0000001001100 0000001001101 0000001110010 0000001110011 0000001110100 0000001110101 0000001110110
        0000001110111 0000001010010 0000001010011 0000001010100 0000001010101 0000001011010 0000001011011 0000001100100 0000001100101
        """)
    private static let long = list(
        """
        00000001000 00000001100 00000001101 000000010010 000000010011 000000010100 000000010101 000000010110 000000010111
        000000011100 000000011101 000000011110 000000011111
        """)
}

private struct BitWriter {
    private var bytes: [UInt8] = []
    private var (last, free) = (UInt8(0), 8)

    mutating func add(_ bits: String) {
        for bit in bits.utf8 {
            free -= 1
            if bit == UInt8(ascii: "1") { last |= 1 << UInt8(free) }
            if free == 0 {
                bytes.append(last)
                (last, free) = (0, 8)
            }
        }
    }

    mutating func finished() -> [UInt8] {
        if free < 8 { bytes.append(last) }
        return bytes
    }
}
