import Faults
import JSON
import Postgres

/// JSON values as parameters of a call. Numbers keep their digits; what Postgres reads better itself, it reads.
enum GatewayValues {
    /// The statement of a call with these named arguments.
    static func statement(_ door: GatewayDoor, _ arguments: [JSONValue.Member]) throws(GatewayProblem) -> Statement {
        for member in arguments where !door.arguments.contains(where: { $0.name == member.key }) {
            let names = door.arguments.map(\.name)
            throw GatewayProblem(
                .invalid, "\(door.name) has no parameter of that name", field: String(member.key.prefix(100)),
                hint: names.isEmpty ? "it takes none" : "it takes \(names.joined(separator: ", "))")
        }
        var given: [(name: String, type: SQLType)] = []
        var parameters: [Postgres.Parameter] = []
        // In the catalogue's order, so that the same parameters make the same statement.
        for argument in door.arguments {
            guard let member = arguments.first(where: { $0.key == argument.name }) else {
                if argument.isRequired {
                    throw GatewayProblem(.invalid, "\(door.name) needs \(argument.name)", field: argument.name)
                }
                continue
            }
            given.append((argument.name, argument.type))
            parameters.append(try parameter(member.value, of: argument))
        }
        return Statement(.call(door.name, in: "millrace", given, giving: door.outcome), parameters)
    }

    private static func parameter(
        _ value: JSONValue, of argument: GatewayDoor.Argument
    ) throws(GatewayProblem) -> Postgres.Parameter {
        switch argument.type {
        case .plain(.jsonb), .plain(.json):
            return .json(value == .null ? nil : value.compact)
        case .plain(let type):
            return .text(try text(value, of: type, argument.name))
        case .list(let type):
            if value == .null { return .texts(nil) }
            guard let items = value.items else {
                throw wrong(argument.name, "a list", value)
            }
            var texts: [String?] = []
            for (index, item) in items.enumerated() {
                texts.append(try text(item, of: type, "\(argument.name)[\(index)]"))
            }
            return .texts(texts)
        }
    }

    /// The value's text, which the statement casts to the type.
    private static func text(
        _ value: JSONValue, of type: SQLType.Plain, _ field: String
    ) throws(GatewayProblem) -> String? {
        if value == .null { return nil }
        switch type {
        case .jsonb, .json: return value.compact
        case .boolean:
            guard case .bool(let truth) = value else { throw wrong(field, "true or false", value) }
            return truth ? "true" : "false"
        case .smallint: return try whole(value, Int16.self, field)
        case .integer: return try whole(value, Int32.self, field)
        case .bigint: return try whole(value, Int64.self, field)
        case .numeric, .real, .double:
            guard case .number(let digits) = value else { throw wrong(field, "a number", value) }
            return digits
        case .uuid:
            guard let text = value.text else { throw wrong(field, "a UUID as text", value) }
            guard isUUID(text) else {
                throw GatewayProblem(
                    .invalid, "\(field) is not a UUID", field: field,
                    hint: "send one such as 3f2504e0-4f89-41d3-9a0c-0305e82c3301")
            }
            return text
        case .text: return try plain(value, "a text", field)
        case .date: return try plain(value, "a date such as \"2030-01-31\"", field, RFC3339.isDate)
        case .timestamp: return try plain(value, "a time such as \"2030-01-31T12:00:00Z\"", field, RFC3339.isTime)
        case .time: return try plain(value, "a time of day such as \"22:00\"", field, RFC3339.isTimeOfDay)
        case .interval: return try plain(value, "a span of time such as \"90 minutes\"", field)
        case .bytea: return try plain(value, "bytes as a text such as \"\\\\x00ff\"", field)
        }
    }

    private static func plain(
        _ value: JSONValue, _ wanted: String, _ field: String, _ fits: (String) -> Bool = { _ in true }
    ) throws(GatewayProblem) -> String {
        guard let text = value.text else { throw wrong(field, wanted, value) }
        guard fits(text) else { throw GatewayProblem(.invalid, "\(field) should be \(wanted)", field: field) }
        return text
    }

    /// Also as a text, for clients whose numbers are not exact.
    private static func whole<Number: FixedWidthInteger>(
        _ value: JSONValue, _ type: Number.Type, _ field: String
    ) throws(GatewayProblem) -> String {
        let digits: String
        switch value {
        case .number(let text), .string(let text): digits = text
        case .int(let number): digits = String(number)
        case .null, .bool, .double, .array, .object, .raw: throw wrong(field, "a whole number", value)
        }
        guard !digits.hasPrefix("+"), let number = Number(digits) else {
            throw GatewayProblem(
                .invalid, "\(field) is not a whole number from \(Number.min) to \(Number.max)", field: field)
        }
        return String(number)
    }

    private static func wrong(_ field: String, _ wanted: String, _ value: JSONValue) -> GatewayProblem {
        GatewayProblem(.invalid, "\(field) should be \(wanted), and is \(value.word)", field: field)
    }

    private static func isUUID(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count == 36 else { return false }
        return bytes.enumerated().allSatisfy { index, byte in
            [8, 13, 18, 23].contains(index)
                ? byte == UInt8(ascii: "-") : byte &- 48 < 10 || (byte | 0x20) &- 97 < 6
        }
    }

    /// The argument whose value Postgres could not read: the one that its sentence ends with. nil: none, or it could be several.
    static func unreadable(_ error: PostgresError, among arguments: [JSONValue.Member]) -> String? {
        guard case .server(let server) = error, server.sqlState.hasPrefix("22") else { return nil }
        func isNamed(_ value: JSONValue) -> Bool {
            if let text = value.text { return !text.isEmpty && server.message.contains("\"\(text)\"") }
            return value.items?.contains(where: isNamed) ?? false
        }
        let named = arguments.filter { isNamed($0.value) }
        return named.count == 1 ? named[0].key : nil
    }
}
