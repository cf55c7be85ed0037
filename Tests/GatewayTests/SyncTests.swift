import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

@Suite struct SyncTests {
    @Test func `an operation of one tenant is known in that tenant alone`() async throws {
        try await SyncWorld.with { world in
            let op = SyncOp("mood_log", #"{"person": "ada", "color": "happy"}"#)
            for tenant in ["shop", "mill"] {
                let phone = try await world.phone(of: "ada", tenant: tenant)
                #expect(try await world.push([op], on: phone) == ["applied"], "\(tenant)")
                #expect(try await world.push([op], on: phone) == ["same"], "\(tenant)")
                await phone.close()
            }
            #expect(
                try await world.owner.column("select tenant from millrace.sync_done order by 1") == ["mill", "shop"])
            try await world.owner.run("update millrace.sync_done set tenant = '' where tenant = 'shop'")
            let phone = try await world.phone(of: "ada", tenant: "shop")
            #expect(try await world.push([op], on: phone) == ["same"], "of before operations were a tenant's")
            await phone.close()
        }
    }

    static let mood = #"{"person": "ada", "color": "happy"}"#

    @Test
    func `the same again is told its first answer, other content is a conflict, and what was refused may come again`()
        async throws
    {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            let first = SyncOp("mood_log", Self.mood, ago: 60)
            var wrong = SyncOp("mood_log", #"{"person": "ada", "color": "purple"}"#, ago: 50)
            #expect(
                try await world.push([first, wrong, first], on: phone) == ["applied", "refused invalid color", "same"])
            var other = first
            other.args = #"{"color": "sad", "person": "ada"}"#
            var reordered = first
            reordered.args = #"{"color": "happy", "person": "ada"}"#
            wrong.args = Self.mood
            #expect(
                try await world.push([other, reordered, wrong], on: phone) == [
                    "conflict conflict id", "same", "applied",
                ])
            #expect(try await world.owner.int("select count(*) from millrace.mood where color = 'happy'") == 2)
            let (one, two) = (
                try await phone.value("select result from millrace.sync_done where id = '\(first.id)'"),
                try await phone.value(
                    "select s.result from millrace.sync_push('tablet', '[\(first.json(base: world.base))]') s")
            )
            #expect(one == two && one != nil)
            let sentence = try await phone.records(
                #"select message, hint, user_message from millrace.sync_push('phone', '[{"id": "00000000-0000-4000-8000-000000000001", "op": "mood_log", "args": {"person": "ada", "color": "x"}}]')"#
            )
            #expect(sentence.first?.contains("the mood 'x' is unknown") == true)
            #expect(sentence.first?.contains("Please check it") == true)
            await phone.close()
        }
    }

    @Test func `each malformed operation is refused by itself, and names its field`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            let id = "00000000-0000-4000-8000-000000000001"
            let cases = [
                ("5", "refused invalid args"), ("null", "refused invalid args"), ("[]", "refused invalid args"),
                (#"{"id": "x", "op": "mood_log"}"#, "refused invalid id"),
                (#"{"id": "\#(id)", "op": "mood_log", "args": 5}"#, "refused invalid args"),
                (#"{"id": "\#(id)", "op": "mood_log", "more": 5}"#, "refused invalid args"),
                (#"{"id": "\#(id)", "op": 5}"#, "refused unsupported op"),
                (#"{"id": "\#(id)"}"#, "refused unsupported op"),
                (#"{"id": "\#(id)", "op": "enqueue", "args": {"kind": "k"}}"#, "refused unsupported op"),
                (#"{"id": "\#(id)", "op": "person_erase", "args": {"person": "ada"}}"#, "refused unsupported op"),
                (#"{"id": "\#(id)", "op": "check_in'; drop table millrace.mood; --"}"#, "refused unsupported op"),
                (#"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada"}}"#, "refused invalid color"),
                (
                    #"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada", "color": "sad", "x": 1}}"#,
                    "refused invalid x"
                ),
                (
                    #"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada", "color": "sad", "caller": "millrace"}}"#,
                    "refused invalid caller"
                ),
                (
                    #"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada", "color": "sad", "buffer": "long"}}"#,
                    "refused invalid buffer"
                ),
                (
                    #"{"id": "\#(id)", "op": "check_in_arm", "args": {"person": "ada", "warnings": "5 min"}}"#,
                    "refused invalid warnings"
                ),
                (
                    #"{"id": "\#(id)", "op": "mood_log", "at": "yesterday", "args": \#(Self.mood)}"#,
                    "refused invalid at"
                ),
                (
                    #"{"id": "\#(id)", "op": "mood_log", "at": "2026-13-01T00:00:00Z", "args": \#(Self.mood)}"#,
                    "refused invalid at"
                ),
                (
                    #"{"id": "\#(id)", "op": "mood_log", "at": "2001-01-01T00:00:00Z", "args": \#(Self.mood)}"#,
                    "refused invalid at"
                ),
                (
                    #"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada", "color": "sad", "at": "yesterday"}}"#,
                    "refused invalid at"
                ),
                // A clock that is fast loses nothing.
                (
                    #"{"id": "\#(UUID().uuidString)", "op": "mood_log", "at": "2099-01-01T00:00:00Z", "args": \#(Self.mood)}"#,
                    "applied"
                ),
            ]
            let good = SyncOp("mood_log", Self.mood, ago: 10).json(base: world.base)
            let outcomes = try await world.push(
                json: "[\(cases.map(\.0).joined(separator: ", ")), \(good)]", on: phone)
            for (given, outcome) in zip(cases, outcomes) { #expect(given.1 == outcome, "\(given.0)") }
            #expect(outcomes.last == "applied" && outcomes.count == cases.count + 1)
            for call in ["'', '[{}]'", "'a b', '[{}]'", "'phone', '[]'", "'phone', null", "'phone', '{}'"] {
                #expect(try await phone.refusal(of: "select millrace.sync_push(\(call))")?.sqlState == "22023")
            }
            await phone.close()
        }
    }

    @Test func `an operation that jsonb cannot hold is refused by itself`() async throws {
        try await SyncWorld.with { world in
            let phone = try await world.phone(of: "ada")
            let good = SyncOp("mood_log", Self.mood).json(base: world.base)
            let id = "00000000-0000-4000-8000-000000000001"
            let bad = [
                #"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada", "color": "sad\u0000"}}"#,
                #"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada", "color": "\ud800"}}"#,
                #"{"id": "\#(id)", "op": "mood_log", "args": {"person": 1e999999}}"#, #"{"id": "\u0000"}"#,
                #""\u0000""#,
            ]
            let text = "[\(bad.joined(separator: ", ")), \(good)]"
            let outcomes = try await phone.column(
                "select concat_ws(' ', outcome, class, field, id) from millrace.sync_push_text('phone', '\(text)')")
            #expect(
                outcomes.dropLast() == [
                    "refused invalid args \(id)", "refused invalid args \(id)", "refused invalid args \(id)",
                    "refused invalid args", "refused invalid args",
                ])
            #expect(outcomes.last?.hasPrefix("applied") == true)
            #expect(try await phone.refusal(of: "select millrace.sync_push('phone', '\(text)')")?.sqlState == "22P05")
            for text in ["", "{", "5", "[", #"{"a": 1}"#, "[1"] {
                #expect(
                    try await phone.refusal(of: "select millrace.sync_push_text('phone', '\(text)')")?.sqlState
                        == "22023",
                    "\(text)")
            }
            await phone.close()
        }
    }

    @Test func `every operation is a door of clients, and a push gives nobody a right`() async throws {
        let office = try await TestCluster.office()
        let (login, role) = (TestCluster.name("gateway"), TestCluster.name("client"))
        try await office.run("create role \(login) login noinherit; create role \(role); grant \(role) to \(login)")
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            _ = try await Migrator.ofAllRooms(roles: [("client", role)]).migrate(on: owner)
            try await owner.run("select millrace.trust_claims('\(login)')")
            #expect(
                try await owner.column(
                    "select op from millrace.sync_operations() except select name from millrace.gateway_doors('\(role)')"
                ).isEmpty)
            let guide = try String(
                contentsOf: URL(filePath: #filePath).appending(path: "../../../deploy/guides/gateway.md")
                    .standardizedFileURL, encoding: .utf8)
            for op in try await owner.column("select op from millrace.sync_operations()") {
                #expect(guide.contains("`\(op)`"), "\(op) stands in the guide")
            }
            // What an operation sets apart are parameters of its door.
            #expect(
                try await owner.column(
                    """
                    select o.op || '.' || x from millrace.sync_operations() o
                      cross join lateral unnest(o.fields || o.target || case when o.has_at then '{at}'::text[] else '{}' end) x
                     where not exists (select from millrace.gateway_doors('\(role)') d
                                         cross join lateral jsonb_array_elements(d.arguments) a
                                        where d.name = o.op and a ->> 'name' = x)
                    """
                ).isEmpty)
            let world = SyncWorld(database: database, owner: owner, base: Date())
            let phone = try await database.connect(as: login)
            try await phone.run("set role \(role)")
            try await SyncWorld.act(as: "ada", on: phone)
            let mine = SyncOp("mood_log", Self.mood)
            let others = SyncOp("mood_log", #"{"person": "eve", "color": "sad"}"#)
            #expect(try await world.push([mine, others], on: phone) == ["applied", "refused permission actor"])
            try await owner.run("revoke execute on all functions in schema millrace from \(role)")
            try await owner.run("grant execute on function millrace.sync_push to \(role)")
            #expect(
                try await world.push([mine, SyncOp("mood_log", Self.mood)], on: phone) == [
                    "same", "refused permission op",
                ])
            await phone.close()
            await owner.close()
        }
        try await office.run("drop role \(login); drop role \(role)")
        await office.close()
    }

    @Test func `a check-in between refused operations is in force`() async throws {
        try await SyncWorld.with { world in
            try await world.arm("ada", every: "4 hours")
            let phone = try await world.phone(of: "ada")
            let bad = SyncOp("mood_log", #"{"person": "eve", "color": "sad"}"#, ago: 500)
            let ops = [
                bad, SyncOp("quest_complete", #"{"family": "none", "person": "ada"}"#, ago: 400),
                SyncOp("check_in", #"{"person": "ada"}"#, ago: 300),
                SyncOp("check_in_pause", #"{"person": "ada", "until": "2001-01-01"}"#, ago: 310), bad,
            ]
            #expect(
                try await world.push(ops, on: phone) == [
                    "refused permission actor", "refused permission actor", "applied", "refused invalid until",
                    "refused permission actor",
                ])
            #expect(
                try await world.owner.bool(
                    "select abs(extract(epoch from last_checked_in) - \(world.base.timeIntervalSince1970 - 300)) < 0.01 and expires_at = last_checked_in + every from millrace.watch"
                ))
            await phone.close()
        }
    }

    @Test func `who holds a lock holds up its own operation alone, which may come again`() async throws {
        try await SyncWorld.with { world in
            try await world.arm("ada")
            try await world.owner.run(
                "select millrace.family_create('f', 'UTC'), millrace.family_join('f', 'ada', 'parent')")
            try await world.owner.run("begin; select from millrace.family for update")
            let phone = try await world.phone(of: "ada")
            let ops = [
                SyncOp("quest_complete", #"{"family": "f", "person": "ada"}"#, ago: 20),
                SyncOp("check_in", #"{"person": "ada"}"#, ago: 10),
                SyncOp("person_profile", #"{"person": "ada", "display_name": "Ada"}"#, ago: 10),
            ]
            #expect(try await world.push(ops, on: phone) == ["refused transient", "applied", "applied"])
            try await world.owner.run("rollback")
            #expect(try await world.push(ops, on: phone) == ["applied", "same", "same"])
            await phone.close()
        }
    }

    @Test func `a check-in that is older than the last one, or than a day, moves nothing`() async throws {
        try await SyncWorld.with { world in
            try await world.arm("ada")
            let phone = try await world.phone(of: "ada")
            let watch = "select row(last_checked_in, expires_at) from millrace.watch"
            let before = try await world.owner.value(watch)
            let old = SyncOp("check_in", #"{"person": "ada"}"#, ago: 4 * 3600)
            #expect(try await world.push([old], on: phone) == ["applied superseded"])
            #expect(try await world.owner.value(watch) == before)
            try await world.owner.run("update millrace.watch set last_checked_in = millrace.now() - interval '3 days'")
            let ancient = SyncOp("check_in", #"{"person": "ada"}"#, ago: 25 * 3600)
            #expect(try await world.push([ancient], on: phone) == ["refused conflict at"])
            #expect(try await world.push([SyncOp("check_in", #"{"person": "ada"}"#)], on: phone) == ["applied"])
            await phone.close()
        }
    }
}
