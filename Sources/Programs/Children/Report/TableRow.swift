import CPango
import Pages

/// A row with its cells laid out.
struct TableRow {
    struct Cell {
        var x: Double
        var width: Double
        var pieces: [Piece]
        var padding: Double
        var fill: PageColor?
        var borders: [PageEdge: PageLine]
        var place: CellPlace

        var height: Double { pieces.reduce(0) { $0 + $1.height } + 2 * padding }
    }

    /// What the rows of a table share.
    final class Table {
        var headers: [TableRow] = []
    }

    var cells: [Cell]
    var inset: Double
    var isHeader: Bool
    let table: Table
    let canvas: PDFCanvas

    var height: Double { cells.map(\.height).max() ?? 0 }

    func drawing() -> (Double, Double) -> Void {
        let (cells, height, canvas) = (cells, height, canvas)
        return { x, y in
            for cell in cells { Self.draw(cell, height, x + cell.x, y, on: canvas) }
        }
    }

    private static func draw(_ cell: Cell, _ height: Double, _ x: Double, _ y: Double, on canvas: PDFCanvas) {
        if let fill = cell.fill {
            cairo_set_source_rgb(canvas.cairo, fill.red, fill.green, fill.blue)
            cairo_rectangle(canvas.cairo, x, y, cell.width, height)
            cairo_fill(canvas.cairo)
        }
        let slack = height - cell.height
        var at = y + cell.padding + (cell.place == .bottom ? slack : cell.place == .middle ? slack / 2 : 0)
        for piece in cell.pieces {
            piece.draw(x + cell.padding + piece.inset, at)
            at += piece.height
        }
        for (edge, line) in cell.borders where line.width > 0 {
            cairo_set_source_rgb(canvas.cairo, line.color.red, line.color.green, line.color.blue)
            cairo_set_line_width(canvas.cairo, line.width)
            let (right, low) = (x + cell.width, y + height)
            let (from, to) =
                switch edge {
                case .top: ((x, y), (right, y))
                case .bottom: ((x, low), (right, low))
                case .left: ((x, y), (x, low))
                case .right: ((right, y), (right, low))
                }
            cairo_move_to(canvas.cairo, from.0, from.1)
            cairo_line_to(canvas.cairo, to.0, to.1)
            cairo_stroke(canvas.cairo)
        }
    }

    /// What of the row fits into a height, and the rest; nil: nothing does.
    ///
    /// - Parameter forced: at the top of a page one piece of each cell is taken however high it is
    func split(at room: Double, forced: Bool) -> (TableRow, TableRow)? {
        var (first, rest) = (self, self)
        var taken = 0
        for index in cells.indices {
            let cell = cells[index]
            var (height, count) = (2 * cell.padding, 0)
            while count < cell.pieces.count, height + cell.pieces[count].height <= room {
                height += cell.pieces[count].height
                count += 1
            }
            if count == 0, forced, !cell.pieces.isEmpty { count = 1 }
            first.cells[index].pieces = Array(cell.pieces.prefix(count))
            rest.cells[index].pieces = Array(cell.pieces.dropFirst(count).drop { $0.isSpace })
            first.cells[index].place = .top
            rest.cells[index].place = .top
            taken += count
        }
        guard taken > 0, rest.cells.contains(where: { !$0.pieces.isEmpty }) else { return nil }
        return (first, rest)
    }
}
