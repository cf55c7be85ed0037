import CQPDF
import Directions
import Glibc
import Pages

extension PDF {
    /// Puts the recognised text under each page.
    func addLayer(_ request: AssemblyRequest) throws(DocumentRefusal) {
        var layer = TextLayer(.unicode)
        var contents: [(page: Int, content: String)] = []
        let levels = request.options.levels
        for page in request.pages {
            guard page.page >= 1, page.page <= request.inspection.pages.count, page.page <= pageCount else {
                throw DocumentRefusal(.internal, "there is no page \(page.page) to lay a text under")
            }
            let place = request.inspection.pages[page.page - 1]
            // The words were read on a level page, and are laid where they stand on this one.
            let content = layer.content(
                page.text, on: place, isPixels: request.kind.isImage, dpi: Raster.dpi(ofImage: place), isAskew: !levels)
            contents.append((page.page, content))
        }
        guard !layer.isEmpty else { return }
        let font = font(layer)
        for (number, content) in contents {
            let page = page(number - 1)
            let under = stream(content.utf8)
            let array = qpdf_oh_new_array(handle)
            qpdf_oh_append_item(handle, array, under)
            let place = request.inspection.pages[number - 1]
            let skew = levels ? request.pages.first { $0.page == number }?.text.skew ?? 0 : 0
            if skew != 0 { qpdf_oh_append_item(handle, array, stream(turning(place, skew, request.kind).utf8)) }
            if abs(skew) > 6 { enlarge(page, place, skew, request.kind) }
            if let old = value(page, "/Contents") {
                if isArray(old) {
                    for index in 0..<qpdf_oh_get_array_n_items(handle, old) {
                        qpdf_oh_append_item(handle, array, qpdf_oh_get_array_item(handle, old, index))
                    }
                } else if isStream(old) {
                    qpdf_oh_append_item(handle, array, old)
                }
            }
            if skew != 0 { qpdf_oh_append_item(handle, array, stream("\nQ\n".utf8)) }
            set(page, "/Contents", array)
            let resources = dictionary(in: page, "/Resources")
            set(dictionary(in: resources, "/Font"), "/\(TextLayer.fontName)", font)
            // The copy shows a scan upright, so that people can read it. What says its text itself lies as it was meant to.
            if let text = request.pages.first(where: { $0.page == number })?.text, text.rotation != 0,
                text.origin != .own
            {
                let rotation = (request.inspection.pages[number - 1].rotation + text.rotation) % 360
                set(page, "/Rotate", parse("\(rotation)"))
            }
            if qpdf_has_error(handle) != 0 {
                throw DocumentRefusal(.malformed, "page \(number) could not be given its text")
            }
        }
    }

    /// Turns what follows clockwise about the middle of the page. So the picture of a skewed page is placed where its words are, unchanged.
    private func turning(_ page: Inspection.Page, _ degrees: Double, _ kind: FileFormat) -> String {
        let scale = kind.isImage ? 72 / Raster.dpi(ofImage: page) : 1
        let isTurned = page.rotation % 180 != 0
        let x = page.left + (isTurned ? page.height : page.width) * scale / 2
        let y = page.bottom + (isTurned ? page.width : page.height) * scale / 2
        let (c, s) = (cos(degrees * .pi / 180), sin(degrees * .pi / 180))
        let numbers = [c, -s, s, c, x - c * x - s * y, y + s * x - c * y]
        return "q " + numbers.map { String(($0 * 1_000_000).rounded() / 1_000_000) }.joined(separator: " ") + " cm\n"
    }

    /// Makes room for the corners of a page that was turned far.
    private func enlarge(_ object: Object, _ page: Inspection.Page, _ degrees: Double, _ kind: FileFormat) {
        let scale = kind.isImage ? 72 / Raster.dpi(ofImage: page) : 1
        let isTurned = page.rotation % 180 != 0
        let width = (isTurned ? page.height : page.width) * scale
        let height = (isTurned ? page.width : page.height) * scale
        let (c, s) = (abs(cos(degrees * .pi / 180)), abs(sin(degrees * .pi / 180)))
        let right = (width * c + height * s - width) / 2
        let up = (width * s + height * c - height) / 2
        let box = [page.left - right, page.bottom - up, page.left + width + right, page.bottom + height + up]
        let numbers = box.map { String(($0 * 100).rounded() / 100) }.joined(separator: " ")
        for key in ["/MediaBox", "/CropBox"] { set(object, key, parse("[\(numbers)]")) }
    }

    private func dictionary(in object: Object, _ key: String) -> Object {
        if let found = value(object, key), isDictionary(found) { return found }
        set(object, key, qpdf_oh_new_dictionary(handle))
        return qpdf_oh_get_key(handle, object, key)
    }

    private func font(_ layer: TextLayer) -> Object {
        let name = TextLayer.fontName
        let file = stream(BlankFont.bytes, dictionary: ["/Length1": "\(BlankFont.bytes.count)"])
        let descriptor = qpdf_make_indirect_object(
            handle,
            parse(
                "<< /Type /FontDescriptor /FontName /\(name) /Flags 5 /FontBBox [0 0 500 1000] /ItalicAngle 0 /Ascent 1000"
                    + " /Descent -1 /CapHeight 1000 /StemV 80 >>"))
        set(descriptor, "/FontFile2", file)
        let descendant = qpdf_make_indirect_object(
            handle,
            parse(
                "<< /Type /Font /Subtype /CIDFontType2 /BaseFont /\(name) /DW 500 /W \(layer.widths)"
                    + " /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> >>"))
        set(descendant, "/FontDescriptor", descriptor)
        set(descendant, "/CIDToGIDMap", stream(layer.glyphs))
        let font = qpdf_make_indirect_object(
            handle, parse("<< /Type /Font /Subtype /Type0 /BaseFont /\(name) /Encoding /Identity-H >>"))
        set(font, "/DescendantFonts", qpdf_oh_wrap_in_array(handle, descendant))
        set(font, "/ToUnicode", stream(layer.toUnicode.utf8))
        return font
    }
}
