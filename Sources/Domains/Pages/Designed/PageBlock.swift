/// A request to draw pages from the small HTML. The pictures' bytes follow it in their order.
package struct PageDesign: Codable, Sendable {
    package struct Picture: Codable, Sendable, Equatable {
        /// As the HTML names it, behind cid:
        package var name: String
        package var isJPEG: Bool
        package var width: Int
        package var height: Int
        package var count: Int

        package init(name: String, isJPEG: Bool, width: Int, height: Int, count: Int) {
            self.name = name
            self.isJPEG = isJPEG
            self.width = width
            self.height = height
            self.count = count
        }
    }

    package var title: String
    package var html: String
    package var pictures: [Picture]

    package init(title: String, html: String, pictures: [Picture] = []) {
        self.title = title
        self.html = html
        self.pictures = pictures
    }
}

/// What the program that draws is asked for.
package enum ReportRequest: Codable, Sendable {
    case report(Report)
    case design(PageDesign)
}

/// Text of one look.
package struct TextRun: Sendable, Equatable {
    package enum Counter: Sendable { case page, count }

    package var text: String
    package var style: TextStyle
    /// In the place of the text.
    package var counter: Counter?
}

package struct PageParagraph: Sendable, Equatable {
    package var runs: [TextRun]
    package var alignment: PageAlignment
    package var direction: PageDirection
    package var lineHeight: Double
    /// A heading is not the last of its page.
    package var staysWithNext = false
}

package struct PagePicture: Sendable, Equatable {
    package var name: String
    package var width: PageLength?
    package var height: PageLength?
    package var alignment: PageAlignment
    package var direction: PageDirection
    package var line: Int
}

package struct PageTable: Sendable, Equatable {
    package struct Cell: Sendable, Equatable {
        package var blocks: [PageBlock]
        package var span = 1
        package var width: PageLength?
        package var padding: Double
        package var fill: PageColor?
        package var borders: [PageEdge: PageLine]
        package var place: CellPlace
    }

    package var rows: [[Cell]] = []
    /// How many of the rows stand again at the top of each page.
    package var headers = 0
    package var columns = 0
    package var width: PageLength?
    package var isRightToLeft = false
    package var line: Int
}

package indirect enum PageBlock: Sendable, Equatable {
    case text(PageParagraph)
    case picture(PagePicture)
    case rule(PageLine)
    case space(Double)
    case pageBreak
    case table(PageTable)
    /// Blocks moved in by some points, from where their lines begin; with something before the first of them.
    case group([PageBlock], indent: Double, marker: PageParagraph?, isRightToLeft: Bool, staysWhole: Bool)
}

package struct PageSheet: Sendable, Equatable {
    package var width = 595.28
    package var height = 841.89
    package var margin = 56.0
    package var header: [PageBlock] = []
    package var footer: [PageBlock] = []
    package var body: [PageBlock] = []

    package init() {}
}

extension PageParagraph {
    /// The same in parts of some bytes at most, cut at a blank where there is one: Pango measures a text as one line before it wraps it, in an integer
    /// that is too small for a very long one.
    package func parts(longest: Int = 20_000) -> [PageParagraph] {
        guard runs.reduce(0, { $0 + $1.text.utf8.count }) > longest else { return [self] }
        var (parts, current, room) = ([PageParagraph](), [TextRun](), longest)
        func ended() -> PageParagraph {
            var part = self
            part.runs = current
            return part
        }
        for run in runs {
            var rest = run
            while rest.text.utf8.count > room {
                let limit = rest.text.utf8.index(rest.text.utf8.startIndex, offsetBy: room)
                let head = rest.text[..<rest.text.rounded(limit)]
                let cut = head.lastIndex { $0 == " " || $0 == "\n" }.map { rest.text.index(after: $0) } ?? head.endIndex
                var first = rest
                first.text = String(rest.text[..<cut])
                if !first.text.isEmpty { current.append(first) }
                rest.text = String(rest.text[cut...])
                if !current.isEmpty { parts.append(ended()) }
                (current, room) = ([], longest)
            }
            room -= rest.text.utf8.count
            if !rest.text.isEmpty || rest.counter != nil { current.append(rest) }
        }
        if !current.isEmpty { parts.append(ended()) }
        return parts
    }
}

extension String {
    /// The nearest beginning of a letter at or before a byte.
    fileprivate func rounded(_ index: String.Index) -> String.Index {
        var index = index
        while index > startIndex, index.samePosition(in: self) == nil { index = utf8.index(before: index) }
        return index
    }
}
