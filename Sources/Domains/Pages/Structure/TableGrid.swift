/// A grid of ruled lines: where its rows and columns begin and end, and which neighbouring slots no line separates.
struct TableGrid {
    var box: Box
    /// The heights of the lines across, and the places of those down.
    var rows: [Double]
    var columns: [Double]
    /// By slot, row by row: the first row and column of the cell that it belongs to.
    private(set) var heads: [Int] = []

    private static let mostRows = 400
    private static let mostColumns = 60

    /// `unit`: how long a point is.
    static func all(_ rulings: Rulings, unit: Double) -> [TableGrid] {
        let near = 3 * unit
        let lines = rulings.across.map { (box: $0, isAcross: true) } + rulings.down.map { (box: $0, isAcross: false) }
        guard !lines.isEmpty, lines.count <= Rulings.most else { return [] }
        var parents = Array(lines.indices)
        func root(_ index: Int) -> Int {
            var index = index
            while parents[index] != index {
                parents[index] = parents[parents[index]]
                index = parents[index]
            }
            return index
        }
        for one in lines.indices {
            for other in 0..<one where touch(lines[one].box, lines[other].box, near) {
                parents[root(one)] = root(other)
            }
        }
        let groups = Dictionary(grouping: lines.indices, by: root)
        return groups.values.compactMap { members in
            let across = members.filter { lines[$0].isAcross }.map { lines[$0].box }
            let down = members.filter { !lines[$0].isAcross }.map { lines[$0].box }
            return TableGrid(across: across, down: down, near: near)
        }.sorted { ($0.box.top, $0.box.left) < ($1.box.top, $1.box.left) }
    }

    private static func touch(_ one: Box, _ other: Box, _ near: Double) -> Bool {
        one.left <= other.right + near && other.left <= one.right + near && one.top <= other.bottom + near
            && other.top <= one.bottom + near
    }

    private init?(across: [Box], down: [Box], near: Double) {
        rows = Self.places(across.map { (($0.top + $0.bottom) / 2, $0.width) }, near)
        columns = Self.places(down.map { (($0.left + $0.right) / 2, $0.height) }, near)
        box = (across + down).dropFirst().reduce((across + down)[0]) { $0.union($1) }
        // A table without lines at its sides has them where the lines across end.
        if rows.count >= 3, columns.count >= 1 {
            if columns[0] - box.left > 4 * near { columns.insert(box.left, at: 0) }
            if box.right - columns[columns.count - 1] > 4 * near { columns.append(box.right) }
        }
        guard rows.count >= 3, columns.count >= 3, rows.count <= Self.mostRows, columns.count <= Self.mostColumns else {
            return nil
        }
        merge(across, down, near)
        guard Set(heads).count >= 4 else { return nil }
    }

    private static func places(_ lines: [(at: Double, length: Double)], _ near: Double) -> [Double] {
        var places: [(sum: Double, weight: Double, last: Double)] = []
        for line in lines.sorted(by: { $0.at < $1.at }) {
            if let place = places.last, line.at - place.last <= near {
                places[places.count - 1] = (place.sum + line.at * line.length, place.weight + line.length, line.at)
            } else {
                places.append((line.at * line.length, line.length, line.at))
            }
        }
        return places.filter { $0.weight > 0 }.map { $0.sum / $0.weight }
    }

    private mutating func merge(_ across: [Box], _ down: [Box], _ near: Double) {
        let (height, width) = (rows.count - 1, columns.count - 1)
        heads = Array(0..<height * width)
        func isCovered(_ spans: [(Double, Double)], _ from: Double, _ to: Double) -> Bool {
            let covered = spans.reduce(0) { $0 + max(0, min($1.1, to) - max($1.0, from)) }
            return covered >= 0.5 * (to - from)
        }
        let edges = rows.map { row in
            across.filter { abs(($0.top + $0.bottom) / 2 - row) <= near * 1.5 }.map { ($0.left, $0.right) }
        }
        let sides = columns.map { column in
            down.filter { abs(($0.left + $0.right) / 2 - column) <= near * 1.5 }.map { ($0.top, $0.bottom) }
        }
        for row in 0..<height {
            for column in 0..<width {
                let slot = row * width + column
                if column > 0, !isCovered(sides[column], rows[row], rows[row + 1]) { join(slot - 1, slot) }
                if row > 0, !isCovered(edges[row], columns[column], columns[column + 1]) { join(slot - width, slot) }
            }
        }
        for slot in heads.indices { heads[slot] = head(slot) }
    }

    private func head(_ slot: Int) -> Int {
        var slot = slot
        while heads[slot] != slot { slot = heads[slot] }
        return slot
    }

    private mutating func join(_ one: Int, _ other: Int) {
        let (one, other) = (head(one), head(other))
        heads[max(one, other)] = min(one, other)
    }

    /// The cell at this place: its first slot.
    func cell(x: Double, y: Double) -> Int? {
        guard x >= columns[0], x <= columns[columns.count - 1], y >= rows[0], y <= rows[rows.count - 1] else {
            return nil
        }
        let row = (rows.firstIndex { $0 > y } ?? rows.count - 1) - 1
        let column = (columns.firstIndex { $0 > x } ?? columns.count - 1) - 1
        return heads[max(0, row) * (columns.count - 1) + max(0, column)]
    }

    /// How many rows and columns a cell takes.
    func spans() -> [Int: (rows: Int, columns: Int)] {
        let width = columns.count - 1
        var ends: [Int: (row: Int, column: Int)] = [:]
        for (slot, head) in heads.enumerated() {
            let end = ends[head] ?? (0, 0)
            ends[head] = (max(end.row, slot / width), max(end.column, slot % width))
        }
        return Dictionary(
            uniqueKeysWithValues: ends.map { head, end in
                (head, (end.row - head / width + 1, max(1, end.column - head % width + 1)))
            })
    }
}
