import JSON
package import Postgres

/// A function that apps may call, as the catalogue describes it.
package struct GatewayDoor: Sendable, Equatable {
    package struct Argument: Sendable, Equatable {
        package var name: String
        package var type: SQLType
        package var isRequired: Bool
        /// One of these it must be; empty: anything of its type.
        package var words: [String] = []
    }

    package struct Column: Sendable, Equatable {
        package var name: String
        /// In the database's words.
        package var type: String
        /// It is one of these; empty: anything of its type.
        package var words: [String] = []
    }

    package enum Result: Sendable, Equatable {
        case nothing
        case value(type: String)
        case row([Column])
        case rows([Column])
        /// A list of values.
        case values(type: String)
    }

    package var name: String
    package var arguments: [Argument]
    package var result: Result
    package var comment: String?

    /// How its answer becomes JSON.
    var outcome: SQL.Outcome {
        switch result {
        case .nothing: .nothing
        case .value: .value
        case .row: .row
        case .rows(let columns): columns.count == 1 ? .column(columns[0].name) : .rows
        case .values: .rows
        }
    }

    /// nil: it takes something that no call of an app can give.
    init?(name: String, arguments: JSONValue, result: JSONValue, comment: String?) {
        self.name = name
        self.comment = comment
        self.arguments = []
        for argument in arguments.items ?? [] {
            guard let name = argument["name"]?.text, let type = argument["type"]?.text.flatMap({ SQLType($0) }),
                case .bool(let isRequired)? = argument["required"]
            else { return nil }
            self.arguments.append(
                Argument(name: name, type: type, isRequired: isRequired, words: Self.words(argument)))
        }
        let columns = (result["columns"]?.items ?? []).compactMap { column -> Column? in
            guard let name = column["name"]?.text, let type = column["type"]?.text else { return nil }
            return Column(name: name, type: type, words: Self.words(column))
        }
        let type = result["type"]?.text
        switch (result["kind"]?.text, type) {
        case ("void", _): self.result = .nothing
        case ("scalar", let type?): self.result = .value(type: type)
        case ("row", _): self.result = .row(columns)
        case ("rows", let type?) where columns.isEmpty: self.result = .values(type: type)
        case ("rows", _): self.result = .rows(columns)
        default: return nil
        }
    }

    private static func words(_ described: JSONValue) -> [String] {
        (described["words"]?.items ?? []).compactMap(\.text)
    }
}
