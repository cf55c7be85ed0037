import Pages

/// Code 128, set B: the widths of bars and gaps of each sign, in modules.
private let code128 = [
    "212222", "222122", "222221", "121223", "121322", "131222", "122213", "122312", "132212", "221213", "221312",
    "231212", "112232", "122132", "122231", "113222", "123122", "123221", "223211", "221132", "221231", "213212",
    "223112", "312131", "311222", "321122", "321221", "312212", "322112", "322211", "212123", "212321", "232121",
    "111323", "131123", "131321", "112313", "132113", "132311", "211313", "231113", "231311", "112133", "112331",
    "132131", "113123", "113321", "133121", "313121", "211331", "231131", "213113", "213311", "213131", "311123",
    "311321", "331121", "312113", "312311", "332111", "314111", "221411", "431111", "111224", "111422", "121124",
    "121421", "141122", "141221", "112214", "112412", "122114", "122411", "142112", "142211", "241211", "221114",
    "413111", "241112", "134111", "111242", "121142", "121241", "114212", "124112", "124211", "411212", "421112",
    "421211", "212141", "214121", "412121", "111143", "111341", "131141", "114113", "114311", "411113", "411311",
    "113141", "114131", "311141", "411131", "211412", "211214", "211232", "2331112",
]

/// The modules of a bar code from left to right: true is a bar.
func bars(_ text: String) -> [Bool] {
    let values = text.utf8.map { Int($0) - 32 }
    let check = values.enumerated().reduce(104) { $0 + ($1.offset + 1) * $1.element } % 103
    return ([104] + values + [check, 106]).flatMap { sign in
        code128[sign].utf8.enumerated().flatMap { index, width in
            [Bool](repeating: index % 2 == 0, count: Int(width) - 48)
        }
    }
}

/// The rows of the QR code for "millrace:split", as qrencode makes it (version 1, level L).
let splitQR = [
    "111111100100101111111", "100000101001001000001", "101110100100001011101", "101110101001001011101",
    "101110100010101011101", "100000101110101000001", "111111101010101111111", "000000000010100000000",
    "111110111101110101010", "101001001011010110001", "011011111101110001110", "000010010101100011110",
    "010110110000011100011", "000000001110001111001", "111111101111101000110", "100000100000110001101",
    "101110101011011100011", "101110101110000111000", "101110101011111000100", "100000101100110111100",
    "111111101000111101010",
]

extension Raster {
    /// With a bar code on it, its upper left corner at a place in pixels.
    func with(bars text: String, x: Int, y: Int, module: Int = 2, height: Int = 60) -> Raster {
        var raster = self
        var pixels = Array(raster.pixels)
        let modules = bars(text)
        // Paper around it, as on a sticker.
        for row in max(0, y - 10)..<min(raster.height, y + height + 10) {
            for column in max(0, x - 20)..<min(raster.width, x + modules.count * module + 20) {
                pixels[row * raster.width + column] = 255
            }
        }
        for row in y..<min(raster.height, y + height) {
            for (index, isBar) in modules.enumerated() where isBar {
                for column in x + index * module..<min(raster.width, x + (index + 1) * module) {
                    pixels[row * raster.width + column] = 0
                }
            }
        }
        raster.pixels = pixels[...]
        return raster
    }

    func with(qr rows: [String], x: Int, y: Int, module: Int = 5) -> Raster {
        var raster = self
        var pixels = Array(raster.pixels)
        for row in 0..<(rows.count + 8) * module {
            for column in 0..<(rows.count + 8) * module {
                let (down, across) = (row / module - 4, column / module - 4)
                let isDark =
                    rows.indices.contains(down) && rows.indices.contains(across)
                    && Array(rows[down].utf8)[across] == UInt8(ascii: "1")
                pixels[(y + row) * raster.width + x + column] = isDark ? 0 : 255
            }
        }
        raster.pixels = pixels[...]
        return raster
    }

    /// As a scanner lays it: a quarter turned, clockwise.
    var quarterTurned: Raster {
        var turned = self
        turned.head.width = height
        turned.head.height = width
        turned.pixels =
            (0..<width).flatMap { row in
                (0..<height).map { pixels[pixels.startIndex + (height - 1 - $0) * width + row] }
            }[...]
        return turned
    }

    static func paper(_ width: Int, _ height: Int, dpi: Double = 200, _ level: (Int, Int) -> UInt8 = { _, _ in 255 })
        throws -> Raster
    {
        let pixels = (0..<height).flatMap { y in (0..<width).map { level($0, y) } }
        return try Raster(
            head: Raster.Head(width: width, height: height, dpi: dpi), pixels: pixels[...], mostPixels: .max)
    }
}

/// A PDF of pictures alone.
func picturePDF(_ rasters: [Raster]) -> [UInt8] {
    let kids = rasters.indices.map { "\(3 + 3 * $0) 0 R" }.joined(separator: " ")
    var objects: [[UInt8]] = [
        Array("<</Type/Catalog/Pages 2 0 R>>".utf8), Array("<</Type/Pages/Kids[\(kids)]/Count \(rasters.count)>>".utf8),
    ]
    for (index, raster) in rasters.enumerated() {
        let at = 3 + 3 * index
        let (width, height) = (
            Double(raster.width) * 72 / raster.head.dpi, Double(raster.height) * 72 / raster.head.dpi
        )
        objects.append(
            Array(
                "<</Type/Page/Parent 2 0 R/MediaBox[0 0 \(width) \(height)]/Contents \(at + 1) 0 R/Resources<</XObject<</I \(at + 2) 0 R>>>>>>"
                    .utf8))
        objects.append(Array(stream("", "q \(width) 0 0 \(height) 0 0 cm /I Do Q").utf8))
        let head =
            "<</Type/XObject/Subtype/Image/Width \(raster.width)/Height \(raster.height)/ColorSpace/DeviceGray"
            + "/BitsPerComponent 8/Length \(raster.pixels.count)>>\nstream\n"
        objects.append(Array(head.utf8) + Array(raster.pixels) + Array("\nendstream".utf8))
    }
    var out = Array("%PDF-1.7\n".utf8)
    var offsets: [Int] = []
    for (index, object) in objects.enumerated() {
        offsets.append(out.count)
        out += Array("\(index + 1) 0 obj\n".utf8) + object + Array("\nendobj\n".utf8)
    }
    let start = out.count
    out += Array("xref\n0 \(objects.count + 1)\n0000000000 65535 f \n".utf8)
    for offset in offsets {
        out += Array((String(repeating: "0", count: 10 - String(offset).count) + "\(offset) 00000 n \n").utf8)
    }
    return out + Array("trailer<</Size \(objects.count + 1)/Root 1 0 R>>\nstartxref\n\(start)\n%%EOF\n".utf8)
}
