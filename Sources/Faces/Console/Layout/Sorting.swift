/// The order of a list: its address says it, and the headings of columns lead to others.
struct Sorting: Sendable {
    /// What the list is sorted by; nil: its own order.
    let key: String?
    /// From the end of the usual direction.
    let isReversed: Bool
    private let address: @Sendable (String) -> String

    private static let reversed = " reversed"

    /// - Parameters:
    ///   - text: `kind` or `kind reversed`; what is not among the keys counts for nothing.
    ///   - address: of the list in another order.
    init(_ text: String?, among keys: [String], address: @escaping @Sendable (String) -> String) {
        let isReversed = text?.hasSuffix(Self.reversed) ?? false
        let key = text.map { isReversed ? String($0.dropLast(Self.reversed.count)) : $0 }
        self.key = key.flatMap { keys.contains($0) ? $0 : nil }
        self.isReversed = isReversed && self.key != nil
        self.address = address
    }

    /// As the address has it.
    var text: String? { key.map { $0 + (isReversed ? Self.reversed : "") } }

    /// - Parameters:
    ///   - usual: how the column is sorted first.
    ///   - turns: it can be sorted the other way, too.
    func column(_ key: String, _ title: String, usual: Order, turns: Bool = true) -> ConsoleTable.Sort {
        let isHere = self.key == key
        let now = isReversed ? usual.other : usual
        let next = isHere && turns && !isReversed
        let to = next ? usual.other : usual
        return ConsoleTable.Sort(
            order: isHere ? now : nil, href: address(key + (next ? Self.reversed : "")),
            says: "Sort by \(title), \(to.rawValue)")
    }

    enum Order: String, Sendable {
        case ascending, descending

        var other: Order { self == .ascending ? .descending : .ascending }
    }
}

extension ConsoleTable {
    /// The link in a column's heading that sorts the list by it.
    struct Sort: Sendable {
        /// nil: the list is sorted by something else.
        let order: Sorting.Order?
        let href: String
        let says: String

        var mark: String {
            switch order {
            case .ascending: "↑"
            case .descending: "↓"
            case nil: "↕"
            }
        }
    }
}

extension RowColumn {
    func sorted(by sort: ConsoleTable.Sort?) -> RowColumn {
        var changed = column
        changed.sort = sort
        return RowColumn(column: changed, cell: cell)
    }
}
