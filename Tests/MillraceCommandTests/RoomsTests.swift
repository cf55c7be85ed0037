import Foundation
import Schema
import Testing

@testable import MillraceCommand

@Suite struct RoomsTests {
    /// Name and needs of each row of the table of rooms in SQL.
    private static func rows() throws -> [String: [String]] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../sql/rooms.md")
        var rows: [String: [String]] = [:]
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") where line.hasPrefix("| `") {
            let cells = line.split(separator: "|").map { $0.matches(of: /`(\w+)`/).map { String($0.1) } }
            rows[cells[0][0]] = cells[1]
        }
        return rows
    }

    @Test func `each room has the name and the needs that it has in SQL`() throws {
        let rows = try Self.rows()
        #expect(rows.count > 20)
        for room in Rooms.all { #expect(rows[room.name].map { Set($0) } == Set(room.needs), "\(room.name)") }
        #expect(Set(Rooms.all.map(\.name)).count == Rooms.all.count)
    }

    @Test func `what a room brings is in the program, once`() {
        for room in Rooms.all {
            for verb in room.verbs { #expect(Verbs.tree.commands.count { $0.path == verb.path } == 1, "\(verb.name)") }
            for noun in room.nouns { #expect(Verbs.tree.nouns[noun.key] == noun.value) }
            for setting in room.settings {
                #expect(Setting.all.count { $0.environment == setting.environment } == 1, "\(setting.environment)")
            }
        }
        #expect(Rooms.all.flatMap(\.verbs).count > 60)
        #expect(Set(Rooms.all.schemas.map(\.name)).count == 19 && Rooms.all.schemas.count == 19)
    }
}
