import Foundation
import JSON
import MillraceWorker
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

private struct Dust: Job {
    static let kind = "attic.dust"
    var box: Int
}

private let least = RoomSetting("ATTIC_LEAST", fallback: "0", help: "Dusted at least so often.") {
    Int($0) == nil ? "takes a number" : nil
}
private let secret = RoomSetting("ATTIC_SECRET", isSecret: true, help: "What opens it.")

private let attic = Room(
    RoomSchema(
        name: "attic", needs: ["people"], purpose: "boxes", kinds: ["attic.dust"],
        migrations: [
            "001_attic": Array(
                "create table millrace.attic_box (id int primary key, person text, dusted int not null);".utf8)
        ],
        functions: [
            "attic": Array(
                """
                create or replace function millrace.attic_dust(box int) returns int
                language sql volatile security definer set search_path = pg_catalog, pg_temp as $$
                    insert into millrace.attic_box as b (id, dusted) values (box, 1)
                        on conflict (id) do update set dusted = b.dusted + 1 returning dusted
                $$;
                select millrace.door_is('attic', 'attic_dust', 'worker', 'staff');
                create or replace function millrace.attic_erase(person text) returns bigint
                language plpgsql volatile set search_path = pg_catalog, pg_temp as $$
                declare
                    n bigint;
                begin
                    delete from millrace.attic_box b where b.person = attic_erase.person;
                    get diagnostics n = row_count;
                    return n;
                end $$;
                create or replace function millrace.attic_export(person text) returns table (thing text, id text, data jsonb)
                language sql stable set search_path = pg_catalog, pg_temp as $$
                    select 'box', b.id::text, to_jsonb(b) from millrace.attic_box b where b.person = attic_export.person
                $$;
                do $$
                begin
                    perform millrace.hooks_are('attic', '[{"event": "erase", "function": "attic_erase", "position": 300},
                                                          {"event": "export", "function": "attic_export", "position": 300}]');
                end $$;
                """.utf8)
        ]),
    settings: [least, secret],
    nouns: ["attic": "See the boxes"],
    verbs: [
        RoomVerb(
            ["attic", "boxes"], summary: "List the boxes", options: ["least": "Dusted at least so often."],
            examples: ["millrace attic boxes": "all of them"]
        ) { call in
            let rows = try await call.database.rows(
                "select b.id, b.dusted from millrace.attic_box b where b.dusted >= coalesce($1::int, 0) order by b.id",
                call.option("least") ?? call.database.value(of: least))
            call.show("boxes", rows, empty: "no boxes")
        }
    ],
    pages: [
        RoomPage(
            "/attic", label: "Attic",
            sections: [
                .init(
                    "Boxes", rows: "select b.id, b.dusted from millrace.attic_box b limit 10",
                    columns: ["Box": "id", "Dusted": "dusted"], empty: "no boxes")
            ])
    ],
    checks: [
        RoomCheck("attic") { database in
            let dirty = try await database.rows("select count(*) as n from millrace.attic_box b where b.dusted = 0")
            return dirty.first?["n"] == "0" ? .ok("all is clean") : .warning("dust", advice: "sweep")
        }
    ],
    status: RoomStatus("attic") { database in
        let rows = try await database.rows(
            "select count(*) as boxes, count(*) filter (where b.dusted = 0) as dirty from millrace.attic_box b")
        let (boxes, dirty) = (Int(rows.first?["boxes"] ?? "") ?? 0, Int(rows.first?["dirty"] ?? "") ?? 0)
        let dust = Alarm("the attic is dirty", look: "millrace attic boxes")
        return RoomState(
            "\(boxes) boxes", figures: ["boxes": boxes, "dirty": dirty],
            findings: dirty == 0 ? [] : [Finding(dust, .degraded, "\(dirty) boxes are dirty")])
    }
) { worker, database in
    worker.handle(Dust.self, queue: "attic") { job, _ in
        try await database.rows("select millrace.attic_dust($1::int)", "\(job.box)")
        return .done
    }
}

private struct Air: Job {
    static let kind = "cellar.air"
    static let encrypted = true
    var by: String
}

private let cellar = Room(
    RoomSchema(name: "cellar", purpose: "wine", kinds: ["cellar.air"], migrations: [:], functions: [:])
) { worker, _ in
    worker.handle(Air.self) { job, _ in job.by == "left door" ? .done : .discard("by \(job.by)") }
    try worker.schedule("cellar.air", "@daily", Air(by: "left door"))
}

/// A room that another package brings: no list of this program names it.
@Suite struct OwnRoomTests {
    private static func program() throws -> CommandTree { Verbs.tree(of: try Rooms.with([attic])) }

    @Test func `it is added, works, is erased from, looked at and removed like any other`() async throws {
        try await withDatabase { database in
            let tree = try Self.program()
            var environment = ["DATABASE_URL": database.url]
            func say(_ line: String...) async -> Outcome {
                let capture = Capture(columns: nil)
                let code = await Application.run(
                    arguments: line, surroundings: .fake(environment), console: capture.console, tree: tree)
                return Outcome(code: code, output: capture.output, errors: capture.errors)
            }
            let connection = try await database.connect()
            let without = await say("attic", "boxes")
            #expect(without.code == .schemaMismatch && without.errors.contains("millrace rooms add attic"))
            try await connection.run("select millrace.enqueue('attic.dust', '{\"box\": 3}', queue => 'attic')")
            #expect(await say("rooms", "check").output.contains("millrace rooms add attic"))
            let added = await say("rooms", "add", "attic")
            #expect(added.code == .done && added.output.contains("added attic"), "\(added)")
            #expect(await say("migrate").code == .done)

            var options = CompleteWorker.Options(settings: ["MILLRACE_MAIL_OUTBOX": "/tmp/never"])
            options.readsEnvironment = false
            options.database = .url(database.url)
            options.listen = "off"
            options.log = .silent
            options.rooms = [attic]
            let worker = try CompleteWorker(options)
            let running = Task { try await worker.run(handlesSignals: false) }
            try await eventually("the job has run") {
                try await connection.int("select count(*) from millrace.attic_box") == 1
            }
            worker.drain()
            _ = try await running.value

            environment["ATTIC_LEAST"] = "1"
            let listed = await say("attic", "boxes", "--jsonl")
            #expect(listed.output == "{\"id\":3,\"dusted\":1}\n", "\(listed)")
            #expect(await say("doctor", "--jsonl").output.contains("all is clean"))
            try await connection.run("insert into millrace.attic_box values (4, 'ada', 0), (5, 'bob', 0)")
            let exported = await say("people", "export", "ada", "--jsonl")
            #expect(
                exported.output
                    == #"{"room":"attic","thing":"box","data":{"id":4,"dusted":0,"person":"ada"}}"# + "\n",
                "\(exported)")
            #expect(
                try await connection.value("select millrace.person_erase('ada', actor => 'ada') ->> 'attic'") == "1")
            #expect(try await connection.column("select id::text from millrace.attic_box order by id") == ["3", "5"])
            #expect(await say("doctor", "--jsonl").output.contains("sweep"))
            let status = await say("status")
            #expect(status.output.contains("\nattic\n  2 boxes\n"), "\(status)")
            #expect(status.output.contains("1 boxes are dirty") && status.output.contains("run: millrace attic boxes"))
            #expect(await say("status", "--jsonl").output.contains(#""added_rooms":{"attic":{"boxes":2,"dirty":1}}"#))

            #expect(await say("rooms", "remove", "attic").code == .conflict)
            #expect(await say("rooms", "remove", "attic", "--with-data").code == .done)
            let left = """
                select count(*) from (
                    select relname from pg_class where relname like 'attic%' union all select proname from pg_proc where proname like 'attic%'
                    union all select function from millrace.hook where room = 'attic' union all select name from millrace.door where room = 'attic') x
                """
            #expect(try await connection.int(left) == 0)
            #expect(await say("status", "--jsonl").output.contains(#""added_rooms":{}"#))
            await connection.close()
        }
    }

    @Test func `help, completions and nouns know its commands, and a program without it does not`() async throws {
        let tree = try Self.program()
        #expect(await millrace("attic", "--help", tree: tree).output.contains("List the boxes"))
        #expect(await millrace("completions", "bash", tree: tree).output.contains("attic"))
        #expect(await millrace("attic", "--help").code == .misused)
    }

    @Test func `its settings are shown, checked and read like any other`() async throws {
        let tree = try Self.program()
        func say(_ line: [String], _ environment: [String: String]) async -> Outcome {
            let capture = Capture(columns: nil)
            let code = await Application.run(
                arguments: line, surroundings: .fake(environment), console: capture.console, tree: tree)
            return Outcome(code: code, output: capture.output, errors: capture.errors)
        }
        let shown = await say(["config", "--jsonl"], ["ATTIC_LEAST": "7", "ATTIC_SECRET": "open sesame"])
        let lines = shown.output.split(separator: "\n")
        #expect(lines.contains { $0.contains("ATTIC_LEAST") && $0.contains("\"7\"") }, "\(shown)")
        #expect(lines.contains { $0.contains("ATTIC_SECRET") } && !shown.output.contains("sesame"), "\(shown)")
        let refused = await say(["config"], ["ATTIC_LEAST": "many"])
        #expect((refused.output + refused.errors).contains("ATTIC_LEAST takes a number"), "\(refused)")
        let other = Room(
            RoomSchema(name: "loft", purpose: "", migrations: [:], functions: [:]),
            settings: [RoomSetting("MILLRACE_SLOTS", help: "Somebody else's.")])
        #expect(throws: Failure.self) { try Rooms.with([other]) }
        // Outside of the program the environment counts, which has none.
        #expect(try RoomDatabase(.url("postgresql:///unused")).value(of: least) == "0")
    }

    @Test func `a name that a room of this program has is refused`() async throws {
        let other = Room(RoomSchema(name: "mail", purpose: "", migrations: [:], functions: [:]))
        #expect(throws: Failure.self) { try Rooms.with([other]) }
        var options = CompleteWorker.Options()
        options.readsEnvironment = false
        options.rooms = [other]
        #expect(throws: QueueError.self) { try CompleteWorker(options) }
    }

    @Test func `a plain worker has the schedules of such rooms, whose arguments are encrypted once`() async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let keys = EncryptionKeys.list("k1:" + Data(repeating: 7, count: 32).base64EncodedString())
            let worker = try Worker(rooms: [cellar], database: location, keys: keys, log: .silent)
            let bench = try TestBench(worker: worker, database: location)
            #expect(try await bench.drain().finished == 0)
            let connection = try await database.connect()
            let stored = try await connection.value(
                "select args::text from millrace.schedules where name = 'cellar.air'")
            #expect(stored?.contains("left door") == false, "\(stored ?? "")")
            try await bench.advance(by: .days(1))
            #expect(try await bench.drain().finished == 1)
            #expect(try await connection.column("select outcome from millrace.history") == ["1"])
            await bench.close()
            await connection.close()
        }
    }

    @Test func `a plain worker has the jobs of such rooms, and none of this program's`() throws {
        _ = try Worker(rooms: [attic], database: .url("postgresql:///unused"), keys: .none)
        let refused = #expect(throws: QueueError.self) {
            try Worker(rooms: [Rooms.named("mail")], database: .url("postgresql:///unused"), keys: .none)
        }
        #expect(refused?.description.contains("CompleteWorker") == true)
    }
}
