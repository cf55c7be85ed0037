import Foundation

/// `deploy/guides/doors.md`, the table of expected results.
struct DoorTable {
    enum Outcome: String, Sendable {
        case open, hidden, refused, closed
    }

    struct Door {
        let rule: String
        let name: String
        let arguments: String
    }

    struct Unreadable: Error {
        let line: String
    }

    static let roles = [
        "none", "anon", "signed in", "no claims", "client", "back end", "worker", "admin", "owner",
    ]

    /// By rule, object and role.
    private(set) var outcomes: [String: [String: [String: Outcome]]] = [:]
    private(set) var doors: [Door] = []
    private(set) var worker: [String] = []
    private(set) var admin: [String] = []
    private(set) var viewer: [String] = []
    /// Beside those of viewers.
    private(set) var `operator`: [String] = []
    private(set) var gateway: [String] = []
    /// Kinds whose arguments name a row.
    private(set) var kinds: [String] = []

    init(path: String) throws {
        var heading = ""
        for line in try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n") {
            if line.hasPrefix("## ") {
                heading = String(line.dropFirst(3))
            } else if heading == "Doors of workers" {
                worker += Self.names(in: line)
            } else if heading == "Doors of admins" {
                admin += Self.names(in: line)
            } else if heading == "Doors of viewers", line.hasPrefix("`") {
                viewer += Self.names(in: line)
            } else if heading == "Doors of operators", line.hasPrefix("`") {
                `operator` += Self.names(in: line)
            } else if heading == "Doors of gateways", line.hasPrefix("`") {
                gateway += Self.names(in: line)
            } else if line.hasPrefix("|"), !line.hasPrefix("|---"), !line.hasPrefix("| rule") {
                let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
                if heading == "Kinds whose arguments name a row" {
                    if cells[0].hasPrefix("`") { kinds.append(cells[0].trimmingCharacters(in: ["`"])) }
                } else if heading == "Rules" {
                    try read(rule: cells, line: line)
                } else if cells.count == 3 {
                    doors.append(
                        Door(rule: cells[0], name: cells[1], arguments: cells[2].trimmingCharacters(in: ["`"])))
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

    private static func names(in line: Substring) -> [String] {
        line.split(separator: ",").map { $0.trimmingCharacters(in: [" ", "`"]) }.filter { !$0.isEmpty }
    }
}
