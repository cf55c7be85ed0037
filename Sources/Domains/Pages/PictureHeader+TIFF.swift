extension PictureHeader {
    /// All frames. A chain that returns to an earlier frame ends there, and a chain longer than `most` is refused.
    ///
    /// - Parameter isWhole: a file; otherwise the directory inside a JPEG, of which little is asked.
    package static func tiff(_ bytes: Bytes, most: Int, isWhole: Bool = true) throws(DocumentRefusal) -> [PictureHeader]
    {
        guard let layout = TIFFLayout(bytes) else { throw DocumentRefusal(.malformed, "the TIFF has no directory") }
        var frames: [PictureHeader] = []
        var seen: Set<Int> = []
        guard var at = layout.first else { throw DocumentRefusal(.malformed, "the TIFF has no directory") }
        while at != 0 {
            guard seen.insert(at).inserted else { break }
            guard let entries = layout.number(at, layout.countSize) else {
                if frames.isEmpty { throw DocumentRefusal(.malformed, "the TIFF's directory is outside of it") }
                break
            }
            guard frames.count < most else {
                if !isWhole { break }
                throw DocumentRefusal(.tooManyPages, "the TIFF has more than \(most) frames")
            }
            let frame = layout.frame(at, entries: entries)
            if isWhole, frame.width <= 0 || frame.height <= 0 {
                throw DocumentRefusal(.malformed, "frame \(frames.count + 1) of the TIFF has no size")
            }
            frames.append(frame)
            at = layout.next(at, entries: entries) ?? 0
        }
        guard !frames.isEmpty else { throw DocumentRefusal(.malformed, "the TIFF has no frames") }
        return frames
    }

    /// Where the ICC profile of a frame stands.
    static func profile(_ bytes: Bytes, directory: Int) -> Range<Int>? {
        guard let layout = TIFFLayout(bytes), let entries = layout.number(directory, layout.countSize) else {
            return nil
        }
        return layout.profile(directory, entries: entries)
    }
}

/// Where things stand in a TIFF: in one of up to 4 GB, or in a BigTIFF, whose numbers have eight bytes.
private struct TIFFLayout {
    private let bytes: Bytes
    private let isBigEndian: Bool
    private let isBig: Bool

    init?(_ bytes: Bytes) {
        self.bytes = bytes
        isBigEndian = bytes.starts(with: "MM")
        isBig = bytes.number(2, 2, bigEndian: isBigEndian) == 43
    }

    var first: Int? { isBig ? number(8, 8) : number(4, 4) }
    var countSize: Int { isBig ? 8 : 2 }
    private var fieldSize: Int { isBig ? 20 : 12 }
    private var offsetSize: Int { isBig ? 8 : 4 }

    func number(_ at: Int, _ size: Int) -> Int? { bytes.number(at, size, bigEndian: isBigEndian) }

    private func field(_ at: Int, _ index: Int) -> Int? {
        let (offset, overflow) = index.multipliedReportingOverflow(by: fieldSize)
        let start = at.addingReportingOverflow(countSize)
        let end = start.partialValue.addingReportingOverflow(offset)
        return overflow || start.overflow || end.overflow || end.partialValue > bytes.count ? nil : end.partialValue
    }

    func next(_ at: Int, entries: Int) -> Int? { field(at, entries).flatMap { number($0, offsetSize) } }

    func frame(_ at: Int, entries: Int) -> PictureHeader {
        var frame = PictureHeader(width: 0, height: 0)
        frame.directory = at
        var (x, unit) = (Double?.none, 2)
        for index in 0..<min(entries, 4096) {
            guard let field = field(at, index), let tag = number(field, 2), let type = number(field + 2, 2) else {
                break
            }
            let value = value(field, type)
            switch tag {
            case 256: frame.width = value
            case 257: frame.height = value
            case 258: frame.bits = value
            case 274: frame.orientation = (1...8).contains(value) ? value : 1
            case 277: frame.components = value
            case 282: x = ratio(field, type)
            case 296: unit = value
            default: break
            }
        }
        if let x, unit == 2 || unit == 3 { frame.dpi = PictureHeader.believable(x * (unit == 3 ? 2.54 : 1)) }
        return frame
    }

    func profile(_ at: Int, entries: Int) -> Range<Int>? {
        for index in 0..<min(entries, 4096) {
            guard let field = field(at, index), let tag = number(field, 2) else { return nil }
            guard tag == 34_675, let count = number(field + 4, offsetSize), let start = place(field, 1) else {
                continue
            }
            let (end, overflow) = start.addingReportingOverflow(count)
            return overflow || end < start ? nil : start..<end
        }
        return nil
    }

    /// The first number of a field, or 0.
    private func value(_ field: Int, _ type: Int) -> Int {
        let size = [1: 1, 3: 2, 4: 4, 16: 8][type] ?? 4
        return place(field, size).flatMap { number($0, size) } ?? 0
    }

    private func ratio(_ field: Int, _ type: Int) -> Double? {
        guard type == 5, let place = place(field, 8), let above = number(place, 4), let below = number(place + 4, 4),
            below > 0
        else { return nil }
        return Double(above) / Double(below)
    }

    /// Where a field's values are: in the field if they fit there.
    private func place(_ field: Int, _ size: Int) -> Int? {
        let start = field + 4 + offsetSize
        guard let count = number(field + 4, offsetSize), count > 0 else { return nil }
        return count <= offsetSize / size ? start : number(start, offsetSize)
    }
}
