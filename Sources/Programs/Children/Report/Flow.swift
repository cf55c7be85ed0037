import Pages

/// Something of a certain height that is drawn in one go.
struct Piece {
    var height: Double
    /// From the left side of the column.
    var inset = 0.0
    /// Of its first line, from the top.
    var baseline: Double?
    /// Nothing but distance: it is left out at the top of a page.
    var isSpace = false
    var staysWithNext = false
    var draw: (_ x: Double, _ y: Double) -> Void

    static func space(_ height: Double) -> Piece { Piece(height: height, isSpace: true) { _, _ in } }

    /// Several as one.
    static func stack(_ pieces: [Piece]) -> Piece {
        Piece(height: pieces.reduce(0) { $0 + $1.height }, baseline: pieces.first?.baseline) { x, y in
            var y = y
            for piece in pieces {
                piece.draw(x + piece.inset, y)
                y += piece.height
            }
        }
    }
}

enum FlowItem {
    case piece(Piece)
    case row(TableRow)
    case pageBreak

    /// How much of it must fit at the least.
    var least: Double {
        switch self {
        case .piece(let piece): piece.height
        case .row(let row): min(row.height, 60)
        case .pageBreak: 0
        }
    }
}

/// Lays items on pages.
struct Paginator {
    typealias Placed = (x: Double, y: Double, draw: (Double, Double) -> Void)
    static let mostPages = 500

    let left: Double
    let top: Double
    let bottom: Double
    private(set) var pages: [[Placed]] = [[]]
    private var y: Double
    private var isFresh = true

    init(left: Double, top: Double, bottom: Double) {
        (self.left, self.top, self.bottom) = (left, top, bottom)
        y = top
    }

    private mutating func next() throws(DocumentRefusal) {
        guard pages.count < Self.mostPages else {
            throw DocumentRefusal(.tooManyPages, "there would be more than \(Self.mostPages) pages")
        }
        pages.append([])
        y = top
        isFresh = true
    }

    private mutating func put(_ height: Double, inset: Double, _ draw: @escaping (Double, Double) -> Void) {
        pages[pages.count - 1].append((left + inset, y, draw))
        y += height
        isFresh = false
    }

    mutating func place(_ items: [FlowItem]) throws(DocumentRefusal) {
        var at = 0
        while at < items.count {
            switch items[at] {
            case .pageBreak: if !isFresh { try next() }
            case .piece(let piece) where piece.isSpace:
                if !isFresh { y += piece.height }
            case .piece(let piece):
                var needed = piece.height
                if piece.staysWithNext { needed += Self.company(items, from: at + 1) }
                if y + needed > bottom, !isFresh, needed <= bottom - top || y + piece.height > bottom { try next() }
                put(piece.height, inset: piece.inset, piece.draw)
            case .row(let row): try place(row)
            }
            at += 1
        }
    }

    /// The height of what a heading stays with: other headings, and the beginning of what follows.
    private static func company(_ items: [FlowItem], from start: Int) -> Double {
        var height = 0.0
        for item in items[start...] {
            guard case .piece(let piece) = item else { return height + item.least }
            height += piece.height
            if !piece.isSpace, !piece.staysWithNext { return height }
        }
        return height
    }

    private mutating func place(_ row: TableRow) throws(DocumentRefusal) {
        var rest = row
        let headers = row.table.headers
        let headerHeight = headers.reduce(0) { $0 + $1.height }
        while true {
            if y + rest.height <= bottom + 0.01 {
                return put(rest.height, inset: row.inset, rest.drawing())
            }
            let room = bottom - top - (row.isHeader ? 0 : headerHeight)
            // A row that fits on a page goes to the next one; a higher one goes on there.
            if rest.height > room,
                let (first, more) = rest.split(at: bottom - y, forced: isFresh || y <= top + headerHeight + 0.01)
            {
                put(first.height, inset: row.inset, first.drawing())
                rest = more
            } else if isFresh {
                // Nothing can be split off: it reaches into the margin rather than for ever to the next page.
                return put(rest.height, inset: row.inset, rest.drawing())
            }
            try next()
            guard !row.isHeader, headerHeight <= (bottom - top) / 2 else { continue }
            for header in headers { put(header.height, inset: row.inset, header.drawing()) }
            // The row may still be too high for what is left; then it is split, or drawn as it is.
            if rest.height > bottom - y, rest.split(at: bottom - y, forced: true) == nil {
                return put(rest.height, inset: row.inset, rest.drawing())
            }
        }
    }
}
