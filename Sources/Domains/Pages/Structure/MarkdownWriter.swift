/// Writes pages in CommonMark, with tables as GitHub has them. A text means itself: nothing in it is taken for a mark, a link or HTML.
package enum MarkdownWriter {
    package static func page(_ structure: PageStructure) -> String {
        structure.elements.map(element).filter { !$0.isEmpty }.map { $0 + "\n\n" }.joined()
    }

    private static func element(_ element: PageStructure.Element) -> String {
        switch element.form {
        case .heading:
            let text = escaped(element.text)
            return text.isEmpty ? "" : String(repeating: "#", count: min(6, max(1, element.level ?? 1))) + " " + text
        case .paragraph: return escapedLine(element.text)
        case .list: return list(element.items ?? [])
        case .table: return element.table.map(table) ?? ""
        }
    }

    private static func list(_ items: [PageStructure.Item]) -> String {
        // An item stands as far right as the text of the item that it belongs to.
        var indents: [Int] = []
        var lines: [String] = []
        for item in items {
            let level = min(max(1, item.level), indents.count + 1)
            indents.removeLast(indents.count - (level - 1))
            let digits = item.marker.filter { $0.isASCII && $0.isNumber }.prefix(9)
            let mark = item.isNumbered ? (digits.isEmpty ? "1" : String(digits)) + "." : "-"
            // A letter or a Roman number is not a mark of Markdown, so it is a part of the text.
            let text = item.isNumbered && digits.isEmpty ? item.marker + " " + item.text : item.text
            lines.append(String(repeating: " ", count: indents.last ?? 0) + mark + " " + escapedLine(text))
            indents.append((indents.last ?? 0) + mark.utf8.count + 1)
        }
        return lines.joined(separator: "\n")
    }

    /// A cell of several rows or columns stands in its first one.
    private static func table(_ table: PageStructure.Table) -> String {
        guard table.rows > 0, table.columns > 0, table.rows * table.columns <= 1_000_000 else { return "" }
        var rows = [[String]](
            repeating: [String](repeating: "", count: table.columns), count: table.rows)
        for cell in table.cells where (1...table.rows).contains(cell.row) && (1...table.columns).contains(cell.column) {
            rows[cell.row - 1][cell.column - 1] = escaped(cell.text)
        }
        var lines = rows.map { "| " + $0.joined(separator: " | ") + " |" }
        lines.insert("|" + String(repeating: " --- |", count: table.columns), at: 1)
        return lines.joined(separator: "\n")
    }

    /// What begins a line must not begin a heading, a list, a quotation or a rule.
    private static func escapedLine(_ text: String) -> String {
        let text = escaped(text)
        guard let first = text.first else { return "" }
        if "+-=:".contains(first) { return "\\" + text }
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        if !digits.isEmpty, let mark = text.dropFirst(digits.count).first, mark == "." || mark == ")" {
            return digits + "\\" + text.dropFirst(digits.count)
        }
        return text
    }

    private static let marks: Set<Unicode.Scalar> = [
        "\\", "`", "*", "_", "[", "]", "<", ">", "#", "|", "~", "&", "$", "!", "{", "}", "^",
    ]

    package static func escaped(_ text: String) -> String {
        var escaped = ""
        escaped.reserveCapacity(text.utf8.count + 8)
        var isSpace = true
        for scalar in text.unicodeScalars {
            if scalar.properties.isWhitespace || scalar.value < 0x20 || (0x7f...0x9f).contains(scalar.value) {
                if !isSpace { escaped += " " }
                isSpace = true
                continue
            }
            if marks.contains(scalar) { escaped += "\\" }
            escaped.unicodeScalars.append(scalar)
            isSpace = false
        }
        return isSpace ? String(escaped.dropLast(escaped.isEmpty ? 0 : 1)) : escaped
    }
}
