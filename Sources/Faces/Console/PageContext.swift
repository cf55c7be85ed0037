import FoundationEssentials
import Listeners
import Postgres
import Templates

/// What a page is made from.
struct PageContext: Sendable {
    let request: Request
    let visitor: Visitor
    let reader: ConsoleReader
    let live: LiveLook
    /// Reads a blob by its name, on these connections; nil: this console has no store.
    let blobs: (@Sendable (String, Pool) async throws -> [UInt8]?)?
    let queries: SealedQuery
    /// Which sites may show the console in a frame; they stand around its own frames, too.
    var frames = ""
    var now = Date()

    func query(_ name: String) -> String? {
        guard let text = request.query(name), !text.isEmpty else { return nil }
        return text
    }

    func number(_ name: String) throws -> Int64? {
        guard let text = query(name) else { return nil }
        guard let number = Int64(text) else {
            throw ErrorAnswer(.invalid, "\(name) is not a number", field: name)
        }
        return number
    }

    /// The address of this page, without what it said after an action.
    var back: String { PageAddress.of(request) }

    /// The number in the path.
    func id(_ name: String = "id") throws -> Int64 {
        guard let number = Int64(request.parameter(name)) else {
            throw ErrorAnswer(.notFound, "that is not a number: \(request.parameter(name).prefix(40))")
        }
        return number
    }

    /// The UUID in the path.
    func uuid() throws -> String {
        let text = request.parameter("id")
        let lengths = text.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count)
        guard lengths == [8, 4, 4, 4, 12],
            text.utf8.allSatisfy({ $0 == 0x2D || Character(Unicode.Scalar($0)).isHexDigit })
        else { throw ErrorAnswer(.notFound, "that is not an id: \(text.prefix(40))") }
        return text
    }

    func json(_ sql: SQL, _ parameters: [Parameter] = []) async throws -> TemplateValue {
        try await reader.json(sql, parameters)
    }

    /// A part of a page. Where the database takes too long for it, or refuses it for now, a sentence stands in its place, and the rest is shown.
    func part(_ what: String, _ make: () async throws -> [ConsolePart]) async throws -> [ConsolePart] {
        do {
            return try await make()
        } catch let error as PostgresError where error.isOfOneStatement {
            return [.paragraph("\(what) cannot be shown now: \(error.description)", tone: "warn")]
        }
    }

    /// Shown to those whose role may do it; the database decides all the same.
    func mayAct(_ role: ConsoleRole = .operator) -> Bool { visitor.role >= role }
}

extension PostgresError {
    /// A statement took too long or found no room, and another may not: the database is there, and the visitor may ask.
    var isOfOneStatement: Bool {
        switch self {
        case .timedOut: true
        case .server(let error):
            error.sqlState == "57014" || error.sqlState.hasPrefix("53") && error.sqlState != "53300"
        default: false
        }
    }
}

/// A page by its path below /console.
struct ConsolePageRoute: Sendable {
    let path: String
    /// The room that it reads, if a database that has the console may lack it.
    var room: String?
    let make: @Sendable (PageContext) async throws -> ConsolePage

    func page(_ context: PageContext) async throws -> ConsolePage {
        do {
            return try await make(context)
        } catch let error as PostgresError where ["42P01", "42883"].contains(error.sqlState ?? "") {
            guard let room else { throw error }
            throw ErrorAnswer(
                .unavailable, "the room \(room) is not installed in this database",
                hint: "run: millrace rooms add \(room)")
        }
    }
}

/// Something that is no page: a picture, an event stream, an export.
struct ConsoleFileRoute: Sendable {
    let path: String
    let make: @Sendable (PageContext) async throws -> Response
}

/// Addresses of our own pages.
enum PageAddress {
    static func to(_ path: String, _ query: [(String, String?)] = []) -> String {
        let pairs = query.compactMap { name, value in value.map { "\(name)=\(encoded($0))" } }
        return ConsoleLayout.base + path + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
    }

    static func job(_ id: Int) -> String { to("/jobs/\(id)") }
    static func queue(_ name: String) -> String { to("/queue", [("name", name)]) }

    /// Of the page that was asked for, without what it said after an action.
    static func of(_ request: Request) -> String {
        let pairs = request.query.filter { $0.name != "said" }.map { "\(encoded($0.name))=\(encoded($0.value))" }
        return request.path + (pairs.isEmpty ? "" : "?" + pairs.joined(separator: "&"))
    }

    static func encoded(_ text: String) -> String {
        var out = ""
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"),
                UInt8(ascii: "~"):
                out.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let hex = String(byte, radix: 16, uppercase: true)
                out += "%" + (hex.utf8.count < 2 ? "0" : "") + hex
            }
        }
        return out
    }
}
