/// Reads TZif (RFC 8536, versions 1 to 4). Our own, because Foundation's ICU would add tens of megabytes to a static binary, with zone data
/// of another age than the system's.
enum ZoneFile {
    /// Why a file is no zone.
    struct Malformed: Error, Equatable {
        let reason: String
    }

    static func read(_ bytes: [UInt8], name: String) throws(Malformed) -> Zone {
        var reader = ByteReader(bytes: bytes)
        var header = try Header(&reader)
        var wide = false
        if header.version > 0 {
            // Behind the first block, which has 32 bits for what needs more, stands the whole again.
            try reader.skip(header.size(timeBytes: 4))
            header = try Header(&reader)
            wide = true
        }
        guard header.leaps == 0 else { throw Malformed(reason: "it counts leap seconds, which no database does") }
        var line = try changes(&reader, header, wide: wide)
        guard wide, let footer = reader.footer(), !footer.isEmpty else {
            return Zone(name: name, line: line, horizon: nil)
        }
        guard let rule = ZoneRule(footer) else { throw Malformed(reason: "its rule \(footer) cannot be understood") }
        let horizon = extend(&line, by: rule)
        return Zone(name: name, line: line, horizon: horizon)
    }

    private static func changes(
        _ reader: inout ByteReader, _ header: Header, wide: Bool
    ) throws(Malformed) -> ZoneLine {
        var times: [Int64] = []
        for _ in 0..<header.times { times.append(try reader.integer(bytes: wide ? 8 : 4)) }
        var indices: [Int] = []
        for _ in 0..<header.times { indices.append(Int(try reader.integer(bytes: 1) & 0xFF)) }
        var offsets: [Int64] = []
        for _ in 0..<header.types {
            let offset = try reader.integer(bytes: 4)
            // No clock is further off; what looks up wall times counts on it.
            guard offset.magnitude <= 26 * 3600 else { throw Malformed(reason: "an offset is longer than 26 hours") }
            offsets.append(offset)
            try reader.skip(2)
        }
        try reader.skip(header.characters + header.standards + header.universals)
        guard let first = offsets.first else { throw Malformed(reason: "it has no offset") }
        var line = ZoneLine(first: first)
        for (index, time) in zip(indices, times) {
            guard index < offsets.count else {
                throw Malformed(reason: "a change leads to an offset that is not there")
            }
            guard time > line.times.last ?? .min else { throw Malformed(reason: "its changes are out of order") }
            guard time < 1 << 54 else { throw Malformed(reason: "a change lies beyond every calendar") }
            line.append(offsets[index], from: max(time, -(1 << 54)))
        }
        return line
    }

    /// Writes the rule out for a whole cycle of the calendar; returns from where on it repeats.
    private static func extend(_ line: inout ZoneLine, by rule: ZoneRule) -> Int64? {
        let last = line.times.last
        if last == nil, rule.summer == nil { line = ZoneLine(first: rule.offset) }
        guard rule.summer != nil else { return nil }
        let from = last ?? -2_208_988_800  // 1900
        let year = CivilDate(dayNumber: Int(floorDivide(from, 86_400))).year
        for year in (year - 1)...(year + 404) {
            for change in rule.changes(in: year) where change.time > from {
                line.append(change.offset, from: change.time)
            }
        }
        // Two years further, so that both neighbours of every looked-up time come from the rule.
        return from + 2 * 366 * 86_400 + Zone.cycle
    }

    private struct Header {
        let version: UInt8
        let universals: Int
        let standards: Int
        let leaps: Int
        let times: Int
        let types: Int
        let characters: Int

        init(_ reader: inout ByteReader) throws(Malformed) {
            guard try reader.take(4).elementsEqual("TZif".utf8) else {
                throw Malformed(reason: "it is not a zone file")
            }
            let digit = try reader.take(1).first ?? 0
            guard digit == 0 || (UInt8(ascii: "2")...UInt8(ascii: "9")).contains(digit) else {
                throw Malformed(reason: "its version is unknown")
            }
            version = digit == 0 ? 0 : digit - UInt8(ascii: "0")
            try reader.skip(15)
            universals = try reader.count()
            standards = try reader.count()
            leaps = try reader.count()
            times = try reader.count()
            types = try reader.count()
            characters = try reader.count()
        }

        func size(timeBytes: Int) -> Int {
            times * (timeBytes + 1) + types * 6 + characters + leaps * (timeBytes + 4) + standards + universals
        }
    }
}

private struct ByteReader {
    let bytes: [UInt8]
    private var place = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    mutating func take(_ count: Int) throws(ZoneFile.Malformed) -> ArraySlice<UInt8> {
        guard bytes.count - place >= count else { throw ZoneFile.Malformed(reason: "it is cut short") }
        defer { place += count }
        return bytes[place..<(place + count)]
    }

    mutating func skip(_ count: Int) throws(ZoneFile.Malformed) {
        _ = try take(count)
    }

    mutating func integer(bytes count: Int) throws(ZoneFile.Malformed) -> Int64 {
        var number: Int64 = 0
        for byte in try take(count) { number = number << 8 | Int64(byte) }
        let unused = 64 - 8 * Int64(count)
        return (number << unused) >> unused  // with its sign
    }

    /// No real table is longer. A false length would make us reserve memory for nothing.
    mutating func count() throws(ZoneFile.Malformed) -> Int {
        let count = try integer(bytes: 4)
        guard (0...100_000).contains(count) else { throw ZoneFile.Malformed(reason: "it is malformed") }
        return Int(count)
    }

    /// The text between two line feeds at the end.
    mutating func footer() -> String? {
        let rest = bytes[place...]
        guard rest.first == 10, let end = rest.dropFirst().firstIndex(of: 10) else { return nil }
        return String(decoding: rest[(place + 1)..<end], as: UTF8.self)
    }
}
