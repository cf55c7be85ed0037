extension PageStyle {
    static let tableElements: Set<String> = ["table", "thead", "tbody", "tfoot", "tr", "th", "td"]

    /// What an element is by its name.
    mutating func nameSays(_ name: String) {
        let size = text.size
        switch name {
        case "h1": heading(size * 1.9, above: 0, below: 8)
        case "h2": heading(size * 1.5, above: 12, below: 6)
        case "h3": heading(size * 1.2, above: 10, below: 4)
        case "h4", "h5", "h6": heading(size, above: 8, below: 3)
        case "p": below = size * 0.6
        case "ul", "ol": below = size * 0.6
        case "blockquote":
            marginLeft = size * 2
            below = size * 0.6
        case "pre", "code":
            text.font = "Monospace"
            if name == "pre" { below = size * 0.6 }
        case "hr": (above, below) = (size * 0.6, size * 0.6)
        case "img": below = size * 0.4
        case "table": below = size * 0.8
        case "b", "strong", "th": text.isBold = true
        case "i", "em": text.isItalic = true
        case "u": text.isUnderlined = true
        case "a":
            text.isUnderlined = true
            text.color = PageColor(red: 0, green: 0.2, blue: 0.6)
        case "s", "del": text.isStruck = true
        case "small": text.size = size * 0.85
        case "sub": (text.rise, text.size) = (text.rise - size * 0.15, size * 0.7)
        case "sup": (text.rise, text.size) = (text.rise + size * 0.33, size * 0.7)
        default: break
        }
    }

    private mutating func heading(_ size: Double, above: Double, below: Double) {
        text.size = min(144, size)
        text.isBold = true
        lineHeight = 1.15
        (self.above, self.below) = (above, below)
    }
}

extension PageBuilder {
    private static let mostColumns = 40

    mutating func table(_ element: MarkupElement, _ style: PageStyle) throws(DocumentRefusal) -> PageTable {
        var table = PageTable(line: element.line)
        table.width = style.width
        table.isRightToLeft = style.direction == .rtl
        var outer = style
        if let border = element.attributes["border"], border != "0" { try outer.take("border: 0.5pt", of: element) }
        if let padding = element.attributes["cellpadding"] { try outer.take("padding: \(padding)", of: element) }
        try rows(element, outer, &table)
        guard !table.rows.isEmpty else { throw element.refusal("the table has no rows") }
        table.columns = table.rows.map { $0.reduce(0) { $0 + $1.span } }.max() ?? 1
        guard (1...Self.mostColumns).contains(table.columns) else {
            throw element.refusal("the table has more than \(Self.mostColumns) columns, or none")
        }
        return table
    }

    private mutating func rows(_ element: MarkupElement, _ style: PageStyle, _ table: inout PageTable)
        throws(DocumentRefusal)
    {
        for child in element.children {
            guard case .element(let part) = child else {
                if case .text(let text, _) = child, text.stripped.isEmpty { continue }
                throw element.refusal("<\(element.name)> has text outside its cells")
            }
            switch part.name {
            case "tr": try row(part, style, &table)
            case "thead", "tbody", "tfoot":
                guard element.name == "table" else { throw part.refusal("<\(part.name)> is not allowed here") }
                guard part.name != "thead" || table.rows.isEmpty else {
                    throw part.refusal("<thead> comes first in a table")
                }
                try rows(part, try tablePart(part, style), &table)
                if part.name == "thead" { table.headers = table.rows.count }
            default:
                throw part.refusal(
                    "<\(element.name)> cannot contain <\(part.name)>; known are thead, tbody, tfoot and tr")
            }
        }
    }

    /// Rows hand down what their table says of cells.
    private func tablePart(_ element: MarkupElement, _ outer: PageStyle) throws(DocumentRefusal) -> PageStyle {
        var style = try styled(element, outer, more: ["td", "th"].contains(element.name) ? ["colspan"] : [])
        style.padding = style.padding ?? outer.padding
        style.fill = style.fill ?? outer.fill
        style.place = style.place ?? outer.place
        style.borders = outer.borders.merging(style.borders) { $1 }
        return style
    }

    private mutating func row(_ element: MarkupElement, _ outer: PageStyle, _ table: inout PageTable)
        throws(DocumentRefusal)
    {
        let style = try tablePart(element, outer)
        var cells: [PageTable.Cell] = []
        for child in element.children {
            guard case .element(let cell) = child else {
                if case .text(let text, _) = child, text.stripped.isEmpty { continue }
                throw element.refusal("<tr> has text outside its cells")
            }
            guard cell.name == "td" || cell.name == "th" else {
                throw cell.refusal("<tr> cannot contain <\(cell.name)>; known are td and th")
            }
            let own = try tablePart(cell, style)
            var made = PageTable.Cell(
                blocks: try blocks(cell.children, own), padding: own.padding ?? 3, fill: own.fill,
                borders: own.borders.compactMapValues { $0 }, place: own.place ?? .top)
            made.width = own.width
            if let span = cell.attributes["colspan"] {
                guard let count = Int(span), (1...Self.mostColumns).contains(count) else {
                    throw cell.refusal("colspan is not a whole number, or too large")
                }
                made.span = count
            }
            cells.append(made)
        }
        guard !cells.isEmpty else { throw element.refusal("a row has no cells") }
        try countCells(cells.count)
        table.rows.append(cells)
    }
}
