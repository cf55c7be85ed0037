import CColors
import CHEIF
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Decodes the picture of an HEIC or AVIF file. A separate program, because the library brings video codecs and even encoders.

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
    let header = try PictureHeader.heif(file.bytes)
    let (pixels, overflow) = header.width.multipliedReportingOverflow(by: header.height)
    guard request.kind == .heic || request.kind == .avif, request.page == 1 else {
        throw DocumentRefusal(.unsupported, "this is neither HEIC nor AVIF")
    }
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
    else { throw DocumentRefusal(.malformed, "the picture cannot be read") }
    let heldHandle = Held { heif_image_handle_release(handle) }
    defer { withExtendedLifetime(heldHandle) {} }
    // Checked again, because the decoded picture may be another one than the header's largest.
    let size = Int(heif_image_handle_get_width(handle)).multipliedReportingOverflow(
        by: Int(heif_image_handle_get_height(handle)))
    guard !size.overflow, size.partialValue <= 200_000_000 else {
        throw DocumentRefusal(.tooManyPixels, "the picture has too many pixels")
    }
    let hasAlpha = heif_image_handle_has_alpha_channel(handle) != 0
    let form = hasAlpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB
    var image: OpaquePointer?
    guard heif_decode_image(handle, &image, heif_colorspace_RGB, form, nil).code == heif_error_Ok, var image
    else { throw DocumentRefusal(.malformed, "the picture cannot be decoded") }
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
    let profile = profile(of: handle)
    let isMultiplied = heif_image_handle_is_premultiplied_alpha(handle) != 0
    return try packed(image, request, hasAlpha ? (isMultiplied ? .multiplied : .apart) : .none, profile)
}

/// The ICC profile in whose colours the picture is.
func profile(of handle: OpaquePointer) -> [UInt8] {
    let count = heif_image_handle_get_raw_color_profile_size(handle)
    guard (128...16 << 20).contains(count) else { return [] }
    var profile = [UInt8](repeating: 0, count: count)
    return heif_image_handle_get_raw_color_profile(handle, &profile).code == heif_error_Ok ? profile : []
}

/// Where a picture has its opacity: nowhere, beside its colours, or multiplied into them, too.
enum Opacity {
    case none, apart, multiplied
}

func packed(
    _ image: OpaquePointer, _ request: RasterRequest, _ opacity: Opacity, _ profile: [UInt8]
) throws(DocumentRefusal) -> [UInt8] {
    let width = Int(heif_image_get_width(image, heif_channel_interleaved))
    let height = Int(heif_image_get_height(image, heif_channel_interleaved))
    var stride: Int32 = 0
    guard let plane = heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride), width > 0, height > 0,
        Int(stride) >= width * (opacity == .none ? 3 : 4)
    else { throw DocumentRefusal(.malformed, "the file has no picture") }
    guard width * height <= request.mostPixels else {
        throw DocumentRefusal(.tooManyPixels, "the picture is \(width) × \(height)")
    }
    let components = request.keepsColor ? 3 : 1
    var bytes = [UInt8](unsafeUninitializedCapacity: width * height * components) { buffer, count in
        guard let base = buffer.baseAddress else { return }
        for y in 0..<height {
            let row = plane + y * Int(stride)
            if request.keepsColor, opacity == .none {
                memcpy(base + y * width * 3, row, width * 3)
                continue
            }
            for x in 0..<width {
                let pixel = row + x * (opacity == .none ? 3 : 4)
                // What is transparent is white.
                func seen(_ index: Int) -> Int {
                    let value = Int(pixel[index])
                    return switch opacity {
                    case .none: value
                    case .apart: (value * Int(pixel[3]) + 255 * (255 - Int(pixel[3]))) / 255
                    case .multiplied: min(255, value + 255 - Int(pixel[3]))
                    }
                }
                let (red, green, blue) = (seen(0), seen(1), seen(2))
                if request.keepsColor {
                    let at = base + (y * width + x) * 3
                    at[0] = UInt8(truncatingIfNeeded: red)
                    at[1] = UInt8(truncatingIfNeeded: green)
                    at[2] = UInt8(truncatingIfNeeded: blue)
                } else {
                    base[y * width + x] = UInt8(truncatingIfNeeded: (77 * red + 150 * green + 29 * blue) >> 8)
                }
            }
        }
        count = width * height * components
    }
    if request.keepsColor, !profile.isEmpty {
        _ = millrace_colors_to_srgb(profile, profile.count, &bytes, width * height)
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
