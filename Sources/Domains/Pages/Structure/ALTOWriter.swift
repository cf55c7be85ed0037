/// Writes pages as ALTO 4: blocks, lines and words with their places and confidences. What a block is, is said by its tag.
struct ALTOWriter {
    private let number: Int
    private let page: PageText
    private let scale: MarkupScale

    init(_ number: Int, _ page: PageText) {
        (self.number, self.page) = (number, page)
        scale = MarkupScale(page)
    }

    static func opening(title: String) -> String {
        let tags =
            (1...6).map { ("heading_\($0)", "heading of level \($0)") } + [
                ("paragraph", "paragraph"), ("list", "list"), ("table", "table"), ("cell", "cell of a table"),
            ]
        return """
            <?xml version="1.0" encoding="UTF-8"?>
            <alto xmlns="http://www.loc.gov/standards/alto/ns-v4#">
            <Description>
            <MeasurementUnit>pixel</MeasurementUnit>
            <sourceImageInformation><fileName>\(title.escapedForXML)</fileName></sourceImageInformation>
            <Processing ID="processing_1"><processingSoftware><softwareName>millrace</softwareName></processingSoftware></Processing>
            </Description>
            <Tags>
            \(tags.map { "<StructureTag ID=\"\($0.0)\" LABEL=\"\($0.1)\"/>" }.joined(separator: "\n"))
            </Tags>
            <Layout>

            """
    }

    func page(_ structure: PageStructure) -> String {
        let (width, height) = (scale.whole(page.width), scale.whole(page.height))
        var text =
            "<Page ID=\"page_\(number)\" PHYSICAL_IMG_NR=\"\(number)\" WIDTH=\"\(width)\" HEIGHT=\"\(height)\">\n"
            + "<PrintSpace HPOS=\"0\" VPOS=\"0\" WIDTH=\"\(width)\" HEIGHT=\"\(height)\">\n"
        for (index, element) in structure.elements.enumerated() {
            let id = "\(number)_\(index + 1)"
            if let table = element.table {
                text += "<ComposedBlock ID=\"table_\(id)\" TYPE=\"table\" TAGREFS=\"table\"\(place(element.box))>\n"
                for (index, cell) in table.cells.enumerated() {
                    text += block("\(id)_\(index + 1)", "cell", cell.box, cell.lines, cell.text)
                }
                text += "</ComposedBlock>\n"
            } else {
                let tag =
                    element.form == .heading ? "heading_\(min(6, max(1, element.level ?? 1)))" : element.form.rawValue
                text += block(id, tag, element.box, element.lines, element.text)
            }
        }
        return text + "</PrintSpace>\n</Page>\n"
    }

    private func block(_ id: String, _ tag: String, _ box: Box, _ lines: [TextLine], _ joined: String) -> String {
        var text = "<TextBlock ID=\"block_\(id)\" TAGREFS=\"\(tag)\"\(place(box))>\n"
        var rest: String?
        for (index, line) in lines.enumerated() {
            text += "<TextLine ID=\"line_\(id)_\(index + 1)\"\(place(line.box))>\n"
            for (number, word) in line.words.enumerated() {
                if number > 0 { text += space(line.words[number - 1].box, word.box) }
                var content = word.text
                var more = ""
                var hyphen = ""
                if number == 0, let whole = rest { more = " SUBS_TYPE=\"HypPart2\" SUBS_CONTENT=\"\(whole)\"" }
                rest = nil
                if number == line.words.count - 1, index + 1 < lines.count, let next = lines[index + 1].words.first,
                    let stem = LineJoiner.stem(content, before: next.text, []), joined.contains(stem + next.text)
                {
                    hyphen = "<HYP CONTENT=\"\(content.suffix(1).description.escapedForXML)\"/>\n"
                    content = stem
                    let whole = (stem + next.text).escapedForXML
                    if more.isEmpty { more = " SUBS_TYPE=\"HypPart1\" SUBS_CONTENT=\"\(whole)\"" }
                    rest = whole
                }
                let confidence = (word.confidence).rounded() / 100
                text +=
                    "<String CONTENT=\"\(content.escapedForXML)\"\(place(word.box)) WC=\"\(confidence)\"\(more)/>\n"
                    + hyphen
            }
            text += "</TextLine>\n"
        }
        return text + "</TextBlock>\n"
    }

    private func space(_ before: Box, _ after: Box) -> String {
        let width = max(0, scale.whole(after.left) - scale.whole(before.right))
        return "<SP HPOS=\"\(scale.whole(before.right))\" VPOS=\"\(scale.whole(before.top))\" WIDTH=\"\(width)\"/>\n"
    }

    private func place(_ box: Box) -> String {
        let (left, top) = (scale.whole(box.left), scale.whole(box.top))
        return " HPOS=\"\(left)\" VPOS=\"\(top)\" WIDTH=\"\(max(0, scale.whole(box.right) - left))\""
            + " HEIGHT=\"\(max(0, scale.whole(box.bottom) - top))\""
    }
}
