import CLeptonica
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Decodes a picture, or a frame of one, into a raster. Its size has been judged by its header before.

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

func decode(_ file: File, _ request: RasterRequest) throws(DocumentRefusal) -> (Picture, PictureHeader) {
    let header: PictureHeader
    switch request.kind {
    case .png: header = try PictureHeader.png(file.bytes)
    case .jpeg: header = try PictureHeader.jpeg(file.bytes)
    case .tiff:
        let frames = try PictureHeader.tiff(file.bytes, most: request.page, isWhole: false)
        guard request.page >= 1, request.page <= frames.count else {
            throw DocumentRefusal(.malformed, "the TIFF has no frame \(request.page)")
        }
        header = frames[request.page - 1]
    case .pdf, .heic: throw DocumentRefusal(.unsupported, "this is no picture that leptonica decodes")
    }
    let (pixels, overflow) = header.width.multipliedReportingOverflow(by: header.height)
    guard !overflow, pixels <= 200_000_000 else {
        throw DocumentRefusal(.tooManyPixels, "the picture has too many pixels")
    }
    let start = file.bytes.memory.bindMemory(to: UInt8.self).baseAddress
    let pix =
        request.kind == .tiff
        ? pixReadMemTiff(start, file.bytes.count, Int32(request.page - 1)) : pixReadMem(start, file.bytes.count)
    return (try Picture(pix), header)
}

func raster(_ request: RasterRequest) throws(DocumentRefusal) -> [UInt8] {
    setMsgSeverity(Int32(L_SEVERITY_NONE))
    var (picture, header) = try decode(try File(ChildSandbox.Descriptor.files), request)
    if pixGetSpp(picture.pix) == 4 { picture = try Picture(pixRemoveAlpha(picture.pix)) }
    let isColor = request.keepsColor && (pixGetDepth(picture.pix) == 32 || pixGetColormap(picture.pix) != nil)
    picture = try Picture(isColor ? pixConvertTo32(picture.pix) : pixConvertTo8(picture.pix, 0))
    if request.scale < 1 {
        picture = try Picture(pixScaleAreaMap(picture.pix, Float(request.scale), Float(request.scale)))
    }
    if header.rotation != 0 { picture = try Picture(pixRotateOrth(picture.pix, Int32(header.rotation / 90))) }
    if [2, 4, 5, 7].contains(header.orientation) { picture = try Picture(pixFlipLR(nil, picture.pix)) }
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
