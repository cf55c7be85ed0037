import CZlib
import Foundation
import Pages
import Testing

/// Grey pixels, as a scanner sees a page.
struct Grid: Equatable {
    var width: Int
    var height: Int
    var pixels: [UInt8]

    init(width: Int, height: Int, _ pixel: (Int, Int) -> UInt8) {
        (self.width, self.height) = (width, height)
        pixels = (0..<width * height).map { pixel($0 % width, $0 / width) }
    }

    init(_ raster: Raster) {
        (width, height, pixels) = (raster.width, raster.height, Array(raster.pixels))
    }

    subscript(_ x: Int, _ y: Int) -> UInt8 { pixels[y * width + x] }

    /// As a file stores it whose orientation is to be this one, by the table of the TIFF specification.
    func stored(_ orientation: Int) -> Grid {
        let (right, bottom) = (width - 1, height - 1)
        return Grid(width: orientation > 4 ? height : width, height: orientation > 4 ? width : height) { x, y in
            switch orientation {
            case 2: self[right - x, y]
            case 3: self[right - x, bottom - y]
            case 4: self[x, bottom - y]
            case 5: self[y, x]
            case 6: self[right - y, x]
            case 7: self[right - y, bottom - x]
            case 8: self[y, bottom - x]
            default: self[x, y]
            }
        }
    }

    /// The mean distance of the pixels; one row or column more or less may come from rounding.
    func distance(to other: Grid) -> Double {
        guard abs(width - other.width) <= 1, abs(height - other.height) <= 1 else { return .infinity }
        let (width, height) = (min(width, other.width), min(height, other.height))
        var sum = 0
        for y in 0..<height { for x in 0..<width { sum += abs(Int(self[x, y]) - Int(other[x, y])) } }
        return Double(sum) / Double(width * height)
    }
}

private func big(_ value: Int, _ size: Int) -> [UInt8] {
    (0..<size).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}

private func little(_ value: Int, _ size: Int) -> [UInt8] { big(value, size).reversed() }

/// A PNG of any form, as its rows are given.
func png(
    width: Int, height: Int, bits: Int, color: Int, palette: [UInt8]? = nil, transparency: [UInt8]? = nil,
    profile: [UInt8]? = nil, rows: [[UInt8]]
) -> [UInt8] {
    func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        return big(data.count, 4) + body + big(Int(crc32(0, body, uInt(body.count))), 4)
    }
    func deflated(_ raw: [UInt8]) -> [UInt8] {
        var count = compressBound(uLong(raw.count))
        var data = [UInt8](repeating: 0, count: Int(count))
        compress2(&data, &count, raw, uLong(raw.count), 1)
        return Array(data.prefix(Int(count)))
    }
    let data = deflated(rows.flatMap { (row: [UInt8]) -> [UInt8] in [0] + row })
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
        + chunk("IHDR", big(width, 4) + big(height, 4) + [UInt8(bits), UInt8(color), 0, 0, 0])
        + (profile.map { chunk("iCCP", Array("some\0\0".utf8) + deflated($0)) } ?? [])
        + chunk("pHYs", big(7874, 4) + big(7874, 4) + [1]) + (palette.map { chunk("PLTE", $0) } ?? [])
        + (transparency.map { chunk("tRNS", $0) } ?? []) + chunk("IDAT", data)
        + chunk("IEND", [])
}

/// Samples of 1, 2, 4, 8 or 16 bits, packed into bytes.
func packed(_ samples: [UInt8], bits: Int) -> [UInt8] {
    if bits == 16 { return samples.flatMap { [$0, $0] } }
    if bits == 8 { return samples }
    var bytes = [UInt8](repeating: 0, count: (samples.count * bits + 7) / 8)
    for (index, sample) in samples.enumerated() {
        bytes[index * bits / 8] |= (sample >> UInt8(8 - bits)) << UInt8(8 - bits - index * bits % 8)
    }
    return bytes
}

/// A TIFF of 200 dpi without compression, or with a JPEG in the old form.
struct TIFFForm {
    var orientation = 1
    var bits = 8
    /// 0: white is zero, 1: black is zero, 2: red, green and blue.
    var photometric = 1
    var tile: Int?
    var hasPlanes = false
    var isBig = false
    var isOldJPEG = false

    func made(of picture: Grid) -> [UInt8] {
        let stored = picture.stored(orientation)
        let samples = photometric == 2 ? 3 : 1
        var pieces: [[UInt8]] = []
        for _ in 0..<(hasPlanes ? samples : 1) {
            let copies = hasPlanes ? 1 : samples
            func row(_ y: Int, _ columns: Range<Int>) -> [UInt8] {
                let levels = columns.flatMap { x -> [UInt8] in
                    let level = x < stored.width && y < stored.height ? stored[x, y] : 0
                    return Array(repeating: photometric == 0 ? 255 - level : level, count: copies)
                }
                return packed(levels, bits: bits)
            }
            if let tile {
                for top in stride(from: 0, to: stored.height, by: tile) {
                    for left in stride(from: 0, to: stored.width, by: tile) {
                        pieces.append((top..<top + tile).flatMap { row($0, left..<left + tile) })
                    }
                }
            } else {
                pieces.append((0..<stored.height).flatMap { row($0, 0..<stored.width) })
            }
        }
        if isOldJPEG { pieces = [jpeg(of: stored, components: 3)] }
        return file(pieces, stored, samples: isOldJPEG ? 3 : samples)
    }

    private func file(_ pieces: [[UInt8]], _ stored: Grid, samples: Int) -> [UInt8] {
        let wide = isBig ? 8 : 4
        var out = isBig ? Array("II+\0".utf8) + little(8, 2) + little(0, 2) : Array("II*\0".utf8)
        let pointer = out.count
        out += little(0, wide)
        func added(_ bytes: [UInt8]) -> Int {
            defer { out += bytes }
            return out.count
        }
        let offsets = pieces.map { added($0) }
        let resolution = added(little(200, 4) + little(1, 4))
        var fields: [(tag: Int, type: Int, values: [Int])] = [
            (256, 4, [stored.width]), (257, 4, [stored.height]), (258, 3, Array(repeating: bits, count: samples)),
            (259, 3, [isOldJPEG ? 6 : 1]), (262, 3, [isOldJPEG ? 6 : photometric]), (274, 3, [orientation]),
            (277, 3, [samples]), (284, 3, [hasPlanes ? 2 : 1]), (296, 3, [2]),
        ]
        if isBig {
            fields.append((282, 5, [200 | 1 << 32]))
        } else {
            fields.append((282, -5, [resolution]))
        }
        let counts = pieces.map(\.count)
        if let tile {
            fields += [(322, 4, [tile]), (323, 4, [tile]), (324, 4, offsets), (325, 4, counts)]
        } else {
            fields += [(273, 4, offsets), (278, 4, [stored.height]), (279, 4, counts)]
        }
        if isOldJPEG {
            fields += [(512, 3, [1]), (513, 4, offsets), (514, 4, counts), (530, 3, [1, 1])]
        }
        var directory = little(fields.count, isBig ? 8 : 2)
        for (tag, type, values) in fields.sorted(by: { $0.tag < $1.tag }) {
            let size = [3: 2, 4: 4, 5: 8, -5: 4][type] ?? 4
            var data = values.flatMap { little($0, size) }
            if data.count > wide { data = little(added(data), wide) }
            directory += little(tag, 2) + little(abs(type), 2) + little(values.count, wide)
            directory += data + [UInt8](repeating: 0, count: wide - data.count)
        }
        if out.count % 2 != 0 { out.append(0) }
        let start = added(directory + little(0, wide))
        out.replaceSubrange(pointer..<pointer + wide, with: little(start, wide))
        return out
    }
}

/// A baseline JPEG of 200 dpi, hardly packed: all codes of its tables have one length.
///
/// - Parameter junk: bytes between two segments that belong to neither.
func jpeg(of picture: Grid, components: Int = 1, exif: [UInt8]? = nil, junk: [UInt8] = []) -> [UInt8] {
    func segment(_ marker: UInt8, _ data: [UInt8]) -> [UInt8] { [0xff, marker] + big(data.count + 2, 2) + data }
    let symbols: [UInt8] = [0, 0xf0] + (0..<16).flatMap { run in (1...10).map { UInt8(run << 4 | $0) } }
    var lengths = [UInt8](repeating: 0, count: 16)
    lengths[3] = 12
    var others = [UInt8](repeating: 0, count: 16)
    others[7] = UInt8(symbols.count)
    var out: [UInt8] = [0xff, 0xd8]
    out +=
        exif.map { segment(0xe1, Array("Exif\0\0".utf8) + $0) }
        ?? segment(0xe0, Array("JFIF\0".utf8) + [1, 1, 1] + big(200, 2) + big(200, 2) + [0, 0])
    out += junk + segment(0xdb, [0] + [UInt8](repeating: 4, count: 64))
    let numbers = (1...components).map { UInt8($0) }
    let parts = numbers.flatMap { (number: UInt8) -> [UInt8] in [number, 0x11, 0] }
    let tables = numbers.flatMap { (number: UInt8) -> [UInt8] in [number, 0] }
    let size: [UInt8] = big(picture.height, 2) + big(picture.width, 2)
    out += segment(0xc0, [8] + size + [UInt8(components)] + parts)
    out += segment(0xc4, [0x00] + lengths + (0..<12)) + segment(0xc4, [0x10] + others + symbols)
    out += segment(0xda, [UInt8(components)] + tables + [0, 63, 0])
    var bits = JPEGBits()
    var last = 0
    for top in stride(from: 0, to: picture.height, by: 8) {
        for left in stride(from: 0, to: picture.width, by: 8) {
            let levels = (0..<64).map { index in
                Double(picture[min(picture.width - 1, left + index % 8), min(picture.height - 1, top + index / 8)])
                    - 128
            }
            let block = JPEGBits.transformed(levels).map { Int(($0 / 4).rounded()) }
            bits.add(difference: block[0] - last)
            last = block[0]
            var run = 0
            for place in JPEGBits.zigzag.dropFirst() {
                guard block[place] != 0 else {
                    run += 1
                    continue
                }
                while run > 15 {
                    bits.add(1, 8)
                    run -= 16
                }
                let size = JPEGBits.size(block[place])
                bits.add((symbols.firstIndex(of: UInt8(run << 4 | size)) ?? 0), 8)
                bits.add(block[place], size: size)
                run = 0
            }
            if run > 0 { bits.add(0, 8) }
            for _ in 1..<components {
                bits.add(difference: 0)
                bits.add(0, 8)
            }
        }
    }
    return out + bits.finished() + [0xff, 0xd9]
}

/// An EXIF directory that says how the picture lies, and its resolution.
func exif(orientation: Int) -> [UInt8] {
    Array("MM\0*".utf8) + big(8, 4) + big(2, 2) + big(274, 2) + big(3, 2) + big(1, 4) + big(orientation, 2) + [0, 0]
        + big(282, 2) + big(5, 2) + big(1, 4) + big(38, 4) + big(0, 4) + big(200, 4) + big(1, 4)
}

private struct JPEGBits {
    private var bytes: [UInt8] = []
    private var held = 0
    private var count = 0

    static let zigzag: [Int] = (0..<64).sorted { one, other in
        let (a, b) = (one / 8 + one % 8, other / 8 + other % 8)
        return a != b ? a < b : a % 2 == 0 ? one > other : one < other
    }

    static let cosines: [[Double]] = (0..<8).map { (u: Int) -> [Double] in
        let weight: Double = u == 0 ? 0.5.squareRoot() / 2 : 0.5
        return (0..<8).map { (x: Int) -> Double in weight * cos(Double((2 * x + 1) * u) * .pi / 16) }
    }

    static func transformed(_ levels: [Double]) -> [Double] {
        var rows = [Double](repeating: 0, count: 64)
        for y in 0..<8 {
            for u in 0..<8 {
                var sum = 0.0
                for x in 0..<8 { sum += levels[y * 8 + x] * cosines[u][x] }
                rows[y * 8 + u] = sum
            }
        }
        var result = rows
        for v in 0..<8 {
            for u in 0..<8 {
                var sum = 0.0
                for y in 0..<8 { sum += rows[y * 8 + u] * cosines[v][y] }
                result[v * 8 + u] = sum
            }
        }
        return result
    }

    static func size(_ value: Int) -> Int {
        var (rest, size) = (abs(value), 0)
        while rest > 0 { (rest, size) = (rest / 2, size + 1) }
        return size
    }

    mutating func add(difference: Int) {
        let size = Self.size(difference)
        add(size, 4)
        add(difference, size: size)
    }

    mutating func add(_ value: Int, size: Int) { add(value < 0 ? value + (1 << size) - 1 : value, size) }

    mutating func add(_ value: Int, _ size: Int) {
        for bit in (0..<size).reversed() {
            held = held << 1 | (value >> bit & 1)
            count += 1
            if count == 8 {
                bytes.append(UInt8(held))
                if held == 0xff { bytes.append(0) }
                (held, count) = (0, 0)
            }
        }
    }

    mutating func finished() -> [UInt8] {
        while count != 0 { add(1, 1) }
        return bytes
    }
}
