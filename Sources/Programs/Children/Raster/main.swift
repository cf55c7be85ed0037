// SPDX-License-Identifier: GPL-3.0-or-later (it links poppler; see LICENSE.md beside this file)
import CPoppler
import ChildProtocol
import ChildSandbox
import Directions
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
            throw DocumentRefusal(.malformed, "the PDF's page \(index + 1) cannot be found")
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
            : DocumentRefusal(.malformed, "the PDF cannot be opened for drawing")
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
    else { throw DocumentRefusal(.malformed, "page \(request.page) cannot be drawn") }
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
    var words: [SeenWord] = []
    var text = ""
    var isCut = false
    /// How many words are turned by no quarter, one, two and three.
    var quarters = [0, 0, 0, 0]

    /// How far the page must be turned clockwise to be read, where most of its words lie on a side or on their head.
    var turn: Int {
        let most = quarters.indices.max { quarters[$0] < quarters[$1] } ?? 0
        return quarters[most] * 4 >= words.count * 3 ? (360 - 90 * most) % 360 : 0
    }

    /// Chinese, Japanese and Korean may be written down the page, which poppler calls a quarter, too.
    static func mayRunDown(_ text: String) -> Bool {
        text.unicodeScalars.contains { scalar in
            switch scalar.value {
            case 0x2E80...0x9FFF, 0xAC00...0xD7AF, 0xF900...0xFAFF, 0xFE30...0xFE4F, 0xFF00...0xFFEF, 0x20000...0x3FFFF:
                true
            default: false
            }
        }
    }
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
            let text = String(cString: word.text)
            taken.quarters[Taken.mayRunDown(text) ? 0 : Int(word.rotation) & 3] += 1
            taken.words.append(
                SeenWord(
                    text + (word.is_cut ? "\u{FFFD}" : ""), box,
                    hasSpaceAfter: word.has_space_after,
                    widths: word.widths.map { Array(UnsafeBufferPointer(start: $0, count: word.letters)) } ?? []))
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
    let turn = taken.turn
    let shown = turn == 0 ? nil : size(document, page: page)
    if let shown {
        for index in taken.words.indices {
            taken.words[index].box = taken.words[index].box.turned(by: turn, on: shown)
            taken.words[index].widths = []
        }
    }
    let own = OwnLines(taken.words, .unicode)
    let extent =
        shown.map { $0.turned(by: turn, on: $0) } ?? taken.words.reduce(Box(0, 0, 1, 1)) { $0.union($1.box) }
    // The table of a page that is turned comes down its columns, in any order.
    let blocks = shown == nil ? [Block(own.lines)] : ReadingOrder.arranged([Block(own.lines)])
    var text = PageText(origin: .own, width: extent.right, height: extent.bottom, dpi: 72, blocks: blocks)
    // poppler says in its text which parts of a line run which way.
    taken.text.unicodeScalars.removeAll { (0x202A...0x202E).contains($0.value) }
    while taken.text.last?.isWhitespace == true { taken.text.removeLast() }
    // It would end at the first U+0000. The words do not.
    if !taken.isCut, !own.isRightToLeft, shown == nil { text.flow = taken.text }
    if shown != nil { text.rotation = turn }
    return text
}

/// The text with the ruled lines of its page; nil: it has none, or no table.
func ruled(_ text: PageText, _ document: millrace_document_ref, page: Int) -> PageText? {
    guard TableFinder.mayHaveTables(text), let found = rulings(document, page: page) else { return nil }
    var text = text
    text.rulings = found
    if text.rotation != 0 {
        text.rulings = size(document, page: page).map { found.turned(by: text.rotation, on: $0) }
    }
    return text
}

/// The whole page as it is shown.
func size(_ document: millrace_document_ref, page: Int) -> Box? {
    var about = millrace_page()
    guard millrace_document_page(document, Int32(page - 1), &about), about.width > 0, about.height > 0 else {
        return nil
    }
    return about.rotation % 180 == 0 ? Box(0, 0, about.width, about.height) : Box(0, 0, about.height, about.width)
}

/// The ruled lines of a page, as a coarse picture of it shows them. nil: none, or it cannot be drawn.
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
            let text = try read(document, page: page)
            ChildSandbox.answer(.note, OwnText(page: page, text: text).packed())
            // Said afterwards: its picture may take longer than this program may.
            if let text, let ruled = ruled(text, document, page: page) {
                ChildSandbox.answer(.note, OwnText(page: page, text: ruled).packed())
            }
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
