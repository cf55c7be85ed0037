import CColors
import CLeptonica
import CPictures
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Decodes a picture, or a frame of one, into a raster. Its size has been judged by its header before. leptonica decodes PNG and JPEG; it
// turns what it reads from a TIFF by itself, and takes a PNG with a transparent colour for empty, so other libraries read those. GIF and BMP
// are unpacked here, with every bound checked.

ChildSandbox().enter()

final class Picture {
    let pix: UnsafeMutablePointer<Pix>

    init(_ pix: UnsafeMutablePointer<Pix>?) throws(DocumentRefusal) {
        guard let pix else { throw DocumentRefusal(.malformed, "the picture cannot be decoded") }
        self.pix = pix
    }

    deinit {
        var handle: UnsafeMutablePointer<Pix>? = pix
        pixDestroy(&handle)
    }
}

extension Picture {
    private static func pix(of pixels: millrace_pixels) throws(DocumentRefusal) -> UnsafeMutablePointer<Pix> {
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
        return pix
    }
}

extension Picture {
    convenience init(_ canvas: Canvas) throws(DocumentRefusal) {
        var bytes = canvas.bytes
        let result = bytes.withUnsafeMutableBufferPointer { buffer in
            Result { () throws(DocumentRefusal) in
                var pixels = millrace_pixels()
                (pixels.width, pixels.height) = (UInt32(canvas.width), UInt32(canvas.height))
                (pixels.components, pixels.bytes) = (Int32(canvas.components), buffer.baseAddress)
                return try Self.pix(of: pixels)
            }
        }
        try self.init(try result.get())
    }

    /// From rows of one or three bytes a pixel.
    convenience init(_ pixels: millrace_pixels) throws(DocumentRefusal) { try self.init(try Self.pix(of: pixels)) }
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
    case .gif: return try PictureHeader.gif(file.bytes)
    case .bmp: return try PictureHeader.bmp(file.bytes)
    case .webp: return try PictureHeader.webp(file.bytes)
    case .jp2: return try PictureHeader.jpeg2000(file.bytes)
    case .pdf, .heic, .avif: throw DocumentRefusal(.unsupported, "pictures of this kind are not decoded here")
    }
}

/// What openjpeg may hold of a picture: four bytes a sample.
let mostSamples = 120_000_000

/// The picture as it is stored: not turned, not mirrored. It may be smaller already.
func decode(_ file: File, _ header: PictureHeader, _ request: RasterRequest) throws(DocumentRefusal) -> Picture {
    let (pixels, overflow) = header.width.multipliedReportingOverflow(by: header.height)
    guard !overflow, pixels > 0, pixels <= 200_000_000, let start = file.bytes.memory.baseAddress else {
        throw DocumentRefusal(.tooManyPixels, "the picture has too many pixels")
    }
    switch request.kind {
    case .gif: return try Picture(try GIFDecoder(file.bytes).canvas(keepsColor: request.keepsColor))
    case .bmp: return try Picture(try BitmapDecoder(file.bytes).canvas(keepsColor: request.keepsColor))
    default: break
    }
    guard [.tiff, .webp, .jp2].contains(request.kind) || header.hasColorKey else {
        if let inks = inks(file, header, request) { return inks }
        let bytes = start.assumingMemoryBound(to: UInt8.self)
        // What libjpeg only warns of, such as bytes too many before a segment, keeps nobody from seeing the picture.
        return try Picture(
            request.kind == .jpeg
                ? pixReadMemJpeg(bytes, file.bytes.count, 0, 1, nil, Int32(L_JPEG_CONTINUE_WITH_BAD_DATA))
                : pixReadMem(bytes, file.bytes.count))
    }
    var read = millrace_pixels()
    let (width, height) = (UInt32(header.width), UInt32(header.height))
    let outcome: Int32
    switch request.kind {
    case .tiff:
        outcome = millrace_tiff_read(
            start, file.bytes.count, UInt64(header.directory), width, height, request.keepsColor, &read)
    case .webp: return try webp(file, header, request)
    case .jp2:
        outcome = millrace_jp2_read(
            start, file.bytes.count, width, height, request.scale, UInt64(mostSamples), request.keepsColor, &read)
    default: outcome = millrace_png_read(start, file.bytes.count, width, height, request.keepsColor, &read)
    }
    defer { millrace_pixels_free(&read) }
    try judge(outcome)
    return try Picture(read)
}

/// A JPEG of four inks in the colours of its profile. nil: it is none, or says nothing of its colours; then inks are mixed by rule of thumb.
func inks(_ file: File, _ header: PictureHeader, _ request: RasterRequest) -> Picture? {
    guard request.kind == .jpeg, request.keepsColor, header.components == 4,
        case .plain(let profile) = EmbeddedProfile.find(in: file.bytes, .jpeg),
        let start = file.bytes.memory.baseAddress
    else { return nil }
    let count = header.width * header.height
    guard count <= mostSamples / 4 else { return nil }
    var isInverted = false
    var (inks, colors) = ([UInt8](repeating: 0, count: count * 4), [UInt8](repeating: 255, count: count * 3))
    guard
        millrace_inks_of_jpeg(
            start, file.bytes.count, UInt32(header.width), UInt32(header.height), &inks, &isInverted),
        millrace_inks_to_srgb(profile, profile.count, inks, isInverted, &colors, count)
    else { return nil }
    return colors.withUnsafeMutableBufferPointer { buffer in
        var pixels = millrace_pixels()
        (pixels.width, pixels.height) = (UInt32(header.width), UInt32(header.height))
        (pixels.components, pixels.bytes) = (3, buffer.baseAddress)
        return try? Picture(pixels)
    }
}

/// From the colours of the file's profile to those of sRGB. One that is broken, or of other colours, says nothing.
func convert(_ bytes: inout [UInt8], _ file: File, _ header: PictureHeader, _ kind: FileFormat) {
    guard header.components != 4 || kind != .jpeg else { return }
    let pixels = bytes.count / 3
    switch EmbeddedProfile.find(in: file.bytes, kind, directory: header.directory) {
    case .plain(let profile): _ = millrace_colors_to_srgb(profile, profile.count, &bytes, pixels)
    case .packed(let packed):
        var count = 0
        guard let profile = millrace_profile_unpack(packed, packed.count, &count) else { return }
        defer { free(profile) }
        _ = millrace_colors_to_srgb(profile, count, &bytes, pixels)
    case nil: return
    }
}

func judge(_ outcome: Int32) throws(DocumentRefusal) {
    switch UInt32(outcome) {
    case MILLRACE_DECODED.rawValue: return
    case MILLRACE_NO_MEMORY.rawValue: throw DocumentRefusal(.memory, "no memory for the picture")
    case MILLRACE_NOT_SUPPORTED.rawValue:
        throw DocumentRefusal(.unsupported, "the picture has samples or a compression that cannot be decoded")
    default: throw DocumentRefusal(.malformed, "the picture cannot be decoded")
    }
}

/// Made smaller while it is decoded, if its first frame is the whole picture.
func webp(_ file: File, _ header: PictureHeader, _ request: RasterRequest) throws(DocumentRefusal) -> Picture {
    guard let data = file.bytes.slice(header.content), let start = data.baseAddress else {
        throw DocumentRefusal(.malformed, "the WebP has no picture")
    }
    let (width, height) = (header.frame?.width ?? header.width, header.frame?.height ?? header.height)
    let scale = header.frame == nil ? min(1, request.scale) : 1
    var read = millrace_pixels()
    (read.width, read.height) = (
        UInt32(max(1, (Double(width) * scale).rounded())), UInt32(max(1, (Double(height) * scale).rounded()))
    )
    let outcome = millrace_webp_read(start, data.count, UInt32(width), UInt32(height), request.keepsColor, &read)
    defer { millrace_pixels_free(&read) }
    try judge(outcome)
    guard let frame = header.frame else { return try Picture(read) }
    var canvas = Canvas(header.width, header.height, keepsColor: request.keepsColor)
    guard let bytes = read.bytes else { throw DocumentRefusal(.malformed, "the WebP has no picture") }
    let row = frame.width * canvas.components
    for y in 0..<frame.height {
        canvas.replace(
            UnsafeBufferPointer(start: bytes + y * row, count: row), left: frame.left, row: frame.top + y)
    }
    return try Picture(canvas)
}

func raster(_ request: RasterRequest) throws(DocumentRefusal) -> [UInt8] {
    setMsgSeverity(Int32(L_SEVERITY_NONE))
    let file = try File(ChildSandbox.Descriptor.files)
    let header = try header(file, request)
    var picture = try decode(file, header, request)
    if pixGetSpp(picture.pix) == 4 { picture = try Picture(pixRemoveAlpha(picture.pix)) }
    let isColor = request.keepsColor && (pixGetDepth(picture.pix) == 32 || pixGetColormap(picture.pix) != nil)
    picture = try Picture(isColor ? pixConvertTo32(picture.pix) : pixConvertTo8(picture.pix, 0))
    // Some decoders make it smaller themselves.
    let scale = request.scale * Double(header.width) / Double(pixGetWidth(picture.pix))
    if request.scale < 1, scale < 0.999 {
        picture = try Picture(pixScaleAreaMap(picture.pix, Float(scale), Float(scale)))
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
    var bytes = [UInt8](unsafeUninitializedCapacity: width * height * components) { buffer, count in
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
    if isColor { convert(&bytes, file, header, request.kind) }
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
