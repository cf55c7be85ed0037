extension PictureHeader {
    /// A codestream, alone or in a file of boxes.
    package static func jpeg2000(_ bytes: Bytes) throws(DocumentRefusal) -> PictureHeader {
        guard bytes.starts(with: "jP  ", at: 4) else { return try codestream(bytes, 0..<bytes.count) }
        var (at, boxes) = (0, 0)
        var dpi: Double?
        while at + 8 <= bytes.count, boxes < 1000 {
            boxes += 1
            // The last box may be cut short.
            let isPicture = bytes.starts(with: "jp2c", at: at + 4)
            guard let box = HEIFBox(bytes, at, in: 0..<bytes.count) else {
                guard isPicture else { break }
                var header = try codestream(bytes, at + 8..<bytes.count)
                header.dpi = dpi
                return header
            }
            if isPicture {
                var header = try codestream(bytes, box.inside)
                header.dpi = dpi
                return header
            }
            if bytes.starts(with: "jp2h", at: at + 4) { dpi = resolution(bytes, box.inside) }
            at = box.inside.upperBound
        }
        throw DocumentRefusal(.malformed, "the JPEG 2000 has no picture")
    }

    /// Dots a metre, as fractions with an exponent. What is stated for display counts less than how it was captured.
    private static func resolution(_ bytes: Bytes, _ range: Range<Int>) -> Double? {
        var found: Double?
        func walk(_ range: Range<Int>, depth: Int) {
            var at = range.lowerBound
            for _ in 0..<100 {
                guard let box = HEIFBox(bytes, at, in: range) else { return }
                if depth == 0, bytes.starts(with: "res ", at: at + 4) {
                    walk(box.inside, depth: 1)
                } else if depth == 1, bytes.starts(with: "resc", at: at + 4) || found == nil, box.inside.count >= 10,
                    let above = bytes.number(box.inside.lowerBound + 4, 2),
                    let below = bytes.number(box.inside.lowerBound + 6, 2), below > 0,
                    let exponent = bytes.number(box.inside.lowerBound + 9, 1)
                {
                    var value = Double(above) / Double(below) * 0.0254
                    let power = Int(Int8(truncatingIfNeeded: exponent))
                    for _ in 0..<min(12, abs(power)) { value = power < 0 ? value / 10 : value * 10 }
                    found = believable(value) ?? found
                }
                at = box.inside.upperBound
            }
        }
        walk(range, depth: 0)
        return found
    }

    private static func codestream(_ bytes: Bytes, _ range: Range<Int>) throws(DocumentRefusal) -> PictureHeader {
        let at = range.lowerBound
        func number(_ offset: Int, _ size: Int) throws(DocumentRefusal) -> Int {
            guard let value = bytes.number(at + offset, size) else {
                throw DocumentRefusal(.malformed, "the JPEG 2000 ends in its header")
            }
            return value
        }
        guard try number(0, 4) == 0xff4f_ff51 else { throw DocumentRefusal(.malformed, "the JPEG 2000 has no header") }
        var header = PictureHeader(
            width: try number(8, 4) - (try number(16, 4)), height: try number(12, 4) - (try number(20, 4)))
        header.components = try number(40, 2)
        header.bits = (try number(42, 1)) & 0x7f + 1
        header.content = range
        guard header.width > 0, header.height > 0 else {
            throw DocumentRefusal(.malformed, "the JPEG 2000 has no size")
        }
        guard (1...5).contains(header.components) else {
            throw DocumentRefusal(.unsupported, "the JPEG 2000 has \(header.components) components; 5 are the most")
        }
        let (across, down) = (try number(24, 4), try number(28, 4))
        guard across > 0, down > 0 else { throw DocumentRefusal(.malformed, "the JPEG 2000 has tiles without a size") }
        let tiles = (header.width / across + 2).multipliedReportingOverflow(by: header.height / down + 2)
        guard !tiles.overflow, tiles.partialValue <= 65_535 else {
            throw DocumentRefusal(.malformed, "the JPEG 2000 has too many tiles")
        }
        return header
    }
}
