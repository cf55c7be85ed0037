import CPango
import Pages

/// A4, one column, from top to bottom.
final class Setter {
    private let width = 595.0, height = 842.0, margin = 56.0
    private let canvas: PDFCanvas
    private var y: Double
    private var pages = 1
    private static let mostPages = 20_000

    init(into descriptor: Int32) throws(DocumentRefusal) {
        canvas = try PDFCanvas(into: descriptor, width: width, height: height)
        y = margin
    }

    func set(_ report: Report) throws(DocumentRefusal) -> Reported {
        canvas.setTitle(report.title)
        try paragraph(report.title, "Sans Bold 18", after: 10)
        for fact in report.facts { try paragraph("\(fact.name): \(fact.value)", "Sans 10", after: 2) }
        y += 12
        for page in report.pages {
            if !page.heading.isEmpty { try paragraph(page.heading, "Sans Bold 12", after: 4, keeps: 60) }
            for piece in Self.pieces(page.text) { try paragraph(piece, "Sans 10", after: 0) }
            y += 14
        }
        cairo_show_page(canvas.cairo)
        return try canvas.finish(pages: pages)
    }

    /// Before it wraps a paragraph, Pango measures it as one line, in an integer that is too small for half a megabyte of text. So longer
    /// text is cut at a blank.
    private static func pieces(_ text: String) -> [Substring] {
        var pieces: [Substring] = []
        var rest = text.utf8[...]
        while rest.count > 20_000 {
            let limit = rest.index(rest.startIndex, offsetBy: 20_000)
            let head = rest[..<limit]
            var end =
                head.lastIndex(of: UInt8(ascii: "\n")) ?? head.lastIndex(of: UInt8(ascii: " ")).map {
                    head.index(after: $0)
                }
                ?? limit
            // Not within a letter.
            while end > rest.startIndex, end < rest.endIndex, rest[end] & 0xc0 == 0x80 { rest.formIndex(before: &end) }
            if end == rest.startIndex { end = rest.index(after: end) }
            pieces.append(Substring(rest[..<end]))
            rest = rest[end...]
            if rest.first == UInt8(ascii: "\n") { rest = rest.dropFirst() }
        }
        pieces.append(Substring(rest))
        return pieces
    }

    /// Line by line, so that it may go over as many pages as it takes.
    private func paragraph(_ text: some StringProtocol, _ font: String, after: Double, keeps: Double = 0)
        throws(DocumentRefusal)
    {
        guard let layout = pango_cairo_create_layout(canvas.cairo) else {
            throw DocumentRefusal(.memory, "no memory for a paragraph")
        }
        defer { g_object_unref(UnsafeMutableRawPointer(layout)) }
        guard let description = pango_font_description_from_string(font) else {
            throw DocumentRefusal(.internal, "there is no such font")
        }
        pango_layout_set_font_description(layout, description)
        pango_font_description_free(description)
        pango_layout_set_width(layout, Int32((width - 2 * margin) * Double(PANGO_SCALE)))
        pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR)
        // A control character is no letter, but a line's end is.
        let shown = String(String.UnicodeScalarView(text.unicodeScalars.filter { $0.value >= 32 || $0 == "\n" }))
        shown.withCString { pango_layout_set_text(layout, $0, -1) }
        guard let lines = pango_layout_get_iter(layout) else {
            throw DocumentRefusal(.memory, "no memory for a paragraph")
        }
        defer { pango_layout_iter_free(lines) }
        if y + keeps > height - margin { try next() }
        repeat {
            var (ink, logical) = (PangoRectangle(), PangoRectangle())
            pango_layout_iter_get_line_extents(lines, &ink, &logical)
            let unit = Double(PANGO_SCALE)
            let (high, down) = (
                Double(logical.height) / unit, Double(pango_layout_iter_get_baseline(lines) - logical.y) / unit
            )
            if y + high > height - margin { try next() }
            cairo_move_to(canvas.cairo, margin + Double(logical.x) / unit, y + down)
            pango_cairo_show_layout_line(canvas.cairo, pango_layout_iter_get_line_readonly(lines))
            y += high
        } while pango_layout_iter_next_line(lines) != 0
        y += after
    }

    private func next() throws(DocumentRefusal) {
        guard pages < Self.mostPages else { throw DocumentRefusal(.quota, "the report has too many pages") }
        cairo_show_page(canvas.cairo)
        pages += 1
        y = margin
    }
}
