/// A form in which the text of a document with its structure is written, page by page.
package enum StructureFormat: String, Sendable, CaseIterable {
    case markdown, hocr, alto

    package var mimeType: String {
        switch self {
        case .markdown: "text/markdown; charset=utf-8"
        case .hocr: "application/xhtml+xml"
        case .alto: "application/xml"
        }
    }

    package func opening(title: String) -> String {
        switch self {
        case .markdown: ""
        case .hocr: HOCRWriter.opening(title: title)
        case .alto: ALTOWriter.opening(title: title)
        }
    }

    package func page(_ number: Int, _ text: PageText) -> String {
        let structure = PageStructure(of: text)
        switch self {
        case .markdown: return "<!-- page \(number) -->\n\n" + MarkdownWriter.page(structure)
        case .hocr: return HOCRWriter(number, text).page(structure)
        case .alto: return ALTOWriter(number, text).page(structure)
        }
    }

    package var closing: String {
        switch self {
        case .markdown: ""
        case .hocr: "</body>\n</html>\n"
        case .alto: "</Layout>\n</alto>\n"
        }
    }
}

/// The pixels that hOCR and ALTO speak of: a page's own text is measured in points, which are too coarse for whole numbers.
struct MarkupScale {
    let factor: Double
    let dpi: Double

    init(_ page: PageText) {
        factor = page.dpi < 150 ? 300 / page.dpi : 1
        dpi = page.dpi * factor
    }

    func whole(_ length: Double) -> Int { Int((length * factor).rounded()) }
}

extension String {
    /// For the content of XML elements and attributes. What XML can not hold, becomes U+FFFD.
    package var escapedForXML: String {
        var escaped = ""
        escaped.reserveCapacity(utf8.count)
        for scalar in unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            case "'": escaped += "&#39;"
            case "\t", "\n", "\r": escaped += " "
            default:
                let isAllowed = scalar.value >= 0x20 && scalar.value != 0xFFFE && scalar.value != 0xFFFF
                escaped.unicodeScalars.append(isAllowed ? scalar : "\u{FFFD}")
            }
        }
        return escaped
    }
}
