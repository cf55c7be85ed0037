/// The text of a statement. Only a literal makes one, or `call` from names of the catalogue, so that no value is ever pasted into it.
package struct SQL: ExpressibleByStringLiteral, Hashable, Sendable {
    package let text: String

    package init(stringLiteral literal: StaticString) {
        text = literal.description
    }

    init(text: String) {
        self.text = text
    }

    /// A script that this project ships: a migration or a function file.
    package static func shipped(_ bytes: [UInt8]) -> SQL {
        SQL(text: String(decoding: bytes, as: UTF8.self))
    }

    /// A statement that sets settings of its transaction and calls a function that reads them, in one round trip. The literal calls the function
    /// `from named`, and `%1` in it stands for the first argument: only that makes Postgres set before it calls.
    /// - Parameters:
    ///   - settings: Their names. Their values are the parameters from `number` on.
    ///   - type: The type of the first parameter.
    package static func setting(
        _ settings: [StaticString], from number: Int, type: StaticString, _ template: StaticString
    ) -> SQL {
        let set = settings.enumerated().map { "set_config('\($1)', $\(number + $0), true) as said_\($0)" }
        let first = "case when named.said_0 is not null then $1::\(type) end"
        return SQL(
            text: "with named as materialized (select \(set.joined(separator: ", ")))\n"
                + template.description.replacing("%1", with: first))
    }

    /// Fills each `%I` of a literal with a name that libpq has quoted.
    static func quoted(_ template: StaticString, names: [String]) -> SQL {
        var parts = template.description.split(separator: "%I", omittingEmptySubsequences: false)[...]
        var text = String(parts.removeFirst())
        for (name, part) in zip(names, parts) {
            text += name + part
        }
        return SQL(text: text)
    }
}

/// A statement and its values.
package struct Statement: Sendable {
    package var sql: SQL
    package var parameters: [Parameter]

    package init(_ sql: SQL, _ parameters: [Parameter] = []) {
        self.sql = sql
        self.parameters = parameters
    }
}

/// Which statement of a transaction failed, and how; the index after the last one is the commit's.
package struct FailedStatement: Error, Sendable, Equatable {
    package var index: Int
    package var error: PostgresError

    package init(index: Int, error: PostgresError) {
        self.index = index
        self.error = error
    }
}
