import CPango
import Pages

/// The pictures that were handed in. Each was decoded and packed again by other programs, so what comes here is of our own making.
final class PagePictures {
    private struct Picture {
        let surface: OpaquePointer
        let width: Double
        let height: Double
    }

    private static let most = 50
    private static let mostPixels = 60_000_000
    private var all: [String: Picture] = [:]

    init(_ given: [PageDesign.Picture], _ bytes: ArraySlice<UInt8>) throws(DocumentRefusal) {
        guard given.count <= Self.most,
            given.allSatisfy({
                $0.width > 0 && $0.height > 0 && $0.count > 0 && $0.width < 1 << 16 && $0.height < 1 << 16
            }),
            given.reduce(0, { $0 + $1.width * $1.height }) <= Self.mostPixels
        else {
            throw DocumentRefusal(
                .tooManyPixels, "the pictures have more than \(Self.mostPixels) pixels, or are more than \(Self.most)")
        }
        var rest = bytes
        for picture in given {
            guard picture.count <= rest.count else {
                throw DocumentRefusal(.internal, "a picture is shorter than it is said to be")
            }
            let own = Array(rest.prefix(picture.count))
            rest = rest.dropFirst(picture.count)
            let surface = picture.isJPEG ? Self.jpeg(own, picture) : Self.png(own)
            guard let surface, cairo_surface_status(surface) == CAIRO_STATUS_SUCCESS else {
                throw DocumentRefusal(.malformed, "the picture \(picture.name.prefix(60)) cannot be drawn")
            }
            all[picture.name] = Picture(surface: surface, width: Double(picture.width), height: Double(picture.height))
        }
    }

    deinit { for picture in all.values { cairo_surface_destroy(picture.surface) } }

    /// The PDF has the JPEG as it is. The surface gives it its size alone.
    private static func jpeg(_ bytes: [UInt8], _ picture: PageDesign.Picture) -> OpaquePointer? {
        guard let surface = cairo_image_surface_create(CAIRO_FORMAT_RGB24, Int32(picture.width), Int32(picture.height)),
            let copy = g_memdup2(bytes, gsize(bytes.count))
        else { return nil }
        let free: cairo_destroy_func_t = { g_free($0) }
        let status = cairo_surface_set_mime_data(
            surface, CAIRO_MIME_TYPE_JPEG, copy.assumingMemoryBound(to: UInt8.self), UInt(bytes.count), free, copy)
        return status == CAIRO_STATUS_SUCCESS ? surface : nil
    }

    private final class Reading {
        let bytes: [UInt8]
        var at = 0

        init(_ bytes: [UInt8]) {
            self.bytes = bytes
        }
    }

    private static func png(_ bytes: [UInt8]) -> OpaquePointer? {
        let reading = Reading(bytes)
        return withExtendedLifetime(reading) {
            cairo_image_surface_create_from_png_stream(
                { context, data, count in
                    guard let context, let data else { return CAIRO_STATUS_READ_ERROR }
                    let reading = Unmanaged<Reading>.fromOpaque(context).takeUnretainedValue()
                    guard reading.at + Int(count) <= reading.bytes.count else { return CAIRO_STATUS_READ_ERROR }
                    reading.bytes.withUnsafeBufferPointer { bytes in
                        if let start = bytes.baseAddress { data.update(from: start + reading.at, count: Int(count)) }
                    }
                    reading.at += Int(count)
                    return CAIRO_STATUS_SUCCESS
                }, Unmanaged.passUnretained(reading).toOpaque())
        }
    }

    /// In points: what is said of it, else a pixel is three quarters of a point; never larger than its column and the page.
    func size(_ picture: PagePicture, _ width: Double, _ room: Double) -> (width: Double, height: Double)? {
        guard let own = all[picture.name] else { return nil }
        let ratio = own.height / own.width
        var size: (width: Double, height: Double)
        switch (picture.width?.points(of: width), picture.height?.points(of: room)) {
        case (let wide?, let high?): size = (wide, high)
        case (let wide?, nil): size = (wide, wide * ratio)
        case (nil, let high?): size = (high / ratio, high)
        case (nil, nil): size = (own.width * 0.75, own.height * 0.75)
        }
        let scale = min(1, width / size.width, max(20, room * 0.95) / size.height)
        return (size.width * scale, size.height * scale)
    }

    func piece(_ picture: PagePicture, _ width: Double, _ room: Double, on canvas: PDFCanvas) throws(DocumentRefusal)
        -> Piece
    {
        guard let size = size(picture, width, room), let own = all[picture.name] else {
            throw DocumentRefusal(
                .unsupported, "line \(picture.line): no picture was handed in as \(picture.name.prefix(60))")
        }
        let isRight =
            switch picture.alignment {
            case .right: true
            case .end: picture.direction != .rtl
            case .start, .justify: picture.direction == .rtl
            case .left, .center: false
            }
        let inset = picture.alignment == .center ? (width - size.width) / 2 : isRight ? width - size.width : 0
        return Piece(height: size.height, inset: inset) { x, y in
            cairo_save(canvas.cairo)
            cairo_translate(canvas.cairo, x, y)
            cairo_scale(canvas.cairo, size.width / own.width, size.height / own.height)
            cairo_set_source_surface(canvas.cairo, own.surface, 0, 0)
            cairo_paint(canvas.cairo)
            cairo_restore(canvas.cairo)
        }
    }
}
