import Foundation
import Postgres
import Queues
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
            var cells = 0
            for role in DoorTable.roles {
                let caller = try await world.caller(role)
                for door in table.doors {
                    cells += try await check(door, as: caller, by: table, in: world)
                }
                for (rule, names) in [("worker", table.worker), ("admin", table.admin)] {
                    let expected = table.outcomes[rule]?["–"]?[role]
                    for name in names {
                        #expect(
                            try await caller.reaches(name) == (expected == .open),
                            "\(name) as \(role), which is \(rule)'s")
                        cells += 1
                    }
                }
                await caller.connection.close()
            }
            // A function on no line is for the owner alone.
            let listed = Set(table.doors.map(\.name) + table.worker + table.admin)
            for role in DoorTable.roles where role != "owner" {
                let caller = try await world.caller(role)
                let open = try await caller.reachable().subtracting(role == "back end" ? ["right_backend"] : [])
                #expect(open.subtracting(listed).isEmpty, "as \(role)")
                cells +=
                    try await world.owner.int(
                        "select count(*) from pg_proc where pronamespace = 'millrace'::regnamespace")
                    - listed.count
                await caller.connection.close()
            }
            let functions = try await Set(
                world.owner.column(
                    "select distinct proname from pg_proc where pronamespace = 'millrace'::regnamespace"))
            #expect(listed.subtracting(functions).isEmpty)
            #expect(cells >= 3000, "only \(cells) cells")
        }
    }

    /// The number of cells looked at.
    private func check(_ door: DoorTable.Door, as caller: DoorCaller, by table: DoorTable, in world: DoorWorld)
        async throws -> Int
    {
        let objects = try #require(table.outcomes[door.rule], "\(door.name) has no rule")
        let absent = try await caller.answer(door, object: .absent, in: world)
        var cells = 0
        for (object, outcomes) in objects {
            let expected = try #require(outcomes[caller.role])
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
                } else if answer.text == absent.text && objects.values.contains(where: { $0[caller.role] == .hidden }) {
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

    @Test func `what each group of roles is granted stands on the page of doors, and nothing else`() async throws {
        let table = try Self.table.get()
        try await DoorWorld.with { world in
            for (role, names) in [
                (world.names.client, Set(table.doors.map(\.name))),
                (world.names.worker, Set(table.worker)), (world.names.admin, Set(table.admin)),
                (world.names.viewer, Set(table.viewer)),
                (world.names.operator, Set(table.viewer + table.operator)),
                (world.names.gateway, Set(table.gateway)),
            ] {
                let granted = try await Set(
                    world.owner.column(
                        """
                        select distinct p.proname from pg_proc p cross join lateral aclexplode(p.proacl) a
                         where p.pronamespace = 'millrace'::regnamespace and a.grantee = '\(role)'::regrole
                        """))
                #expect(names.isSubset(of: granted), "\(role): \(names.subtracting(granted))")
                let more = granted.subtracting(names).subtracting(table.doors.map(\.name)).subtracting(table.worker)
                #expect(more.isEmpty, "\(role): \(more)")
            }
        }
    }
}
