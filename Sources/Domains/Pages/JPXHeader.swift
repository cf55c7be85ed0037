/// What a JPEG 2000 says of its colours.
package enum JPXHeader {
    /// Whether an archive may hold it: one, three or four colours of one depth, and one statement of which they are.
    package static func isFit(_ bytes: Bytes) -> Bool {
        guard bytes.number(4, 4) == 0x6a50_2020, let header = box("jp2h", in: bytes, 0..<bytes.count),
            let size = box("ihdr", in: bytes, header), let channels = bytes.number(size.lowerBound + 8, 2),
            let depth = bytes.number(size.lowerBound + 10, 1)
        else { return false }
        guard [1, 3, 4].contains(channels), depth != 255, depth & 127 <= 37, let color = box("colr", in: bytes, header),
            box("colr", in: bytes, color.upperBound..<header.upperBound) == nil, box("cdef", in: bytes, header) == nil
        else { return false }
        switch bytes.number(color.lowerBound, 1) {
        case 1: return [16, 17, 18].contains(bytes.number(color.lowerBound + 3, 4) ?? 0) && channels != 4
        case 2: return channels != 4
        default: return false
        }
    }

    /// What is in the first box of that kind.
    private static func box(_ kind: String, in bytes: Bytes, _ range: Range<Int>) -> Range<Int>? {
        var at = range.lowerBound
        while at + 8 <= range.upperBound, let length = bytes.number(at, 4) {
            var (start, end) = (at + 8, length == 0 ? range.upperBound : at + length)
            if length == 1, let long = bytes.number(at + 8, 8), long <= range.upperBound - at {
                (start, end) = (at + 16, at + long)
            }
            guard end >= start, end <= range.upperBound else { return nil }
            if bytes.starts(with: kind, at: at + 4) { return start..<end }
            at = end
        }
        return nil
    }
}
