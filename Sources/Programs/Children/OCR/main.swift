import CLinux
import ChildProtocol
import ChildSandbox
import FoundationEssentials
import Glibc
import Pages

// Reads pages' pictures, one after the other, with an engine that stays warm. It sees bitmaps that we have made, and no file but its models.

func argument(_ name: String) -> String? {
    CommandLine.arguments.first { $0.hasPrefix("\(name)=") }.map { String($0.dropFirst(name.utf8.count + 1)) }
}

let models = argument("models") ?? "/usr/share/tesseract-ocr/5/tessdata"
let languages = argument("languages") ?? "eng"

// Pictures go back to the system at once when they are freed; the heap keeps what is smaller.
_ = mallopt(M_MMAP_THRESHOLD, 1 << 20)
var sandbox = ChildSandbox()
sandbox.readable = [models]
sandbox.enter()

let reader = Result { () throws(DocumentRefusal) in try TesseractReader(models: models, languages: languages) }

/// The next page. The bytes that it came in are gone when this returns: a large page is kept once, as its picture.
func next() -> Result<ScannedPage, DocumentRefusal>? {
    ChildSandbox.request(longest: 210_000_000).map { bytes in
        Result { () throws(DocumentRefusal) in
            let (request, pixels) = try FramePayload.open(bytes, as: RecognitionRequest.self)
            let raster = try Raster(head: request.raster, pixels: pixels, mostPixels: 200_000_000)
            guard let picture = Picture(raster) else {
                throw DocumentRefusal(.memory, "no memory for the page's picture")
            }
            let (width, height) = (raster.width, raster.height)
            return ScannedPage(
                picture, dpi: raster.head.dpi,
                noise: Gate.noise(raster.pixels, width: width, height: height),
                isSpeckled: Gate.isSpeckled(raster.pixels, width: width, height: height), looks: request.finds)
        }
    }
}

func answer(_ page: ScannedPage, with reader: TesseractReader) throws(DocumentRefusal) {
    ChildSandbox.answer(.result, try FramePayload.make(try reader.read(page)))
}

while let page = next() {
    do throws(DocumentRefusal) {
        try answer(try page.get(), with: try reader.get())
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
