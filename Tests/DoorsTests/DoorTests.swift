import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Calls each function as each role, with its own object, another's, and none: see `deploy/guides/doors.md`.
@Suite struct DoorTests {
    static let table = Result {
        try DoorTable(
            path: URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../deploy/guides/doors.md")
                .path)
    }

    @Test func `every function does for each role what the page of doors says`() async throws {
        let table = try Self.table.get()
        try await DoorWorld.with { world in
            let doors = try await DoorTable.doors(on: world.owner).filter { !$0.isView }
            let clients = doors.filter(\.isForClients)
            #expect(Set(clients.map(\.name)) == Set(DoorCalls.arguments.keys), "each has a call, and each call a door")
            var cells = 0
            // A back end behind a gateway may do what one with a login may.
            for role in DoorTable.roles + ["service role"] {
                let caller = try await world.caller(role)
                for door in clients {
                    cells += try await check(door, as: caller, by: table, in: world)
                }
                let reachable = try await caller.reachable()
                for door in doors where !door.isForClients {
                    #expect(
                        reachable.contains(door.name) == door.isOpen(to: role), "\(door.name) as \(role): \(door.roles)"
                    )
                    cells += 1
                }
                // A function without a line is for the owner alone.
                if role != "owner" {
                    let open = reachable.subtracting(
                        ["back end", "service role"].contains(role) ? ["right_backend"] : [])
                    #expect(open.subtracting(doors.map(\.name)).isEmpty, "as \(role)")
                }
                await caller.connection.close()
            }
            #expect(cells >= 3000, "only \(cells) cells")
        }
    }

    /// The number of cells looked at.
    private func check(_ door: DoorTable.Door, as caller: DoorCaller, by table: DoorTable, in world: DoorWorld)
        async throws -> Int
    {
        let objects = try #require(table.outcomes[door.rule], "\(door.name): the page has no rule \(door.rule)")
        let absent = try await caller.answer(door, object: .absent, in: world)
        var cells = 0
        let column = caller.role == "service role" ? "back end" : caller.role
        for (object, outcomes) in objects {
            let expected = try #require(outcomes[column])
            let answer =
                switch object {
                case "own", "–": try await caller.answer(door, object: .own, in: world)
                case "other's": try await caller.answer(door, object: .others, in: world)
                default: absent
                }
            let found: DoorTable.Outcome =
                if answer.isClosed {
                    .closed
                } else if answer.isRefused {
                    .refused
                } else if answer.text == absent.text && objects.values.contains(where: { $0[column] == .hidden }) {
                    .hidden
                } else {
                    .open
                }
            #expect(found == expected, "\(door.name) as \(caller.role), \(object): \(answer.text)")
            #expect(answer.isClassified, "\(door.name) as \(caller.role), \(object): \(answer.text)")
            cells += 1
        }
        return cells
    }
}
