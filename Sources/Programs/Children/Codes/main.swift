import CZXing
import ChildProtocol
import ChildSandbox
import Pages

// Reads bar codes and their like in a picture that another program has drawn. It opens no file.

ChildSandbox().enter()

final class FoundCodes {
    var codes: [PageCode] = []
    var isTooMuch = false
}

func answer(_ bytes: [UInt8]) throws(DocumentRefusal) {
    let (head, body) = try FramePayload.open(bytes, as: Raster.Head.self)
    let raster = try Raster(head: head, pixels: body, mostPixels: 200_000_000)
    guard head.components == 1 else { throw DocumentRefusal(.internal, "codes are read in grey pictures") }
    let found = FoundCodes()
    let count = raster.pixels.withUnsafeBufferPointer { pixels -> Int32 in
        guard let start = pixels.baseAddress else { return -1 }
        return millrace_codes_read(
            start, Int32(raster.width), Int32(raster.height), Int32(PageCode.most),
            { context, code in
                guard let context else { return }
                let (found, code) = (Unmanaged<FoundCodes>.fromOpaque(context).takeUnretainedValue(), code.pointee)
                guard code.count <= PageCode.longest else {
                    found.isTooMuch = true
                    return
                }
                let text = String(
                    decoding: UnsafeRawBufferPointer(start: code.text, count: code.count), as: UTF8.self)
                let x = [code.x.0, code.x.1, code.x.2, code.x.3].map(Double.init)
                let y = [code.y.0, code.y.1, code.y.2, code.y.3].map(Double.init)
                let box = Box(x.min() ?? 0, y.min() ?? 0, x.max() ?? 0, y.max() ?? 0)
                found.codes.append(PageCode(zxing: String(cString: code.symbology), text: text, box: box))
            }, Unmanaged.passUnretained(found).toOpaque())
    }
    guard count >= 0 else { throw DocumentRefusal(.engine, "the picture could not be looked at for codes") }
    guard !found.isTooMuch else { throw DocumentRefusal(.quota, "a code has too much text") }
    ChildSandbox.answer(.result, try FramePayload.make(found.codes))
}

while let bytes = ChildSandbox.request(longest: 210_000_000) {
    do throws(DocumentRefusal) {
        try answer(bytes)
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
