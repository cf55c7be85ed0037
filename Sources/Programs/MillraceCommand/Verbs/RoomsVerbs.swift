import MillraceQueues
import Postgres
import RoomSchemas
import Schema

extension Command {
    static func roomsList(_ known: [RoomSchema]) -> Command {
        Command(
            ["rooms", "list"],
            summary: "List the rooms: which are installed, and which could be",
            discussion: """
                A room is one optional capability, such as mail: its tables, its functions, and what workers do for it. The core, which has the queue, is \
                always there.
                """,
            examples: [Example("millrace rooms list", "what is installed, and what each room needs")]
        ) { invocation in
            let rooms = try await invocation.withSchema { try await RoomRow.all(known, on: $0) }
            invocation.console.list("rooms", rooms.map(\.json), table: RoomRow.table(rooms))
            return .done
        }
    }

    static func roomsAdd(_ known: [RoomSchema]) -> Command {
        Command(
            ["rooms", "add"],
            summary: "Install rooms, each with what it needs",
            discussion: """
                A migrate that adds these rooms: in one transaction, also while workers run. Workers serve a new room once they are restarted.
                """,
            arguments: [Argument("room", .many, .text, help: "the room's name; all adds every room")],
            examples: [
                Example("millrace rooms add mail", "mail, with blobs, events, people and templates"),
                Example("millrace rooms add all", "everything"),
            ]
        ) { invocation in
            let named = invocation.parsed.list("room")
            let adding = named.contains("all") ? known.map(\.name) : named
            return try await invocation.withConnection { connection in
                let before = Set(try await Queue.installedRooms(on: connection).keys)
                let migrator = Migrator(rooms: known, adoption: RoomSchemas.adoption, adding: adding)
                let report = try await migrator.migrating(on: connection)
                let added = report.rooms.filter { !before.contains($0) }
                invocation.console.show([
                    "added": .init(added), "rooms": .init(report.rooms), "applied": .init(report.applied),
                ]) {
                    for name in added { invocation.console.print("added \(name)") }
                    invocation.console.print(
                        added.isEmpty
                            ? "they were already installed"
                            : "start the workers again: they take \(added.count == 1 ? "it" : "them") on then")
                }
                return .done
            }
        }
    }

    static func roomsRemove(_ known: [RoomSchema]) -> Command {
        Command(
            ["rooms", "remove"],
            summary: "Remove rooms: their tables, functions and hooks",
            discussion: """
                Refuses while another room needs one of them, and, without --with-data, while one has rows. Jobs of its kinds stay where they are, and \
                nobody takes them until the room is added again; millrace rooms check counts them. Stop its workers first, or start them again afterwards.
                """,
            arguments: [Argument("room", .many, .text, help: "the room's name")],
            flags: [
                .toggle(
                    "with-data", environment: .none,
                    help: "Also a room with rows. They are gone, and nothing brings them back.")
            ],
            examples: [
                Example("millrace rooms remove chat", "if nobody has used it"),
                Example("millrace rooms remove chat gateway --with-data", "both, with all their data"),
            ]
        ) { invocation in
            let removing = invocation.parsed.list("room")
            return try await invocation.withConnection { connection in
                var migrator = Migrator(rooms: known, adoption: RoomSchemas.adoption, removing: removing)
                migrator.removesRows = invocation.parsed.isOn("with-data")
                let report = try await migrator.migrating(on: connection)
                invocation.console.show(["removed": .init(removing), "rooms": .init(report.rooms)]) {
                    for name in removing { invocation.console.print("removed \(name)") }
                }
                return .done
            }
        }
    }

    static func roomsCheck(_ known: [RoomSchema]) -> Command {
        Command(
            ["rooms", "check"],
            summary: "Check the rooms, and say what is wrong",
            discussion: """
                Rooms behind this program's schema, rooms that this program does not have, and jobs that wait for a room which is not installed. Exit 0 when \
                all is well, 10 otherwise.
                """,
            examples: [Example("millrace rooms check", "after a migrate, or in a monitor")]
        ) { invocation in
            let findings = try await invocation.withSchema { try await RoomFinding.all(known, on: $0) }
            invocation.console.list("findings", findings.map(\.json), table: RoomFinding.table(findings))
            return findings.isEmpty ? .done : .degraded
        }
    }
}

private struct RoomRow {
    var name: String
    var installed: Int?
    var known: Int?
    var needs: [String]
    var purpose: String

    static func all(
        _ schemas: [RoomSchema], on connection: Connection
    ) async throws(PostgresError) -> [RoomRow] {
        let installed = try await Queue.installedRooms(on: connection)
        let known = schemas.map {
            RoomRow(
                name: $0.name, installed: installed[$0.name], known: $0.version, needs: $0.needs, purpose: $0.purpose)
        }
        let others = installed.keys.filter { name in !known.contains { $0.name == name } }.sorted().map {
            RoomRow(name: $0, installed: installed[$0], known: nil, needs: [], purpose: "not one of this program's")
        }
        return known + others
    }

    var json: JSONValue {
        [
            "room": .string(name), "installed": .bool(installed != nil), "version": JSONValue(installed),
            "known": JSONValue(known), "needs": .init(needs), "purpose": .string(purpose),
        ]
    }

    static func table(_ rooms: [RoomRow]) -> Table {
        var table = Table([.init("room"), .init("installed"), .init("needs"), .init("what it is")])
        for room in rooms {
            table.add([
                .init(room.name), .init(room.installed == nil ? "–" : "yes"), .init(room.needs.joined(separator: " ")),
                .init(room.purpose),
            ])
        }
        return table
    }
}

/// Something that is not right with a room, and what to do.
struct RoomFinding {
    var room: String
    var sentence: String
    var advice: String

    static func all(
        _ schemas: [RoomSchema], on connection: Connection
    ) async throws(PostgresError) -> [RoomFinding] {
        let installed = try await Queue.installedRooms(on: connection)
        var findings: [RoomFinding] = []
        for (name, version) in installed.sorted(by: { $0.key < $1.key }) {
            guard let room = schemas.first(where: { $0.name == name }) else {
                findings.append(
                    RoomFinding(
                        room: name, sentence: "it is installed, but this program does not have it",
                        advice: "use the program that it came with"))
                continue
            }
            if version < room.version {
                findings.append(
                    RoomFinding(
                        room: name, sentence: "its schema is version \(version), and this program's is \(room.version)",
                        advice: "millrace migrate"))
            } else if version > room.version {
                findings.append(
                    RoomFinding(
                        room: name,
                        sentence: "its schema is version \(version), and this program knows \(room.version)",
                        advice: "use a newer millrace"))
            }
        }
        let absent = schemas.filter { installed[$0.name] == nil && !$0.kinds.isEmpty }
        let waiting = try await Queue.waitingKinds(absent.flatMap(\.kinds), on: connection)
        for room in absent {
            let kinds = room.kinds.filter { waiting.contains($0) }
            guard !kinds.isEmpty else { continue }
            findings.append(
                RoomFinding(
                    room: room.name,
                    sentence: "jobs of \(kinds.joined(separator: ", ")) wait for it, and it is not installed",
                    advice: "millrace rooms add \(room.name)"))
        }
        return findings
    }

    var json: JSONValue { ["room": .string(room), "sentence": .string(sentence), "advice": .string(advice)] }

    static func table(_ findings: [RoomFinding]) -> Table {
        var table = Table(
            [.init("room"), .init("what", shrinks: true), .init("what to do")],
            whenEmpty: "the rooms are as they should be")
        for finding in findings {
            table.add([.init(finding.room), .init(finding.sentence), .init(finding.advice)])
        }
        return table
    }
}
