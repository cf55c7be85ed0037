/// Writes pages as hOCR 1.2: areas, paragraphs, lines and words with their places and confidences. A table is a table of HTML.
struct HOCRWriter {
    private let number: Int
    private let page: PageText
    private let scale: MarkupScale

    init(_ number: Int, _ page: PageText) {
        (self.number, self.page) = (number, page)
        scale = MarkupScale(page)
    }

    static func opening(title: String) -> String {
        """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE html>
        <html xmlns="http://www.w3.org/1999/xhtml">
        <head>
        <title>\(title.escapedForXML)</title>
        <meta name="ocr-system" content="millrace"/>
        <meta name="ocr-capabilities" content="ocr_page ocr_carea ocr_par ocr_table ocr_line ocrx_word"/>
        </head>
        <body>

        """
    }

    func page(_ structure: PageStructure) -> String {
        let dpi = Int(scale.dpi.rounded())
        var text =
            "<div class=\"ocr_page\" id=\"page_\(number)\" title=\"bbox 0 0 \(scale.whole(page.width)) \(scale.whole(page.height));"
            + " ppageno \(number - 1); scan_res \(dpi) \(dpi)\">\n"
        for (index, element) in structure.elements.enumerated() {
            let id = "\(number)_\(index + 1)"
            text += "<div class=\"ocr_carea\" id=\"block_\(id)\" title=\"\(box(element.box))\">\n"
            var lines = 0
            switch element.form {
            case .table: text += element.table.map { table($0, element.box, id, &lines) } ?? ""
            case .heading: text += paragraph("h\(min(6, max(1, element.level ?? 1)))", element, id, &lines)
            case .paragraph, .list: text += paragraph("p", element, id, &lines)
            }
            text += "</div>\n"
        }
        return text + "</div>\n"
    }

    private func paragraph(_ tag: String, _ element: PageStructure.Element, _ id: String, _ lines: inout Int) -> String
    {
        "<\(tag) class=\"ocr_par\" id=\"par_\(id)\" title=\"\(box(element.box))\">\n"
            + content(element.lines, id, &lines)
            + "</\(tag)>\n"
    }

    private func table(_ table: PageStructure.Table, _ place: Box, _ id: String, _ lines: inout Int) -> String {
        var text = "<table class=\"ocr_table\" id=\"table_\(id)\" title=\"\(box(place))\">\n"
        var taken = Set<[Int]>()
        let rows = Dictionary(grouping: table.cells, by: \.row)
        for row in 1...max(1, table.rows) {
            text += "<tr>\n"
            let cells = Dictionary((rows[row] ?? []).map { ($0.column, $0) }) { first, _ in first }
            for column in 1...max(1, table.columns) where !taken.contains([row, column]) {
                guard let cell = cells[column] else {
                    text += "<td></td>\n"
                    continue
                }
                for down in row..<min(row + cell.rowSpan, table.rows + 1) {
                    for across in column..<min(column + cell.columnSpan, table.columns + 1) {
                        taken.insert([down, across])
                    }
                }
                let spans =
                    (cell.rowSpan > 1 ? " rowspan=\"\(cell.rowSpan)\"" : "")
                    + (cell.columnSpan > 1 ? " colspan=\"\(cell.columnSpan)\"" : "")
                text += "<td\(spans)>\n" + content(cell.lines, id, &lines) + "</td>\n"
            }
            text += "</tr>\n"
        }
        return text + "</table>\n"
    }

    private func content(_ lines: [TextLine], _ id: String, _ count: inout Int) -> String {
        var text = ""
        for line in lines {
            count += 1
            let name = "\(id)_\(count)"
            text += "<span class=\"ocr_line\" id=\"line_\(name)\" title=\"\(box(line.box))\(baseline(line))\">"
            text += line.words.enumerated().map { index, word in
                "<span class=\"ocrx_word\" id=\"word_\(name)_\(index + 1)\" title=\"\(box(word.box));"
                    + " x_wconf \(Int(word.confidence.rounded()))\">\(word.text.escapedForXML)</span>"
            }.joined(separator: " ")
            text += "</span>\n"
        }
        return text
    }

    /// From the lower left corner of the line's box.
    private func baseline(_ line: TextLine) -> String {
        guard line.baseline.count == 2, line.box.width > 0 else { return "" }
        let slope = (line.baseline[1] - line.baseline[0]) / line.box.width
        let thousandths = (slope * 1000).rounded() / 1000
        return "; baseline \(thousandths) \(scale.whole(line.baseline[0] - line.box.bottom))"
    }

    private func box(_ box: Box) -> String {
        "bbox \(scale.whole(box.left)) \(scale.whole(box.top)) \(scale.whole(box.right)) \(scale.whole(box.bottom))"
    }
}
