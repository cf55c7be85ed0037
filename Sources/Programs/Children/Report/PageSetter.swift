import CPango
import Pages

/// Draws pages from the small HTML.
final class PageSetter {
    private static let longest = 4 << 20
    /// Between the header or the footer and what is on the page.
    private static let gap = 14.0

    let canvas: PDFCanvas
    let setter: Typesetter
    let pictures: PagePictures
    let sheet: PageSheet
    private let title: String
    /// The height of what is between the margins, for pictures that would be higher.
    private(set) var room = 0.0

    init(_ design: PageDesign, _ bytes: ArraySlice<UInt8>, into descriptor: Int32) throws(DocumentRefusal) {
        guard design.html.utf8.count <= Self.longest else {
            throw DocumentRefusal(.tooLarge, "the HTML has more than \(Self.longest) bytes")
        }
        title = design.title
        sheet = try PageBuilder.build(design.html)
        pictures = try PagePictures(design.pictures, bytes)
        canvas = try PDFCanvas(into: descriptor, width: sheet.width, height: sheet.height)
        setter = try Typesetter(canvas)
    }

    func draw() throws(DocumentRefusal) -> Reported {
        canvas.setTitle(title)
        let width = sheet.width - 2 * sheet.margin
        room = sheet.height - 2 * sheet.margin
        let header = try band(sheet.header, width, page: 1, count: 1)
        let footer = try band(sheet.footer, width, page: 1, count: 1)
        let top = sheet.margin + (header.height > 0 ? header.height + Self.gap : 0)
        let bottom = sheet.height - sheet.margin - (footer.height > 0 ? footer.height + Self.gap : 0)
        room = bottom - top
        guard room >= 60 else { throw DocumentRefusal(.unsupported, "header and footer leave no room on the page") }
        var paginator = Paginator(left: sheet.margin, top: top, bottom: bottom)
        try paginator.place(try items(sheet.body, width))
        for (index, page) in paginator.pages.enumerated() {
            for (blocks, isTop) in [(sheet.header, true), (sheet.footer, false)] where !blocks.isEmpty {
                let band = try band(blocks, width, page: index + 1, count: paginator.pages.count)
                band.draw(sheet.margin, isTop ? sheet.margin : sheet.height - sheet.margin - band.height)
            }
            for placed in page { placed.draw(placed.x, placed.y) }
            cairo_show_page(canvas.cairo)
        }
        return try canvas.finish(pages: paginator.pages.count)
    }

    private func band(_ blocks: [PageBlock], _ width: Double, page: Int, count: Int) throws(DocumentRefusal) -> Piece {
        Piece.stack(try pieces(blocks, width, page: page, count: count))
    }

    // MARK: blocks

    /// What blocks become in a column, one below the other; distances next to each other are one.
    func items(_ blocks: [PageBlock], _ width: Double, page: Int = 0, count: Int = 0) throws(DocumentRefusal)
        -> [FlowItem]
    {
        var items: [FlowItem] = []
        for block in blocks {
            switch block {
            case .space(let height):
                guard height > 0 else { continue }
                if case .piece(let last)? = items.last, last.isSpace {
                    items[items.count - 1] = .piece(.space(max(last.height, height)))
                } else {
                    items.append(.piece(.space(height)))
                }
            case .pageBreak: items.append(.pageBreak)
            case .rule(let line): items.append(.piece(rule(line, width)))
            case .picture(let picture): items.append(.piece(try pictures.piece(picture, width, room, on: canvas)))
            case .text(let paragraph):
                for part in paragraph.parts() { try lines(part, width, page, count, &items) }
            case .table(let table): items += try rows(table, width).map { .row($0) }
            case .group(let inner, let indent, let marker, let isRightToLeft, let staysWhole):
                try group(inner, width, indent, marker, isRightToLeft, staysWhole, page, count, &items)
            }
        }
        return items
    }

    /// The same where nothing goes over to another page: in a cell, a header, a footer.
    func pieces(_ blocks: [PageBlock], _ width: Double, page: Int = 0, count: Int = 0) throws(DocumentRefusal)
        -> [Piece]
    {
        var pieces = try items(blocks, width, page: page, count: count).compactMap { item in
            switch item {
            case .piece(let piece): piece
            case .row(let row): Piece(height: row.height, inset: row.inset, draw: row.drawing())
            case .pageBreak: nil
            }
        }
        while pieces.first?.isSpace == true { pieces.removeFirst() }
        while pieces.last?.isSpace == true { pieces.removeLast() }
        return pieces
    }

    private func lines(
        _ paragraph: PageParagraph, _ width: Double, _ page: Int, _ count: Int, _ items: inout [FlowItem]
    ) throws(DocumentRefusal) {
        let (layout, canvas) = (try TextLayout(paragraph, width: width, setter, page: page, count: count), canvas)
        for line in layout.lines {
            items.append(
                .piece(
                    Piece(height: line.height, baseline: line.baseline, staysWithNext: paragraph.staysWithNext) {
                        x, y in
                        layout.draw(line, on: canvas, x: x, y: y)
                    }))
        }
    }

    private func rule(_ line: PageLine, _ width: Double) -> Piece {
        let canvas = canvas
        return Piece(height: line.width) { x, y in
            cairo_set_source_rgb(canvas.cairo, line.color.red, line.color.green, line.color.blue)
            cairo_set_line_width(canvas.cairo, line.width)
            cairo_move_to(canvas.cairo, x, y + line.width / 2)
            cairo_line_to(canvas.cairo, x + width, y + line.width / 2)
            cairo_stroke(canvas.cairo)
        }
    }

    private func group(
        _ inner: [PageBlock], _ width: Double, _ indent: Double, _ marker: PageParagraph?, _ isRightToLeft: Bool,
        _ staysWhole: Bool, _ page: Int, _ count: Int, _ items: inout [FlowItem]
    ) throws(DocumentRefusal) {
        guard width - indent >= 20 else { throw DocumentRefusal(.unsupported, "indented content has no room left") }
        var made = try self.items(inner, width - indent, page: page, count: count)
        if let marker {
            let (layout, canvas) = (try TextLayout(marker, width: nil, setter), canvas)
            let sign = { (x: Double, y: Double) in
                guard let line = layout.lines.first else { return }
                layout.draw(line, on: canvas, x: x - line.x, y: y)
            }
            let own = layout.naturalWidth
            let at = made.firstIndex { if case .piece(let piece) = $0 { !piece.isSpace } else { true } }
            if let at, case .piece(var piece) = made[at] {
                let draw = piece.draw
                let rise = (piece.baseline ?? layout.lines.first?.baseline ?? 0) - (layout.lines.first?.baseline ?? 0)
                piece.draw = { x, y in
                    draw(x, y)
                    sign(isRightToLeft ? x + width - indent + 5 : x - own - 5, y + rise)
                }
                made[at] = .piece(piece)
            } else {
                made.insert(
                    .piece(
                        Piece(height: layout.lines.first?.height ?? 0, staysWithNext: true) { x, y in
                            sign(isRightToLeft ? x + width - indent + 5 : x - own - 5, y)
                        }), at: 0)
            }
        }
        let shift = isRightToLeft ? 0 : indent
        made = made.map { item in
            switch item {
            case .piece(var piece):
                piece.inset += shift
                return .piece(piece)
            case .row(var row):
                row.inset += shift
                return .row(row)
            case .pageBreak: return item
            }
        }
        if staysWhole {
            let whole = Piece.stack(
                made.compactMap { item in
                    switch item {
                    case .piece(let piece): piece
                    case .row(let row): Piece(height: row.height, inset: row.inset, draw: row.drawing())
                    case .pageBreak: nil
                    }
                })
            if whole.height <= room {
                items.append(.piece(whole))
                return
            }
        }
        items += made
    }
}
