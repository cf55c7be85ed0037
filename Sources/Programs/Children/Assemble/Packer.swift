import CJPEG
import Compression
import Glibc
import Pages

/// Packs the pictures of pages.
enum Packer {
    static func pack(
        _ request: PackingRequest, _ pixels: ArraySlice<UInt8>
    ) throws(DocumentRefusal) -> (PackedPicture, [UInt8]) {
        var raster = try Raster(head: request.raster, pixels: pixels, mostPixels: 1 << 30)
        if let form = request.form { return try pack(raster, as: form) }
        if raster.head.components == 3, PicturePacker.isGrey(raster.pixels) {
            raster.pixels = PicturePacker.grey(raster.pixels)[...]
            raster.head.components = 1
        }
        if request.cleans {
            var cleaner = PaperCleaner(raster)
            cleaner.clean()
            raster.pixels = cleaner.pixels[...]
            let grey = cleaner.pixels
            if raster.head.components == 1, PicturePacker.isBlackAndWhite(grey, dpi: raster.head.dpi) {
                let rows = PicturePacker.bits(grey, width: raster.width, height: raster.height)
                let bytes = FaxEncoder.packed(rows, width: raster.width, height: raster.height)
                return (PackedPicture(.fax, raster.head, components: 1, bits: 1, count: bytes.count), bytes)
            }
        }
        let components = raster.head.components
        let jpeg = jpeg(raster.pixels, raster.width, raster.height, components, quality: request.isSmall ? 75 : 90)
        let flat = try flate(raster.pixels, stride: raster.width * components, step: components)
        // Drawn lines and letters are smaller without loss, photographs are not.
        if let jpeg, jpeg.count * (request.isSmall ? 1 : 2) < flat.count {
            return (PackedPicture(.jpeg, raster.head, components: components, bits: 8, count: jpeg.count), jpeg)
        }
        return (PackedPicture(.flate, raster.head, components: components, bits: 8, count: flat.count), flat)
    }

    private static func pack(
        _ raster: Raster, as form: PackedPicture.Form
    ) throws(DocumentRefusal) -> (PackedPicture, [UInt8]) {
        let components = raster.head.components
        let bytes: [UInt8]
        switch form {
        case .jpeg:
            guard let jpeg = jpeg(raster.pixels, raster.width, raster.height, components, quality: 90) else {
                throw DocumentRefusal(.tooLarge, "a JPEG cannot be \(raster.width) × \(raster.height)")
            }
            bytes = jpeg
        case .flate: bytes = try flate(raster.pixels, stride: raster.width * components, step: components)
        case .fax: throw DocumentRefusal(.unsupported, "a picture is packed as a fax only when it is cleaned")
        }
        return (PackedPicture(form, raster.head, components: components, bits: 8, count: bytes.count), bytes)
    }

    /// As PNG packs rows.
    static func flate(
        _ bytes: some RandomAccessCollection<UInt8>, stride: Int, step: Int
    ) throws(DocumentRefusal) -> [UInt8] {
        let rows = PicturePacker.predicted(bytes, stride: stride, step: step)
        guard let packed = Zlib.compressed(rows, level: 7) else {
            throw DocumentRefusal(.memory, "no memory to pack a picture")
        }
        return packed
    }

    /// nil: a JPEG cannot be so large.
    static func jpeg(
        _ pixels: some RandomAccessCollection<UInt8>, _ width: Int, _ height: Int, _ components: Int, quality: Int32
    ) -> [UInt8]? {
        guard width > 0, height > 0, width <= 65_500, height <= 65_500, pixels.count == width * height * components
        else {
            return nil
        }
        var (bytes, count) = (UnsafeMutablePointer<UInt8>?.none, 0)
        let isPacked = Array(pixels).withUnsafeBufferPointer {
            guard let start = $0.baseAddress else { return false }
            return millrace_jpeg_pack(
                start, UInt32(width), UInt32(height), Int32(components), quality, &bytes, &count)
        }
        defer { free(bytes) }
        guard isPacked, let bytes else { return nil }
        return Array(UnsafeBufferPointer(start: bytes, count: count))
    }
}
