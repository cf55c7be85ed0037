import CHEIF
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Decodes the picture of an HEIC file. A separate program, because the library brings video codecs and even encoders.

var sandbox = ChildSandbox()
sandbox.startsThreads = true  // the codec does
sandbox.enter()

/// Frees what it is told to when it goes.
final class Held {
    private let free: () -> Void
    init(_ free: @escaping () -> Void) { self.free = free }
    deinit { free() }
}

func raster(_ request: RasterRequest) throws(DocumentRefusal) -> [UInt8] {
    let file = try File(ChildSandbox.Descriptor.files)
    let header = try PictureHeader.heic(file.bytes)
    let (pixels, overflow) = header.width.multipliedReportingOverflow(by: header.height)
    guard request.kind == .heic, request.page == 1 else { throw DocumentRefusal(.unsupported, "this is no HEIC") }
    guard !overflow, pixels <= 200_000_000 else {
        throw DocumentRefusal(.tooManyPixels, "the picture has too many pixels")
    }
    guard let context = heif_context_alloc() else { throw DocumentRefusal(.memory, "no memory for the picture") }
    let heldContext = Held { heif_context_free(context) }
    defer { withExtendedLifetime(heldContext) {} }
    heif_context_set_maximum_image_size_limit(context, 32_768)
    let read = heif_context_read_from_memory_without_copy(context, file.bytes.memory.baseAddress, file.bytes.count, nil)
    var handle: OpaquePointer?
    guard read.code == heif_error_Ok, heif_context_get_primary_image_handle(context, &handle).code == heif_error_Ok,
        let handle
    else { throw DocumentRefusal(.malformed, "the HEIC can not be read") }
    let heldHandle = Held { heif_image_handle_release(handle) }
    defer { withExtendedLifetime(heldHandle) {} }
    // Checked again, because the decoded picture may be another one than the header's largest.
    let size = Int(heif_image_handle_get_width(handle)).multipliedReportingOverflow(
        by: Int(heif_image_handle_get_height(handle)))
    guard !size.overflow, size.partialValue <= 200_000_000 else {
        throw DocumentRefusal(.tooManyPixels, "the picture has too many pixels")
    }
    var image: OpaquePointer?
    guard
        heif_decode_image(handle, &image, heif_colorspace_RGB, heif_chroma_interleaved_RGB, nil).code == heif_error_Ok,
        var image
    else { throw DocumentRefusal(.malformed, "the HEIC can not be decoded") }
    var heldImage = Held { [image] in heif_image_release(image) }
    defer { withExtendedLifetime(heldImage) {} }
    if request.scale < 1 {
        let width = max(1, Int32(Double(heif_image_get_width(image, heif_channel_interleaved)) * request.scale))
        let height = max(1, Int32(Double(heif_image_get_height(image, heif_channel_interleaved)) * request.scale))
        var smaller: OpaquePointer?
        guard heif_image_scale_image(image, &smaller, width, height, nil).code == heif_error_Ok, let smaller else {
            throw DocumentRefusal(.memory, "no memory to make the picture smaller")
        }
        image = smaller
        heldImage = Held { heif_image_release(smaller) }
    }
    return try packed(image, request)
}

func packed(_ image: OpaquePointer, _ request: RasterRequest) throws(DocumentRefusal) -> [UInt8] {
    let width = Int(heif_image_get_width(image, heif_channel_interleaved))
    let height = Int(heif_image_get_height(image, heif_channel_interleaved))
    var stride: Int32 = 0
    guard let plane = heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride), width > 0, height > 0,
        Int(stride) >= width * 3
    else { throw DocumentRefusal(.malformed, "the HEIC has no picture") }
    guard width * height <= request.mostPixels else {
        throw DocumentRefusal(.tooManyPixels, "the picture is \(width) × \(height)")
    }
    let components = request.keepsColor ? 3 : 1
    let bytes = [UInt8](unsafeUninitializedCapacity: width * height * components) { buffer, count in
        guard let base = buffer.baseAddress else { return }
        for y in 0..<height {
            let row = plane + y * Int(stride)
            if request.keepsColor {
                memcpy(base + y * width * 3, row, width * 3)
                continue
            }
            for x in 0..<width {
                let light = 77 * Int(row[3 * x]) + 150 * Int(row[3 * x + 1]) + 29 * Int(row[3 * x + 2])
                base[y * width + x] = UInt8(truncatingIfNeeded: light >> 8)
            }
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
