import Compression
import Pages

/// A page's picture as a PNG: eight bits of grey, no filters.
enum Preview {
    static func png(_ raster: Raster) throws(DocumentRefusal) -> [UInt8] {
        var rows: [UInt8] = []
        rows.reserveCapacity((raster.width + 1) * raster.height)
        for row in 0..<raster.height {
            rows.append(0)
            let start = raster.pixels.startIndex + row * raster.width
            rows.append(contentsOf: raster.pixels[start..<start + raster.width])
        }
        guard let packed = Zlib.compressed(rows) else {
            throw DocumentRefusal(.internal, "the preview could not be packed")
        }
        return png(raster.width, raster.height, components: 1, packed)
    }

    /// - Parameter packed: rows of eight bits a component, each with its filter before it, compressed
    static func png(_ width: Int, _ height: Int, components: Int, _ packed: [UInt8]) -> [UInt8] {
        let header = bigEndian(width) + bigEndian(height) + [8, components == 3 ? 2 : 0, 0, 0, 0]
        return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + chunk("IHDR", header)
            + chunk("IDAT", packed) + chunk("IEND", [])
    }

    private static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        return bigEndian(data.count) + body + bigEndian(Int(Zlib.checksum(body)))
    }

    private static func bigEndian(_ number: Int) -> [UInt8] {
        stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> $0) }
    }
}
