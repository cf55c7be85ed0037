import CPango
import Pages

private let unit = Double(PANGO_SCALE)

/// The fonts of this machine, and what lays text out with them.
final class Typesetter {
    let context: OpaquePointer
    private let families: Set<String>
    private static let generic: Set<String> = ["sans", "serif", "monospace"]

    init(_ canvas: PDFCanvas) throws(DocumentRefusal) {
        guard let context = pango_cairo_create_context(canvas.cairo) else {
            throw DocumentRefusal(.memory, "no memory for text")
        }
        self.context = context
        // Letters stand where they are to be printed, and not at pixels.
        let options = cairo_font_options_create()
        cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE)
        cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF)
        pango_cairo_context_set_font_options(context, options)
        cairo_font_options_destroy(options)
        var names: Set<String> = []
        var list: UnsafeMutablePointer<UnsafeMutablePointer<PangoFontFamily>?>?
        var count: Int32 = 0
        pango_context_list_families(context, &list, &count)
        for at in 0..<Int(count) {
            if let family = list?[at], let name = pango_font_family_get_name(family) {
                names.insert(String(cString: name).lowercased())
            }
        }
        g_free(list)
        families = names
    }

    deinit { g_object_unref(UnsafeMutableRawPointer(context)) }

    /// Fonts that are not there would be replaced silently.
    func check(_ font: String) throws(DocumentRefusal) {
        let name = font.lowercased()
        guard families.contains(name) || Self.generic.contains(name) else {
            throw DocumentRefusal(
                .unsupported, "the font \(font.prefix(60)) is not installed; Sans, Serif and Monospace always are")
        }
    }
}

/// A paragraph with its lines.
final class TextLayout {
    struct Line {
        let line: UnsafeMutablePointer<PangoLayoutLine>
        /// From the left side of the paragraph.
        let x: Double
        let height: Double
        /// From the top of the line.
        let baseline: Double
    }

    private let layout: OpaquePointer
    private(set) var lines: [Line] = []

    /// - Parameter width: nil: as wide as it is
    /// - Parameter page: the numbers that stand for the counters
    init(
        _ paragraph: PageParagraph, width: Double?, _ setter: Typesetter, page: Int = 0, count: Int = 0
    ) throws(DocumentRefusal) {
        let isFixed = paragraph.direction != .auto
        pango_context_set_base_dir(
            setter.context, paragraph.direction == .rtl ? PANGO_DIRECTION_RTL : PANGO_DIRECTION_LTR)
        guard let layout = pango_layout_new(setter.context), let attributes = pango_attr_list_new() else {
            throw DocumentRefusal(.memory, "no memory for a paragraph")
        }
        self.layout = layout
        defer { pango_attr_list_unref(attributes) }
        pango_layout_set_auto_dir(layout, isFixed ? 0 : 1)
        var text = ""
        for run in paragraph.runs {
            let start = text.utf8.count
            switch run.counter {
            case nil: text += run.text
            case .page: text += "\(page)"
            case .count: text += "\(count)"
            }
            let range = start..<text.utf8.count
            if let font = run.style.font { try setter.check(font) }
            Self.add(run.style, range, to: attributes)
        }
        text.withCString { pango_layout_set_text(layout, $0, -1) }
        pango_layout_set_attributes(layout, attributes)
        if let width {
            pango_layout_set_width(layout, Int32(max(1, width) * unit))
            pango_layout_set_wrap(layout, PANGO_WRAP_WORD_CHAR)
        }
        let isRightToLeft = paragraph.direction == .rtl
        switch paragraph.alignment {
        case .center: pango_layout_set_alignment(layout, PANGO_ALIGN_CENTER)
        // With a direction that is found, Pango swaps the two for lines that run to the left.
        case .left: pango_layout_set_alignment(layout, PANGO_ALIGN_LEFT)
        case .right: pango_layout_set_alignment(layout, PANGO_ALIGN_RIGHT)
        case .start, .justify: pango_layout_set_alignment(layout, isRightToLeft ? PANGO_ALIGN_RIGHT : PANGO_ALIGN_LEFT)
        case .end: pango_layout_set_alignment(layout, isRightToLeft ? PANGO_ALIGN_LEFT : PANGO_ALIGN_RIGHT)
        }
        if paragraph.alignment == .justify { pango_layout_set_justify(layout, 1) }
        guard let all = pango_layout_get_iter(layout) else {
            throw DocumentRefusal(.memory, "no memory for a paragraph")
        }
        defer { pango_layout_iter_free(all) }
        repeat {
            guard let line = pango_layout_iter_get_line_readonly(all) else { break }
            var (ink, logical) = (PangoRectangle(), PangoRectangle())
            pango_layout_iter_get_line_extents(all, &ink, &logical)
            let own = Double(logical.height) / unit
            let height = own * paragraph.lineHeight / 1.17
            let baseline = Double(pango_layout_iter_get_baseline(all) - logical.y) / unit
            lines.append(
                Line(line: line, x: Double(logical.x) / unit, height: height, baseline: baseline + (height - own) / 2))
        } while pango_layout_iter_next_line(all) != 0
    }

    deinit { g_object_unref(UnsafeMutableRawPointer(layout)) }

    var naturalWidth: Double {
        var (width, height): (Int32, Int32) = (0, 0)
        pango_layout_get_size(layout, &width, &height)
        return Double(width) / unit
    }

    private static func add(_ style: TextStyle, _ range: Range<Int>, to list: OpaquePointer) {
        func set(_ attribute: UnsafeMutablePointer<PangoAttribute>?) {
            guard let attribute else { return }
            attribute.pointee.start_index = UInt32(range.lowerBound)
            attribute.pointee.end_index = UInt32(range.upperBound)
            pango_attr_list_insert(list, attribute)
        }
        func part(_ value: Double) -> UInt16 { UInt16(max(0, min(1, value)) * 65535) }
        set(pango_attr_family_new(style.font ?? "Sans"))
        set(pango_attr_size_new_absolute(Int32(style.size * unit)))
        if style.isBold { set(pango_attr_weight_new(PANGO_WEIGHT_BOLD)) }
        if style.isItalic { set(pango_attr_style_new(PANGO_STYLE_ITALIC)) }
        if style.isUnderlined { set(pango_attr_underline_new(PANGO_UNDERLINE_SINGLE)) }
        if style.isStruck { set(pango_attr_strikethrough_new(1)) }
        if style.rise != 0 { set(pango_attr_rise_new(Int32(style.rise * unit))) }
        if style.color != .black {
            set(pango_attr_foreground_new(part(style.color.red), part(style.color.green), part(style.color.blue)))
        }
        if let fill = style.background {
            set(pango_attr_background_new(part(fill.red), part(fill.green), part(fill.blue)))
        }
    }

    /// Draws one line, whose paragraph's left side and whose top these are.
    func draw(_ line: Line, on canvas: PDFCanvas, x: Double, y: Double) {
        cairo_set_source_rgb(canvas.cairo, 0, 0, 0)
        cairo_move_to(canvas.cairo, x + line.x, y + line.baseline)
        pango_cairo_show_layout_line(canvas.cairo, line.line)
    }
}
