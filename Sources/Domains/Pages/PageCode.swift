import Glibc

/// A bar code or its like on a page.
package struct PageCode: Codable, Sendable, Equatable {
    /// In lower case, without hyphens: code128, code39, ean13, itf, qrcode, datamatrix, aztec, pdf417 and others.
    package var symbology: String
    package var text: String
    /// In the same measure as the words of its page.
    package var box: Box

    package init(symbology: String, text: String, box: Box) {
        self.symbology = symbology
        self.text = text
        self.box = box
    }

    package init(zxing name: String, text: String, box: Box) {
        self.init(symbology: name.lowercased().filter { $0 != "-" }, text: text, box: box)
    }

    /// Of a page.
    package static let most = 100
    /// Bytes of one; the largest QR code has fewer.
    package static let longest = 8192

    /// An attacker may control the child that says it.
    package func check(_ raster: Raster) throws(DocumentRefusal) {
        let (width, height) = (Double(raster.width), Double(raster.height))
        guard !symbology.isEmpty, symbology.utf8.count <= 20,
            symbology.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) }),
            text.utf8.count <= 3 * Self.longest, box.isSound, box.left >= -width, box.right <= 2 * width,
            box.top >= -height, box.bottom <= 2 * height
        else { throw DocumentRefusal(.internal, "the program that reads codes said something impossible") }
    }

    /// A code that was found in a page's picture, where the page's words are.
    func placed(on page: PageText, drawn raster: Raster) -> PageCode {
        let (w, h) = (Double(raster.width), Double(raster.height))
        let shown = page.rotation % 180 == 0 ? (w, h) : (h, w)
        let (c, s) = (cos(page.skew * .pi / 180), sin(page.skew * .pi / 180))
        let scale = page.width / shown.0
        let corners = [(box.left, box.top), (box.right, box.top), (box.right, box.bottom), (box.left, box.bottom)]
            .map { x, y -> (Double, Double) in
                let (x, y) =
                    switch page.rotation {
                    case 90: (h - y, x)
                    case 180: (w - x, h - y)
                    case 270: (y, w - x)
                    default: (x, y)
                    }
                // Turned clockwise about the middle, as the page was.
                let (dx, dy) = (x - shown.0 / 2, y - shown.1 / 2)
                return ((c * dx - s * dy + shown.0 / 2) * scale, (s * dx + c * dy + shown.1 / 2) * scale)
            }
        let (xs, ys) = (corners.map(\.0), corners.map(\.1))
        var placed = self
        placed.box = Box(xs.min() ?? 0, ys.min() ?? 0, xs.max() ?? 0, ys.max() ?? 0)
        return placed
    }
}

extension PageText {
    /// With the codes that were found in its picture.
    package func with(_ codes: [PageCode], drawn raster: Raster) -> PageText {
        var text = self
        text.codes = codes.isEmpty ? nil : codes.map { $0.placed(on: self, drawn: raster) }
        return text
    }
}

/// What a page means for a document that is split at separators.
package enum PageSeparator: Sendable, Equatable {
    /// The page ends a document and is in none.
    case dropped
    /// The page begins a document.
    case kept

    /// nil: none of its codes separates.
    package init?(_ texts: some Sequence<String>) {
        let texts = texts.map { $0.trimmed.uppercased() }
        if texts.contains(where: { $0 == "MILLRACE:SPLIT:KEEP" || $0.hasPrefix("MILLRACE:SPLIT:KEEP:") }) {
            self = .kept
        } else if texts.contains(where: { Self.dropping.contains($0) }) {
            self = .dropped
        } else {
            return nil
        }
    }

    private static let dropping: Set<String> = [
        "MILLRACE:SPLIT", "PATCHT", "PATCH1", "PATCH2", "PATCH3", "PATCH4", "PATCH6",
    ]

    /// The parts of a document in their order; empty: it stays whole.
    ///
    /// - Parameter separators: by page, from 1.
    package static func parts(pages: Int, _ separators: [Int: PageSeparator]) -> [ClosedRange<Int>] {
        guard pages > 0 else { return [] }
        var (parts, first) = ([ClosedRange<Int>](), 1)
        for (page, separator) in separators.sorted(by: { $0.key < $1.key }) where (1...pages).contains(page) {
            if first < page { parts.append(first...page - 1) }
            first = separator == .kept ? page : page + 1
        }
        if first <= pages { parts.append(first...pages) }
        return parts == [1...pages] ? [] : parts
    }
}

extension String {
    fileprivate var trimmed: String {
        var text = self[...]
        while text.first?.isWhitespace == true { text.removeFirst() }
        while text.last?.isWhitespace == true { text.removeLast() }
        return String(text)
    }
}
