/// The types that a function's parameter may have when its call is made from the catalogue, in the spelling of `format_type`. Only these
/// words ever stand in a statement, so no text from elsewhere can.
package enum SQLType: Sendable, Hashable {
    package enum Plain: String, Sendable, CaseIterable {
        case text, uuid, boolean, smallint, integer, bigint, numeric, real, date, interval, jsonb, json, bytea
        case double = "double precision"
        case timestamp = "timestamp with time zone"
        case time = "time without time zone"
    }

    case plain(Plain)
    case list(Plain)

    /// nil: a type that no call is made with.
    package init?(_ name: String) {
        let isList = name.hasSuffix("[]")
        guard let plain = Plain(rawValue: isList ? String(name.dropLast(2)) : name) else { return nil }
        self = isList ? .list(plain) : .plain(plain)
    }

    package var name: String {
        switch self {
        case .plain(let plain): plain.rawValue
        case .list(let plain): plain.rawValue + "[]"
        }
    }
}

extension SQL {
    /// What a function gives back; each is encoded as one JSON text.
    package enum Outcome: Sendable, Equatable {
        /// No value: JSON's null.
        case nothing
        /// One value.
        case value
        /// One object of several columns.
        case row
        /// A list: of objects, or of values where the function has one unnamed column.
        case rows
        /// A list of objects with this only column.
        case column(String)
    }

    /// A call of a function of the schema by its name and named parameters. The names are quoted here, the values are parameters `$1`, `$2`
    /// and so on in the order given, and the answer is one row with one JSON text, which Postgres makes.
    package static func call(
        _ function: String, in schema: String, _ parameters: [(name: String, type: SQLType)], giving outcome: Outcome
    ) -> SQL {
        let arguments = parameters.enumerated().map { index, parameter in
            "\(identifier(parameter.name)) => $\(index + 1)::\(parameter.type.name)"
        }
        let call = "\(identifier(schema)).\(identifier(function))(\(arguments.joined(separator: ", ")))"
        let row = identifier("millrace answer")
        switch outcome {
        case .nothing: return SQL(text: "select 'null'::text from \(call) as \(row)")
        case .value: return SQL(text: "select to_json(\(call))::text")
        case .row: return SQL(text: "select to_json(\(row))::text from \(call) as \(row)")
        case .rows:
            return SQL(
                text: "select coalesce('[' || string_agg(coalesce(to_json(\(row))::text, 'null'), ',') || ']', '[]') "
                    + "from \(call) as \(row)")
        case .column(let name):
            return SQL(
                text: "select coalesce('[' || string_agg(json_build_object(\(literal(name)), \(row))::text, ',') "
                    + "|| ']', '[]') from \(call) as \(row)")
        }
    }

    /// Always in quotes, so that it is a name whatever stands in it.
    private static func identifier(_ name: String) -> String { "\"\(doubled("\"", in: name))\"" }

    /// In the form in which a backslash means the same whatever standard_conforming_strings says.
    private static func literal(_ text: String) -> String {
        "E'\(doubled("'", in: doubled("\\", in: text)))'"
    }

    /// By scalars and not by characters: a combining mark behind a quote must not hide it.
    private static func doubled(_ sign: Unicode.Scalar, in text: String) -> String {
        var out = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where scalar.value != 0 {
            out.append(scalar)
            if scalar == sign { out.append(scalar) }
        }
        return String(out)
    }
}
