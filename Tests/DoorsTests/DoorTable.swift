import Foundation
import Postgres
import TestSupport

/// The doors as the database has them, and `deploy/guides/doors.md`, which says what comes of a call by a door's rule.
struct DoorTable {
    enum Outcome: String, Sendable {
        case open, hidden, refused, closed
    }

    /// A row of `millrace.door`.
    struct Door {
        let room: String
        let name: String
        let roles: Set<String>
        /// As the page names it, such as `actor person`.
        let rule: String
        /// What a call names, `person`; else the rule.
        let about: String
        let isView: Bool

        var arguments: String { DoorCalls.arguments[name] ?? "" }
        var isForClients: Bool { roles.contains("client") }

        /// Whether its line lets a caller of the tests' in. The owner may do everything, but for saying who people are.
        func isOpen(to caller: String) -> Bool {
            switch caller {
            case "none": false
            case "owner": name != "right_claims"
            case "worker", "admin": roles.contains(caller)
            default: isForClients
            }
        }
    }

    struct Unreadable: Error {
        let line: String
    }

    static let roles = [
        "none", "anon", "signed in", "no claims", "client", "back end", "worker", "admin", "owner",
    ]

    /// By rule, object and role.
    private(set) var outcomes: [String: [String: [String: Outcome]]] = [:]
    /// Kinds whose arguments name a row.
    private(set) var kinds: [String] = []

    init(path: String) throws {
        var heading = ""
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            if line.hasPrefix("## ") {
                heading = String(line.dropFirst(3))
            } else if line.hasPrefix("|"), !line.hasPrefix("|---"), !line.hasPrefix("| rule") {
                let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
                if heading == "Kinds whose arguments name a row" {
                    if cells[0].hasPrefix("`") { kinds.append(cells[0].trimmingCharacters(in: ["`"])) }
                } else if heading == "Rules" {
                    try read(rule: cells, line: line)
                }
            }
        }
    }

    private mutating func read(rule cells: [String], line: Substring) throws {
        guard cells.count == 2 + Self.roles.count else { throw Unreadable(line: String(line)) }
        for (role, word) in zip(Self.roles, cells.dropFirst(2)) {
            guard let outcome = Outcome(rawValue: word) else { throw Unreadable(line: String(line)) }
            outcomes[cells[0], default: [:]][cells[1], default: [:]][role] = outcome
        }
    }

    /// All doors, functions and views.
    static func doors(on owner: Connection) async throws -> [Door] {
        try await owner.query(
            """
            select d.room, d.name, array_to_string(d.roles, ','), d.rule, coalesce(d.about, d.rule), concat_ws(' ', d.rule, d.about), d.is_view
              from millrace.door d order by d.name
            """
        ) { row throws(PostgresError) in
            Door(
                room: try row.string(0), name: try row.string(1),
                roles: Set(try row.string(2).split(separator: ",").map(String.init)), rule: try row.string(5),
                about: try row.string(4), isView: try row.bool(6))
        }
    }
}
