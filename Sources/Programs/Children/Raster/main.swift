// SPDX-License-Identifier: GPL-3.0-or-later (it links poppler; see LICENSE.md beside this file)
import CPoppler
import ChildProtocol
import ChildSandbox
import Glibc
import Pages

// Draws a page of a PDF, or reports its own text. Fonts that the file does not contain are read from the system.

var sandbox = ChildSandbox()
sandbox.readable = [
    "/usr/share/fonts", "/usr/local/share/fonts", "/usr/share/poppler", "/usr/share/fontconfig",
    "/usr/share/ghostscript",
    "/etc/fonts", "/var/cache/fontconfig",
]
/// Another folder of poppler-data than poppler's own.
let data = CommandLine.arguments.first { $0.hasPrefix("data=") }.map { String($0.dropFirst(5)) }
if let data { sandbox.readable.append(data) }
millrace_document_prepare(data)
sandbox.enter()

/// Which characters a text in these collections means, and how they look, is in tables that are a package of their own. Without them the
/// text is lost, and nothing on the page shows that.
func refuseWithoutTables(_ page: Int) throws(DocumentRefusal) {
    let name = withUnsafeBytes(of: millrace_document_complaints().pointee.collection) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    let known = ["Adobe-CNS1", "Adobe-GB1", "Adobe-Japan1", "Adobe-Japan2", "Adobe-Korea1", "Adobe-KR"]
    guard known.contains(name), access("\(data ?? "/usr/share/poppler")/cMap/\(name)", R_OK) != 0 else { return }
    throw DocumentRefusal(
        .engine, "page \(page) needs the tables of the characters of \(name): install the package poppler-data")
}

func inspect(_ quotas: Quotas, _ password: String?) throws(DocumentRefusal) -> Inspection {
    let document = try open(password)
    var inspection = Inspection(.pdf)
    let count = Int(millrace_document_pages(document))
    guard count > 0 else { throw DocumentRefusal(.malformed, "the PDF has no pages") }
    guard count <= quotas.pages else {
        throw DocumentRefusal(.tooManyPages, "the PDF has more than \(quotas.pages) pages")
    }
    for index in 0..<count {
        var about = millrace_page()
        guard millrace_document_page(document, Int32(index), &about) else {
            throw DocumentRefusal(.malformed, "the PDF's page \(index + 1) can not be found")
        }
        let isTurned = about.rotation % 180 != 0
        var page = Inspection.Page(
            width: isTurned ? about.height : about.width, height: isTurned ? about.width : about.height)
        (page.left, page.bottom, page.rotation) = (about.left, about.bottom, Int(about.rotation))
        inspection.pages.append(page)
    }
    return inspection
}

func open(_ password: String?) throws(DocumentRefusal) -> millrace_document_ref {
    let file = try File(ChildSandbox.Descriptor.files)
    var isLocked = false
    guard let start = file.bytes.memory.baseAddress else { throw DocumentRefusal(.empty, "the file is empty") }
    guard let document = millrace_document_open(start, file.bytes.count, password, &isLocked) else {
        throw isLocked
            ? DocumentRefusal(password == nil ? .encrypted : .wrongPassword, "the PDF needs another password")
            : DocumentRefusal(.malformed, "the PDF can not be opened for drawing")
    }
    return document
}

func draw(_ request: RasterRequest) throws(DocumentRefusal) {
    let document = try open(request.password)
    guard request.page >= 1, request.page <= millrace_document_pages(document) else {
        throw DocumentRefusal(.malformed, "the PDF has no page \(request.page) to draw")
    }
    var picture = millrace_picture()
    guard
        millrace_document_draw(document, Int32(request.page - 1), request.dpi, request.keepsColor, &picture),
        let pixels = picture.pixels
    else { throw DocumentRefusal(.malformed, "page \(request.page) can not be drawn") }
    defer { millrace_picture_free(&picture) }
    try refuseWithoutTables(request.page)
    let components = Int(picture.components)
    let (width, height, stride) = (Int(picture.width), Int(picture.height), Int(picture.stride))
    guard width * height <= request.mostPixels else {
        throw DocumentRefusal(.tooManyPixels, "page \(request.page) is \(width) × \(height) when drawn")
    }
    let all = [UInt8](unsafeUninitializedCapacity: width * height * components) { buffer, count in
        for row in 0..<height {
            guard let base = buffer.baseAddress else { return }
            (base + row * width * components).initialize(from: pixels + row * stride, count: width * components)
        }
        count = width * height * components
    }
    var head = Raster.Head(width: width, height: height, dpi: request.dpi, components: components)
    head.errors = Int(millrace_document_complaints().pointee.errors)
    ChildSandbox.answer(.result, try FramePayload.make(head, all))
}

final class Taken {
    var words: [Word] = []
    var text = ""
    var isCut = false
}

func read(_ document: millrace_document_ref, page: Int) throws(DocumentRefusal) -> PageText? {
    let taken = Taken()
    let count = millrace_document_words(
        document, Int32(page - 1), Int32(PageText.mostWords + 1),
        { context, word in
            guard let context else { return }
            let (taken, word) = (Unmanaged<Taken>.fromOpaque(context).takeUnretainedValue(), word.pointee)
            let box = Box(
                min(word.left, word.right), min(word.top, word.bottom), max(word.left, word.right),
                max(word.top, word.bottom))
            taken.isCut = taken.isCut || word.is_cut
            taken.words.append(Word(String(cString: word.text) + (word.is_cut ? "\u{FFFD}" : ""), box))
        }, Unmanaged.passUnretained(taken).toOpaque())
    try refuseWithoutTables(page)
    guard count <= PageText.mostWords else { throw DocumentRefusal(.quota, "page \(page) has too many words") }
    guard count > 0 else { return nil }
    let isTaken = millrace_document_text(
        document, Int32(page - 1), PageText.mostText,
        { context, text, count in
            guard let context else { return }
            let bytes = UnsafeRawBufferPointer(start: text, count: count)
            Unmanaged<Taken>.fromOpaque(context).takeUnretainedValue().text = String(decoding: bytes, as: UTF8.self)
        }, Unmanaged.passUnretained(taken).toOpaque())
    guard isTaken else { throw DocumentRefusal(.quota, "page \(page) has too much text") }
    let blocks = ReadingOrder.lines(of: taken.words)
    let extent = taken.words.reduce(Box(0, 0, 1, 1)) { $0.union($1.box) }
    var text = PageText(origin: .own, width: extent.right, height: extent.bottom, dpi: 72, blocks: [Block(blocks)])
    while taken.text.last?.isWhitespace == true { taken.text.removeLast() }
    // It would end at the first U+0000. The words do not.
    if !taken.isCut { text.flow = taken.text }
    if TableFinder.mayHaveTables(text) { text.rulings = rulings(document, page: page) }
    return text
}

/// The ruled lines of a page, as a coarse picture of it shows them. nil: none, or it can not be drawn.
func rulings(_ document: millrace_document_ref, page: Int) -> Rulings? {
    var about = millrace_page()
    guard millrace_document_page(document, Int32(page - 1), &about), about.width > 0, about.height > 0 else {
        return nil
    }
    let dpi = min(96, (4_000_000 / (about.width * about.height / 5184)).squareRoot())
    guard dpi >= 60 else { return nil }
    var picture = millrace_picture()
    guard millrace_document_draw(document, Int32(page - 1), dpi, false, &picture), let pixels = picture.pixels else {
        return nil
    }
    defer { millrace_picture_free(&picture) }
    let (width, height, stride) = (Int(picture.width), Int(picture.height), Int(picture.stride))
    guard width > 0, height > 0, width * height <= 6_000_000 else { return nil }
    var all: [UInt8] = []
    all.reserveCapacity(width * height)
    for row in 0..<height { all += UnsafeBufferPointer(start: pixels + row * stride, count: width) }
    let found = Rulings(in: all, width: width, height: height, dpi: dpi, unit: 72 / dpi)
    return found.isEmpty ? nil : found
}

func answer(_ bytes: [UInt8]) throws(DocumentRefusal) {
    switch try FramePayload.open(bytes, as: DrawingRequest.self).head {
    case .draw(let request): try draw(request)
    case .read(let pages, let password):
        let document = try open(password)
        let count = Int(millrace_document_pages(document))
        for page in pages {
            guard page >= 1, page <= count else { throw DocumentRefusal(.malformed, "the PDF has no page \(page)") }
            ChildSandbox.answer(.note, OwnText(page: page, text: try read(document, page: page)).packed())
        }
        ChildSandbox.answer(.result)
    case .inspect(let quotas, let password):
        ChildSandbox.answer(.result, try FramePayload.make(try inspect(quotas, password)))
    }
}

while let bytes = ChildSandbox.request(longest: 1 << 20) {
    do throws(DocumentRefusal) {
        try answer(bytes)
    } catch {
        ChildSandbox.fail(error.reason.rawValue, error.sentence)
    }
}
