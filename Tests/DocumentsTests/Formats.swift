import CZlib
import Foundation
import Pages

// Small pictures in the formats that phones, cameras and browsers write. All show the same: light at the right, dark at the left, and white in
// the upper left corner.

let bar = Grid(width: 96, height: 64) { x, y in x < 12 && y < 16 ? 255 : x < 48 ? 20 : 200 }

private func sample(_ text: String) -> [UInt8] {
    Data(base64Encoded: text).map(Array.init) ?? []
}

/// A file of boxes, and a codestream alone.
let jp2Sample = sample(
    """
    AAAADGpQICANCocKAAAAFGZ0eXBqcDIgAAAAAGpwMiAAAAAtanAyaAAAABZpaGRyAAAAQAAAAGAAAQcHAAAAAAAPY29scgEAAAAAABEA\
    AAG2anAyY/9P/1EAKQAAAAAAYAAAAEAAAAAAAAAAAAAAAGAAAABAAAAAAAAAAAAAAQcBAf9SAAwAAAABAAIEBAAB/1wACkBASEhQSEhQ\
    /2QAJQABQ3JlYXRlZCBieSBPcGVuSlBFRyB2ZXJzaW9uIDIuNS4w/5AACgAAAAABPgAB/5PfhVYDMHKMJ1sOgqCJTeSh+pIxdrw4GNc7\
    Md7woZFavMJUBin5KOwSDKnVUI+GZ2EgwJzhIQyeMJBgTnCQgk8YSDMiyke28vRFbXN0YmcKBO5Gm2EXcmH+r2HekiZIM/X0/IAePNOs\
    ojLocqawkGqT04qDKnWEgwJzhIQAfxhILacYSEAH8YSC2sLCALw/8jPH5X6x5vZxUzlQHljJ0fyVgjgBuAQ/ajDYAGhyMNfPwJJ+AdD7\
    QkAc+XCmEhKmkqEKCj7CJkxf+XkR40QMOYh1EwcUnXz22w80pJ8DcvpbA5hFXL0HAgcFex8LTo1oOxcPf8/Ain4B0H1AoKMDaPBJ4fdH\
    fu0hcjKMLHn7dbxVa3n0B6PYgr8JDtDVzsGjA2b2bWy/riO95GpYj6MECpz3/9k=
    """)

let j2kSample = sample(
    """
    /0//UQApAAAAAABgAAAAQAAAAAAAAAAAAAAAYAAAAEAAAAAAAAAAAAABBwEB/1IADAAAAAEAAgQEAAH/XAAKQEBISFBISFD/ZAAlAAFD\
    cmVhdGVkIGJ5IE9wZW5KUEVHIHZlcnNpb24gMi41LjD/kAAKAAAAAAE+AAH/k9+FVgMwcownWw6CoIlN5KH6kjF2vDgY1zsx3vChkVq8\
    wlQGKfko7BIMqdVQj4ZnYSDAnOEhDJ4wkGBOcJCCTxhIMyLKR7by9EVtc3RiZwoE7kabYRdyYf6vYd6SJkgz9fT8gB4806yiMuhyprCQ\
    apPTioMqdYSDAnOEhAB/GEgtpxhIQAfxhILawsIAvD/yM8flfrHm9nFTOVAeWMnR/JWCOAG4BD9qMNgAaHIw18/Akn4B0PtCQBz5cKYS\
    EqaSoQoKPsImTF/5eRHjRAw5iHUTBxSdfPbbDzSknwNy+lsDmEVcvQcCBwV7HwtOjWg7Fw9/z8CKfgHQfUCgowNo8Enh90d+7SFyMows\
    eft1vFVrefQHo9iCvwkO0NXOwaMDZvZtbL+uI73kaliPowQKnPf/2Q==
    """)

let avifSample = sample(
    """
    AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAOptZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5w\
    aXRtAAAAAAABAAAAImlsb2MAAAAAREAAAQABAAAAAAEOAAEAAAAAAAAAPAAAACNpaW5mAAAAAAABAAAAFWluZmUCAAAAAAEAAGF2MDEA\
    AAAAamlwcnAAAABLaXBjbwAAABNjb2xybmNseAACAAIABoAAAAAMYXYxQ4EADAAAAAAUaXNwZQAAAAAAAABgAAAAQAAAABBwaXhpAAAA\
    AAMICAgAAAAXaXBtYQAAAAAAAAABAAEEgYIDhAAAAERtZGF0EgAKCRgZb/7BAgIGhDItFMAIIIICgLVvPAU0Rd83EzveXWo0SQs/atXu\
    3VajmB4b1Voc+5gKGoGmL1qg
    """)

/// Black ink of some opacity.
let avifInkSample = sample(
    """
    AAAAHGZ0eXBhdmlmAAAAAGF2aWZtaWYxbWlhZgAAAZhtZXRhAAAAAAAAACFoZGxyAAAAAAAAAABwaWN0AAAAAAAAAAAAAAAAAAAAAA5w\
    aXRtAAAAAAABAAAANGlsb2MAAAAAREAAAgACAAAAAAG8AAEAAAAAAAAANgABAAAAAAHyAAEAAAAAAAAAIAAAADhpaW5mAAAAAAACAAAA\
    FWluZmUCAAAAAAEAAGF2MDEAAAAAFWluZmUCAAAAAAIAAGF2MDEAAAAA12lwcnAAAACxaXBjbwAAABNjb2xybmNseAACAAIABoAAAAAM\
    YXYxQ4EAHAAAAAAUaXNwZQAAAAAAAABgAAAAQAAAAA5waXhpAAAAAAEIAAAAOGF1eEMAAAAAdXJuOm1wZWc6bXBlZ0I6Y2ljcDpzeXN0\
    ZW1zOmF1eGlsaWFyeTphbHBoYQAAAAAMYXYxQ4EADAAAAAAUaXNwZQAAAAAAAABgAAAAQAAAABBwaXhpAAAAAAMICAgAAAAeaXBtYQAA\
    AAAAAAACAAEEgYYHiAACBIIDhIUAAAAaaXJlZgAAAAAAAAAOYXV4bAACAAEAAQAAAF5tZGF0EgAKBhgZb/7CoDIqFMAggKC37WeDwLP4\
    9D+CepKU8yWWoupN3Pk4MEDCkLixf+bitgT4BZQ0EgAKCRgZb/7BAgIGhDIRFMAIIIICAMM1JZ3VkiTiWvQ=
    """)

func littleEndian(_ value: Int, _ size: Int) -> [UInt8] {
    (0..<size).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}

/// Another AVIF or HEIC, whose first property of this name has other content.
func replaced(_ file: [UInt8], _ box: String, _ content: [UInt8]) -> [UInt8] {
    var file = file
    guard let at = file.indices.first(where: { file[$0...].starts(with: box.utf8) }) else { return [] }
    file.replaceSubrange(at + box.utf8.count..<at + box.utf8.count + content.count, with: content)
    return file
}

/// The same AVIF with two more properties of its picture: turned by quarters against the clock, and then mirrored at an axis.
func turned(_ file: [UInt8], quarters: UInt8, axis: UInt8? = nil) -> [UInt8] {
    var file = file
    func place(_ name: String) -> Int { file.indices.first { file[$0...].starts(with: name.utf8) } ?? 0 }
    var more: [UInt8] = [0, 0, 0, 9] + Array("irot".utf8) + [quarters]
    var numbers: [UInt8] = [0x85]
    if let axis {
        more += [0, 0, 0, 9] + Array("imir".utf8) + [axis]
        numbers.append(0x86)
    }
    let listed = place("ipma")
    // The last byte of a length, or of where the data begins.
    for (at, count) in [
        (place("ipco") - 1, more.count), (place("iprp") - 1, more.count + numbers.count),
        (place("meta") - 1, more.count + numbers.count), (listed - 1, numbers.count), (listed + 14, numbers.count),
        (place("iloc") + 19, more.count + numbers.count),
    ] {
        let sum = Int(file[at]) + count
        file[at] = UInt8(sum & 255)
        file[at - 1] += UInt8(sum >> 8)
    }
    file.insert(contentsOf: numbers, at: listed + 19)
    file.insert(contentsOf: more, at: listed - 4)
    return file
}

/// A GIF with a grey palette, whose codes are all of one length.
struct GIFForm {
    var left = 0
    var top = 0
    /// The whole picture; that of the frame if nil.
    var screen: (Int, Int)?
    var isInterlaced = false
    var transparent: UInt8?
    var frames = 1

    func made(of grid: Grid) -> [UInt8] {
        var out =
            Array("GIF89a".utf8) + littleEndian(screen?.0 ?? grid.width, 2) + littleEndian(screen?.1 ?? grid.height, 2)
        out += [0xf6, 0, 0] + (0..<128).flatMap { [UInt8](repeating: UInt8($0 * 255 / 127), count: 3) }
        for frame in 0..<frames {
            if let transparent { out += [0x21, 0xf9, 4, 1, 0, 0, transparent, 0] }
            out +=
                [0x2c] + littleEndian(left, 2) + littleEndian(top, 2) + littleEndian(grid.width, 2)
                + littleEndian(grid.height, 2)
            out += [isInterlaced ? 0x40 : 0, 7]
            let passes = isInterlaced ? [(0, 8), (4, 8), (2, 4), (1, 2)] : [(0, 1)]
            let rows = passes.flatMap { Array(stride(from: $0.0, to: grid.height, by: $0.1)) }
            let pixels = rows.flatMap { y in (0..<grid.width).map { Int(grid[$0, y]) * 127 / 255 } }
            var codes: [UInt8] = []
            // Codes of eight bits: the table is emptied before it asks for more.
            for (index, pixel) in pixels.enumerated() {
                if index % 120 == 0 { codes.append(128) }
                codes.append(UInt8(frame == 0 ? pixel : 127 - pixel))
            }
            codes.append(129)
            for start in stride(from: 0, to: codes.count, by: 255) {
                let part = codes[start..<min(start + 255, codes.count)]
                out += [UInt8(part.count)] + part
            }
            out.append(0)
        }
        return out + [0x3b]
    }
}

/// A BMP of 200 dots an inch.
struct BMPForm {
    var bits = 24
    var isTopDown = false
    var isOld = false
    /// 1 or 2: runs; 3: fields with an opacity.
    var packing = 0

    func made(of grid: Grid) -> [UInt8] {
        var rows: [UInt8] = []
        for line in 0..<grid.height {
            let y = isTopDown ? line : grid.height - 1 - line
            let pixels = (0..<grid.width).map { grid[$0, y] }
            var row: [UInt8]
            switch (bits, packing) {
            case (8, 1): row = pixels.flatMap { [1, $0] } + [0, 0]
            case (4, 2): row = pixels.flatMap { [1, $0 & 0xf0] } + [0, 0]
            case (32, 3): row = pixels.flatMap { [0, 0, 0, 255 - $0] }
            case (32, _): row = pixels.flatMap { [$0, $0, $0, 0] }
            case (24, _): row = pixels.flatMap { [$0, $0, $0] }
            case (16, _):
                row = pixels.flatMap { littleEndian(Int($0 >> 3) << 10 | Int($0 >> 3) << 5 | Int($0 >> 3), 2) }
            default: row = packed(pixels, bits: bits)
            }
            if packing == 0 { while row.count % 4 != 0 { row.append(0) } }
            rows += row
        }
        let colors = bits <= 8 ? 1 << bits : 0
        var palette: [UInt8] = []
        for index in 0..<colors {
            palette += [UInt8](repeating: UInt8(index * 255 / (colors - 1)), count: 3)
            if !isOld { palette.append(0) }
        }
        let height = isTopDown ? -grid.height : grid.height
        var head: [UInt8]
        if isOld {
            head =
                littleEndian(12, 4) + littleEndian(grid.width, 2) + littleEndian(height, 2) + littleEndian(1, 2)
                + littleEndian(bits, 2)
        } else {
            head =
                littleEndian(packing == 3 ? 56 : 40, 4) + littleEndian(grid.width, 4) + littleEndian(height, 4)
                + littleEndian(1, 2)
            head +=
                littleEndian(bits, 2) + littleEndian(packing, 4) + littleEndian(0, 4) + littleEndian(7874, 4)
                + littleEndian(7874, 4)
            head += littleEndian(0, 8)
            if packing == 3 { head += [0xff0000, 0xff00, 0xff, 0xff00_0000].flatMap { littleEndian($0, 4) } }
        }
        let start = 14 + head.count + palette.count
        var out = Array("BM".utf8) + littleEndian(start + rows.count, 4)
        out += littleEndian(0, 4) + littleEndian(start, 4)
        out += head
        out += palette
        return out + rows
    }
}

/// A lossless WebP, hardly packed: grey, or black ink of some opacity.
struct WebPForm {
    var isInk = false
    var orientation: Int?
    /// The picture is the first of two frames, at this place of a larger one.
    var place: (left: Int, top: Int, width: Int, height: Int)?

    private struct Bits {
        var bytes: [UInt8] = []
        var count = 0

        mutating func add(_ value: Int, _ size: Int) {
            for bit in 0..<size {
                if count % 8 == 0 { bytes.append(0) }
                bytes[count / 8] |= UInt8(value >> bit & 1) << (count % 8)
                count += 1
            }
        }

        /// A code for one symbol takes no bits.
        mutating func addSingle(_ symbol: Int) {
            add(1, 1)
            add(0, 1)
            add(symbol > 1 ? 1 : 0, 1)
            add(symbol, symbol > 1 ? 8 : 1)
        }

        /// A code of eight bits for each byte.
        mutating func addBytes(more: Int) {
            add(0, 1)
            add(8, 4)
            for length in [0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1] { add(length, 3) }
            add(0, 1)
            for _ in 0..<256 { add(1, 1) }
            for _ in 0..<more { add(0, 1) }
        }

        mutating func addByte(_ value: UInt8) {
            for bit in (0..<8).reversed() { add(Int(value) >> bit & 1, 1) }
        }
    }

    private func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        Array(name.utf8) + littleEndian(data.count, 4) + data + (data.count % 2 == 1 ? [0] : [])
    }

    func made(of grid: Grid) -> [UInt8] {
        var bits = Bits()
        bits.add(0x2f, 8)
        bits.add(grid.width - 1, 14)
        bits.add(grid.height - 1, 14)
        bits.add(isInk ? 1 : 0, 1)
        bits.add(0, 3)
        if !isInk {
            bits.add(1, 1)
            bits.add(2, 2)  // red and blue are what green is
        }
        bits.add(0, 3)
        if isInk { bits.addSingle(0) } else { bits.addBytes(more: 24) }
        bits.addSingle(0)
        bits.addSingle(0)
        if isInk { bits.addBytes(more: 0) } else { bits.addSingle(255) }
        bits.addSingle(0)
        for pixel in grid.pixels { bits.addByte(isInk ? 255 - pixel : pixel) }
        var body = chunk("VP8L", bits.bytes)
        if orientation != nil || place != nil {
            let (width, height) = (place?.width ?? grid.width, place?.height ?? grid.height)
            let flags = (place == nil ? 0 : 2) | (orientation == nil ? 0 : 8) | (isInk ? 16 : 0)
            if let place {
                let frame =
                    littleEndian(place.left / 2, 3) + littleEndian(place.top / 2, 3) + littleEndian(grid.width - 1, 3)
                let moving = chunk("ANMF", frame + littleEndian(grid.height - 1, 3) + [100, 0, 0, 0] + body)
                body = chunk("ANIM", [0, 0, 0, 0, 0, 0]) + moving + moving
            }
            body =
                chunk("VP8X", littleEndian(flags, 4) + littleEndian(width - 1, 3) + littleEndian(height - 1, 3)) + body
            if let orientation { body += chunk("EXIF", exif(orientation: orientation)) }
        }
        return Array("RIFF".utf8) + littleEndian(body.count + 4, 4) + Array("WEBP".utf8) + body
    }
}
