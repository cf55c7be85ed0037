import ChildProtocol
import ChildSandbox
import FoundationEssentials
import Pages

// Reads pages' pictures, one after the other, with an engine that stays warm. It sees bitmaps that we have made, and no file but its models.

func argument(_ name: String) -> String? {
    CommandLine.arguments.first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
}

let models = argument("models") ?? "/usr/share/tesseract-ocr/5/tessdata"
let languages = argument("languages") ?? "eng"

var sandbox = ChildSandbox()
sandbox.readable = [models]
sandbox.enter()

let reader = Result { () throws(DocumentRefusal) in try PageReader(models: models, languages: languages) }

func answer(_ bytes: [UInt8], with reader: PageReader) throws(DocumentRefusal) {
    let (request, pixels) = try FramePayload.open(bytes, as: RecognitionRequest.self)
    let raster = try Raster(head: request.raster, pixels: pixels, mostPixels: 200_000_000)
    let text = try reader.read(raster, finds: request.finds)
    ChildSandbox.answer(.result, try FramePayload.make(text))
}

while let bytes = ChildSandbox.request(longest: 210_000_000) {
    do throws(DocumentRefusal) {
        try answer(bytes, with: try reader.get())
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
