/// Makes blocks of the elements of a page. What it does not know is refused with the line: nothing is left out silently.
package struct PageBuilder {
    static let blockElements: Set<String> = [
        "blockquote", "div", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "img", "li", "ol", "p", "page-break", "pre",
        "section", "table", "ul",
    ]
    static let inlineElements: Set<String> = [
        "a", "b", "br", "code", "del", "em", "i", "page-count", "page-number", "s", "small", "span", "strong", "sub",
        "sup", "u",
    ]
    private static let ignored: Set<String> = ["id", "class", "title", "lang", "role", "alt", "xmlns", "scope"]
    private static let mostCells = 100_000

    private var sheet = PageSheet()
    private var cells = 0
    /// In a header or a footer, which are made for each page.
    private var isAtMargin = false

    package static func build(_ html: String) throws(DocumentRefusal) -> PageSheet {
        var builder = PageBuilder()
        try builder.top(try MarkupReader.read(html), PageStyle())
        return builder.sheet
    }

    /// html, head, body and page; header and footer stand within one of these.
    private mutating func top(_ nodes: [MarkupNode], _ style: PageStyle) throws(DocumentRefusal) {
        var flow: [MarkupNode] = []
        var (within, inner) = (false, style)
        for node in nodes {
            guard case .element(let element) = node else {
                flow.append(node)
                continue
            }
            switch element.name {
            case "html", "body", "page":
                guard !within else { throw element.refusal("there is more than one <\(element.name)>") }
                within = true
                inner = try styled(element, style, more: ["size", "margin", "font", "font-size"])
                if element.name == "page" { try settings(element, &inner) }
                try top(element.children, inner.handedDown())
            case "head": try head(element)
            case "header", "footer":
                let own = try styled(element, style).handedDown()
                isAtMargin = true
                let made = try blocks(element.children, own)
                isAtMargin = false
                if element.name == "header" { sheet.header = made } else { sheet.footer = made }
            default: flow.append(node)
            }
        }
        let made = try blocks(flow, style)
        guard !within || made.allSatisfy({ if case .space = $0 { true } else { false } }) else {
            throw DocumentRefusal(.unsupported, "there is something outside <html>, <body> or <page>: put it inside")
        }
        sheet.body += made
    }

    private func head(_ element: MarkupElement) throws(DocumentRefusal) {
        for case .element(let child) in element.children where !["title", "meta"].contains(child.name) {
            throw child.refusal(
                "<head> cannot contain <\(child.name)>: on a page, styles go on the elements, in style=\"…\"")
        }
    }

    private static let sizes: [String: (Double, Double)] = [
        "a3": (841.89, 1190.55), "a4": (595.28, 841.89), "a5": (419.53, 595.28), "a6": (297.64, 419.53),
        "letter": (612, 792), "legal": (612, 1008),
    ]

    private mutating func settings(_ element: MarkupElement, _ style: inout PageStyle) throws(DocumentRefusal) {
        if let size = element.attributes["size"]?.lowercased() {
            let words = size.split(separator: " ").map(String.init)
            let lengths = words.compactMap { PageLength($0, em: 12) }.filter { !$0.isShare }.map(\.value)
            if let known = words.first.flatMap({ Self.sizes[$0] }), words.dropFirst().allSatisfy({ $0 == "landscape" })
            {
                (sheet.width, sheet.height) = words.count > 1 ? (known.1, known.0) : known
            } else if words.count == 2, lengths.count == 2, lengths.allSatisfy({ (36...5000).contains($0) }) {
                (sheet.width, sheet.height) = (lengths[0], lengths[1])
            } else {
                throw element.refusal(
                    "the size is not known: give a3, a4, a5, a6, letter or legal, optionally with landscape, or two lengths"
                )
            }
        }
        if let margin = element.attributes["margin"] {
            guard let length = PageLength(margin, em: 12), !length.isShare,
                length.value * 2 + 72 <= min(sheet.width, sheet.height)
            else { throw element.refusal("the margin is not a length, or leaves no room") }
            sheet.margin = length.value
        }
        var css = ""
        if let font = element.attributes["font"] { css += "font-family: \(font);" }
        if let size = element.attributes["font-size"] { css += "font-size: \(size);" }
        try style.take(css, of: element)
    }

    // MARK: elements

    /// The style of an element: what its name says, its attributes, and its own style.
    func styled(_ element: MarkupElement, _ outer: PageStyle, more: Set<String> = []) throws(DocumentRefusal)
        -> PageStyle
    {
        var style = outer.handedDown()
        style.nameSays(element.name)
        for (name, value) in element.attributes.sorted(by: { $0.key < $1.key }) {
            switch name {
            case "style": try style.take(value, of: element)
            case "align": try style.take("text-align: \(value)", of: element)
            case "valign": try style.take("vertical-align: \(value)", of: element)
            case "bgcolor": try style.take("background: \(value)", of: element)
            case "width" where ["img", "table", "td", "th"].contains(element.name),
                "height" where element.name == "img":
                try style.take("\(name): \(value)", of: element)
            case "dir":
                guard let known = PageDirection(rawValue: value.lowercased()) else {
                    throw element.refusal("dir is ltr, rtl or auto")
                }
                style.direction = known
            case _
            where more.contains(name) || Self.ignored.contains(name) || name.hasPrefix("aria-")
                || name.hasPrefix("data-"):
                break
            default: throw element.refusal("<\(element.name)> has no attribute \(name)")
            }
        }
        return style
    }

    mutating func countCells(_ more: Int) throws(DocumentRefusal) {
        cells += more
        guard cells <= Self.mostCells else {
            throw DocumentRefusal(.tooLarge, "the tables have more than \(Self.mostCells) cells")
        }
    }

    mutating func blocks(_ nodes: [MarkupNode], _ style: PageStyle) throws(DocumentRefusal) -> [PageBlock] {
        var made: [PageBlock] = []
        var text = RunCollector()
        for node in nodes {
            guard case .element(let element) = node, Self.blockElements.contains(element.name) else {
                try inline(node, style, &text)
                continue
            }
            text.end(&made, style)
            try block(element, style, &made)
        }
        text.end(&made, style)
        return made
    }

    private mutating func block(_ element: MarkupElement, _ outer: PageStyle, _ made: inout [PageBlock])
        throws(DocumentRefusal)
    {
        let more: Set<String> =
            switch element.name {
            case "ol": ["start"]
            case "img": ["src"]
            case "table": ["border", "cellpadding", "cellspacing"]
            default: []
            }
        let style = try styled(element, outer, more: more)
        if style.breaksBefore { made.append(.pageBreak) }
        made.append(.space(style.above ?? 0))
        switch element.name {
        case "page-break": made.append(.pageBreak)
        case "hr":
            made.append(.rule(style.borders[.top]?.flatMap { $0 } ?? PageLine(width: 0.75, color: style.text.color)))
        case "img": made.append(.picture(try picture(element, style)))
        case "table": made.append(.table(try table(element, style)))
        case "ul", "ol": try list(element, style, &made)
        case "li": throw element.refusal("<li> stands outside <ul> and <ol>")
        case "pre":
            var text = RunCollector(keepsSpace: true)
            for child in element.children { try inline(child, style, &text) }
            text.end(&made, style)
        default:
            guard style.fill == nil, style.borders.isEmpty else {
                throw element.refusal(
                    "background and border are only for tables and their cells: put <\(element.name)> into a cell")
            }
            var inner = try blocks(element.children, style)
            if element.name.hasPrefix("h"), element.name.utf8.count == 2 {
                for at in inner.indices {
                    if case .text(var paragraph) = inner[at] {
                        paragraph.staysWithNext = true
                        inner[at] = .text(paragraph)
                    }
                }
            }
            let indent = style.marginLeft ?? 0
            if indent > 0 || style.staysWhole {
                made.append(
                    .group(
                        inner, indent: indent, marker: nil, isRightToLeft: style.direction == .rtl,
                        staysWhole: style.staysWhole))
            } else {
                made += inner
            }
        }
        made.append(.space(style.below ?? 0))
        if style.breaksAfter { made.append(.pageBreak) }
    }

    private func picture(_ element: MarkupElement, _ style: PageStyle) throws(DocumentRefusal) -> PagePicture {
        let source = element.attributes["src"] ?? ""
        guard source.hasPrefix("cid:"), source.utf8.count > 4 else {
            throw element.refusal(
                "a picture is named by cid:… and sent along with the data; addresses are not fetched")
        }
        return PagePicture(
            name: String(source.dropFirst(4)), width: style.width, height: style.height, alignment: style.alignment,
            direction: style.direction, line: element.line)
    }

    private mutating func list(_ element: MarkupElement, _ style: PageStyle, _ made: inout [PageBlock])
        throws(DocumentRefusal)
    {
        var number = 1
        if let start = element.attributes["start"] {
            guard let given = Int(start), abs(given) < 1_000_000 else {
                throw element.refusal("start is not a whole number")
            }
            number = given
        }
        for child in element.children {
            guard case .element(let item) = child else {
                if case .text(let text, _) = child, text.stripped.isEmpty { continue }
                throw element.refusal("<\(element.name)> has text outside <li>")
            }
            guard item.name == "li" else { throw item.refusal("<\(element.name)> cannot contain <\(item.name)>") }
            let own = try styled(item, style)
            let sign = TextRun(text: element.name == "ol" ? "\(number)." : "•", style: own.text)
            number += 1
            let marker = PageParagraph(
                runs: [sign], alignment: .start, direction: own.direction, lineHeight: own.lineHeight)
            made.append(
                .group(
                    try blocks(item.children, own), indent: max(14, own.text.size * 1.7), marker: marker,
                    isRightToLeft: own.direction == .rtl, staysWhole: own.staysWhole))
            made.append(.space(own.below ?? 2))
        }
    }

    // MARK: text

    private func inline(_ node: MarkupNode, _ style: PageStyle, _ text: inout RunCollector) throws(DocumentRefusal) {
        guard case .element(let element) = node else {
            if case .text(let words, _) = node { text.add(words, style.text) }
            return
        }
        guard Self.inlineElements.contains(element.name) else {
            let known = Self.blockElements.union(Self.inlineElements).union(["header", "footer", "page"])
            throw element.refusal(
                known.contains(element.name) || PageStyle.tableElements.contains(element.name)
                    ? "<\(element.name)> is not allowed here"
                    : "there is no <\(element.name)> on a page; known are \(known.union(PageStyle.tableElements).sorted().joined(separator: ", "))"
            )
        }
        var style = try styled(element, style, more: element.name == "a" ? ["href"] : [])
        switch element.name {
        case "br": return text.lineBreak(style.text)
        case "page-number", "page-count":
            guard isAtMargin else { throw element.refusal("<\(element.name)> is not allowed in <header> or <footer>") }
            return text.count(element.name == "page-number" ? .page : .count, style.text)
        default: break
        }
        if let fill = style.fill { style.text.background = fill }
        guard style.borders.isEmpty, style.width == nil, style.height == nil else {
            throw element.refusal("border, width and height are not allowed on <\(element.name)>")
        }
        for child in element.children { try inline(child, style, &text) }
    }
}
