import CLeptonica
import CPictures
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Decodes a picture, or a frame of one, into a raster. Its size has been judged by its header before. leptonica decodes PNG and JPEG; it
// turns what it reads from a TIFF by itself, and takes a PNG with a transparent colour for empty, so other libraries read those.

ChildSandbox().enter()

final class Picture {
    let pix: UnsafeMutablePointer<Pix>

    init(_ pix: UnsafeMutablePointer<Pix>?) throws(DocumentRefusal) {
        guard let pix else { throw DocumentRefusal(.malformed, "the picture can not be decoded") }
        self.pix = pix
    }

    deinit {
        var handle: UnsafeMutablePointer<Pix>? = pix
        pixDestroy(&handle)
    }
}

extension Picture {
    /// From rows of one or three bytes a pixel.
    convenience init(_ pixels: millrace_pixels) throws(DocumentRefusal) {
        let (width, height, isGrey) = (Int(pixels.width), Int(pixels.height), pixels.components == 1)
        guard let pix = pixCreateNoInit(Int32(width), Int32(height), isGrey ? 8 : 32), let data = pixGetData(pix),
            let bytes = pixels.bytes
        else { throw DocumentRefusal(.memory, "no memory for the picture") }
        // leptonica keeps its pixels in words, the first one uppermost.
        let row = Int(pixGetWpl(pix))
        for y in 0..<height {
            if isGrey {
                memcpy(data + y * row, bytes + y * width, width)
            } else {
                for x in 0..<width {
                    let pixel = bytes + (y * width + x) * 3
                    data[y * row + x] = UInt32(pixel[0]) << 24 | UInt32(pixel[1]) << 16 | UInt32(pixel[2]) << 8
                }
            }
        }
        if isGrey { pixEndianByteSwap(pix) }
        try self.init(pix)
    }
}

func header(_ file: File, _ request: RasterRequest) throws(DocumentRefusal) -> PictureHeader {
    switch request.kind {
    case .png: return try PictureHeader.png(file.bytes)
    case .jpeg: return try PictureHeader.jpeg(file.bytes)
    case .tiff:
        let frames = try PictureHeader.tiff(file.bytes, most: request.page, isWhole: false)
        guard request.page >= 1, request.page <= frames.count else {
            throw DocumentRefusal(.malformed, "the TIFF has no frame \(request.page)")
        }
        return frames[request.page - 1]
    case .pdf, .heic: throw DocumentRefusal(.unsupported, "this is no picture that is decoded here")
    }
}

/// The picture as it is stored: not turned, not mirrored.
func decode(_ file: File, _ header: PictureHeader, _ request: RasterRequest) throws(DocumentRefusal) -> Picture {
    let (pixels, overflow) = header.width.multipliedReportingOverflow(by: header.height)
    guard !overflow, pixels > 0, pixels <= 200_000_000, let start = file.bytes.memory.baseAddress else {
        throw DocumentRefusal(.tooManyPixels, "the picture has too many pixels")
    }
    guard request.kind == .tiff || header.hasColorKey else {
        let bytes = start.assumingMemoryBound(to: UInt8.self)
        // What libjpeg only warns of, such as bytes too many before a segment, keeps nobody from seeing the picture.
        return try Picture(
            request.kind == .jpeg
                ? pixReadMemJpeg(bytes, file.bytes.count, 0, 1, nil, Int32(L_JPEG_CONTINUE_WITH_BAD_DATA))
                : pixReadMem(bytes, file.bytes.count))
    }
    var read = millrace_pixels()
    let (width, height) = (UInt32(header.width), UInt32(header.height))
    let outcome =
        request.kind == .tiff
        ? millrace_tiff_read(
            start, file.bytes.count, UInt64(header.directory), width, height, request.keepsColor, &read)
        : millrace_png_read(start, file.bytes.count, width, height, request.keepsColor, &read)
    defer { millrace_pixels_free(&read) }
    switch UInt32(outcome) {
    case MILLRACE_DECODED.rawValue: return try Picture(read)
    case MILLRACE_NO_MEMORY.rawValue: throw DocumentRefusal(.memory, "no memory for the picture")
    case MILLRACE_NOT_SUPPORTED.rawValue:
        throw DocumentRefusal(.unsupported, "the TIFF has samples or a compression that can not be decoded")
    default: throw DocumentRefusal(.malformed, "the picture can not be decoded")
    }
}

func raster(_ request: RasterRequest) throws(DocumentRefusal) -> [UInt8] {
    setMsgSeverity(Int32(L_SEVERITY_NONE))
    let file = try File(ChildSandbox.Descriptor.files)
    let header = try header(file, request)
    var picture = try decode(file, header, request)
    if pixGetSpp(picture.pix) == 4 { picture = try Picture(pixRemoveAlpha(picture.pix)) }
    let isColor = request.keepsColor && (pixGetDepth(picture.pix) == 32 || pixGetColormap(picture.pix) != nil)
    picture = try Picture(isColor ? pixConvertTo32(picture.pix) : pixConvertTo8(picture.pix, 0))
    if request.scale < 1 {
        picture = try Picture(pixScaleAreaMap(picture.pix, Float(request.scale), Float(request.scale)))
    }
    if header.rotation != 0 { picture = try Picture(pixRotateOrth(picture.pix, Int32(header.rotation / 90))) }
    if header.isMirrored { picture = try Picture(pixFlipLR(nil, picture.pix)) }
    let (width, height) = (Int(pixGetWidth(picture.pix)), Int(pixGetHeight(picture.pix)))
    guard width * height <= request.mostPixels else {
        throw DocumentRefusal(.tooManyPixels, "the picture is \(width) × \(height)")
    }
    let components = isColor ? 3 : 1
    guard let data = pixGetData(picture.pix) else { throw DocumentRefusal(.malformed, "the picture is empty") }
    let row = Int(pixGetWpl(picture.pix))
    let bytes = [UInt8](unsafeUninitializedCapacity: width * height * components) { buffer, count in
        guard let base = buffer.baseAddress else { return }
        // leptonica keeps its pixels in words, the first one uppermost.
        if isColor {
            for y in 0..<height {
                for x in 0..<width {
                    let (word, at) = (data[y * row + x], (y * width + x) * 3)
                    base[at] = UInt8(truncatingIfNeeded: word >> 24)
                    base[at + 1] = UInt8(truncatingIfNeeded: word >> 16)
                    base[at + 2] = UInt8(truncatingIfNeeded: word >> 8)
                }
            }
        } else {
            pixEndianByteSwap(picture.pix)
            for y in 0..<height { memcpy(base + y * width, data + y * row, width) }
        }
        count = width * height * components
    }
    return try FramePayload.make(
        Raster.Head(width: width, height: height, dpi: request.dpi, components: components), bytes)
}

while let bytes = ChildSandbox.request(longest: 1 << 16) {
    do throws(DocumentRefusal) {
        ChildSandbox.answer(.result, try raster(try FramePayload.open(bytes, as: RasterRequest.self).head))
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
