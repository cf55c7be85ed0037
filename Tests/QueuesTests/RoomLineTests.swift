import Postgres
import RoomSchemas
import Schema
import TestSupport
import Testing

@testable import MillraceQueues

/// A line of migrations for each room: the core alone, rooms added and taken away, and databases from before there were lines.
@Suite struct RoomLineTests {
    private static func withEmpty(_ body: (Connection) async throws -> Void) async throws {
        try await withDatabase(.empty) { database in
            let connection = try await database.connect()
            try await body(connection)
            await connection.close()
        }
    }

    private static func refusal(_ migrator: Migrator, on connection: Connection) async -> String? {
        do throws(Migrator.Failure) {
            _ = try await migrator.migrate(on: connection)
            return nil
        } catch {
            return error.description
        }
    }

    /// A schema at version 74, without its functions.
    private static func makeOld(_ old: Connection) async throws {
        try await old.run(
            "create schema millrace; create table millrace.migration (number int primary key, name text not null, applied_at timestamptz not null default clock_timestamp())"
        )
        for migration in try OldSchema.migrations {
            try await old.run(script: .shipped(migration.bytes))
            try await old.run(
                "insert into millrace.migration (number, name) values (\(migration.number), '\(migration.name)')")
        }
        try await SchemaContents.writeDown(on: old)
    }

    @Test func `a first migrate makes the core alone, and its queue works`() async throws {
        try await Self.withEmpty { connection in
            let report = try await Migrator(rooms: RoomSchemas.all).migrate(on: connection)
            #expect(report.isNew && report.rooms == [] && report.applied == ["100_core"])
            #expect(try await Queue.installedRooms(on: connection) == [:])
            let id = try await connection.enqueue()
            try await connection.openSession()
            try await connection.claim()
            #expect(try await connection.finish([.init(id: id, outcome: 1)], complete: [9: 1]) == [9])
            #expect(try await connection.state(id) == "succeeded")
            _ = try await connection.value("select millrace.maintain()")
            // Nothing of a room is there, and a second migrate adds nothing.
            let rooms = RoomSchemas.all.flatMap(SchemaNames.tables(of:))
            #expect(rooms.count > 80)
            #expect(
                try await connection.column(
                    "select relname from pg_class where relnamespace = 'millrace'::regnamespace"
                )
                .filter(rooms.contains) == [])
            #expect(try await Migrator(rooms: RoomSchemas.all).migrate(on: connection).applied == [])
        }
    }

    @Test func `a room comes with what it needs, and goes only when nobody needs it and nothing is lost unsaid`()
        async throws
    {
        try await Self.withEmpty { connection in
            var migrator = Migrator(rooms: RoomSchemas.all, adding: ["mail"])
            #expect(
                try await migrator.migrate(on: connection).rooms == ["blobs", "events", "people", "templates", "mail"])
            migrator.adding = ["mial"]
            #expect(await Self.refusal(migrator, on: connection)?.contains("There is no room mial") == true)
            migrator.adding = []
            migrator.removing = ["blobs"]
            #expect(await Self.refusal(migrator, on: connection)?.contains("is needed by mail") == true)
            migrator.removing = ["chat"]
            #expect(await Self.refusal(migrator, on: connection) == "The room chat is not installed.")
            try await connection.run(
                "insert into millrace.mail_suppression (hash, purpose, reason, by, at) values ('a', 'marketing', 'r', 'me', now())"
            )
            migrator.removing = ["mail"]
            #expect(
                await Self.refusal(migrator, on: connection) == "The room mail has rows, in mail_suppression for one.")
            #expect(try await connection.int("select count(*) from millrace.mail_suppression") == 1)
            migrator.removesRows = true
            #expect(
                try await migrator.migrate(on: connection).rooms == ["blobs", "events", "people", "templates"])
            #expect(try await connection.value("select to_regclass('millrace.mail')") == nil)
            // And it comes again.
            #expect(
                try await Migrator(rooms: RoomSchemas.all, adding: ["mail"]).migrate(on: connection).applied == [
                    "001_mail"
                ])
        }
    }

    @Test func `what others have built on a room is named, and keeps it from going`() async throws {
        try await Self.withEmpty { connection in
            var migrator = Migrator(rooms: RoomSchemas.all, adding: ["events"])
            _ = try await migrator.migrate(on: connection)
            let installed = try await Queue.installedRooms(on: connection)
            #expect(installed.keys.sorted() == ["events"])
            try await connection.run("create view public.my_events as select id from millrace.event")
            (migrator.adding, migrator.removing) = ([], ["events"])
            let refusal = await Self.refusal(migrator, on: connection)
            #expect(
                refusal?.contains("my_events") == true && refusal?.contains("Drop it first") == true, "\(refusal ?? "")"
            )
            #expect(try await Queue.installedRooms(on: connection) == installed)
            try await connection.run("drop view public.my_events")
            #expect(try await migrator.migrate(on: connection).rooms == [])
        }
    }

    /// A row that is not committed yet when the room is to go is waited for, and then keeps it.
    @Test func `a row that is written while a room is taken away is not lost`() async throws {
        try await withDatabase(.empty) { database in
            let (connection, writer) = (try await database.connect(), try await database.connect())
            _ = try await Migrator(rooms: RoomSchemas.all, adding: ["events"]).migrate(on: connection)
            try await writer.run(
                """
                begin;
                insert into millrace.event_grant (role, type) values ('app', '*')
                """)
            let process = try await connection.process()
            let migrator = Migrator(rooms: RoomSchemas.all, removing: ["events"])
            async let refusal = Self.refusal(migrator, on: connection)
            try await waitUntilBlocked(process, seenBy: database.connect())
            try await writer.run("commit")
            #expect(await refusal == "The room events has rows, in event_grant for one.")
            for connection in [connection, writer] { await connection.close() }
        }
    }

    @Test func `a program refuses a schema that has a room which it has not`() async throws {
        try await Self.withEmpty { connection in
            _ = try await Migrator(rooms: RoomSchemas.all, adding: ["events", "quotas"]).migrate(on: connection)
            let before = try await SchemaPrint.read(on: connection)
            let refusal = await Self.refusal(
                Migrator(rooms: RoomSchemas.all.filter { $0.name == "events" }), on: connection)
            #expect(refusal?.hasPrefix("The database has the room quotas, which this program does not have") == true)
            #expect(SchemaPrint.differences(before, try await SchemaPrint.read(on: connection)) == [])
        }
    }

    /// Each room is put on what stands below it, and taken away again, the highest first.
    @Test func `a schema that a room was taken away from is one that never had it`() async throws {
        try await Self.withEmpty { connection in
            _ = try await Migrator(rooms: RoomSchemas.all).migrate(on: connection)
            var before: [Set<String>] = []
            for room in RoomSchemas.all {
                before.append(try await SchemaPrint.read(on: connection))
                _ = try await Migrator(rooms: RoomSchemas.all, adding: [room.name]).migrate(on: connection)
            }
            for (room, print) in zip(RoomSchemas.all, before).reversed() {
                _ = try await Migrator(rooms: RoomSchemas.all, removing: [room.name]).migrate(on: connection)
                #expect(
                    SchemaPrint.differences(print, try await SchemaPrint.read(on: connection)) == [], "\(room.name)")
            }
        }
    }

    @Test func `a database from before lines is taken over as it is, and is then like a new one`() async throws {
        try await Self.withEmpty { old in
            try await Self.makeOld(old)
            let salt = try await old.value("select value from millrace.setting where name = 'mail_salt'")
            let report = try await Migrator(rooms: RoomSchemas.all, adoption: RoomSchemas.adoption).migrate(on: old)
            #expect(!report.isNew && report.rooms == RoomSchemas.all.map(\.name))
            #expect(try await old.value("select value from millrace.setting where name = 'salt'") == salt)
            #expect(try await Queue.schemaState(on: old).version == Schema.version)
            let adopted = try await SchemaPrint.read(on: old)
            try await Self.withEmpty { new in
                _ = try await Migrator.ofAllRooms().migrate(on: new)
                #expect(SchemaPrint.differences(adopted, try await SchemaPrint.read(on: new)) == [])
            }
        }
    }

    @Test func `a database from before lines can give up all its rooms, and is then like a new core`() async throws {
        var left: Set<String> = []
        try await Self.withEmpty { old in
            try await Self.makeOld(old)
            _ = try await Migrator(rooms: RoomSchemas.all, adoption: RoomSchemas.adoption).migrate(on: old)
            var migrator = Migrator(rooms: RoomSchemas.all, removing: RoomSchemas.names)
            migrator.removesRows = true
            #expect(try await migrator.migrate(on: old).rooms == [])
            let id = try await old.enqueue()
            #expect(try await old.state(id) == "ready")
            left = try await SchemaPrint.read(on: old)
        }
        try await Self.withEmpty { new in
            _ = try await Migrator(rooms: RoomSchemas.all).migrate(on: new)
            #expect(SchemaPrint.differences(left, try await SchemaPrint.read(on: new)) == [])
        }
    }

    @Test func `a program without the rooms of a database from before lines leaves it as it is`() async throws {
        try await Self.withEmpty { old in
            try await Self.makeOld(old)
            let made = "select count(*) from millrace.made"
            let before = try await old.int(made)
            #expect(await Self.refusal(Migrator(), on: old)?.contains("with the program millrace") == true)
            let withoutConsole = Migrator(
                rooms: RoomSchemas.all.filter { $0.name != "console" }, adoption: RoomSchemas.adoption)
            #expect(
                await Self.refusal(withoutConsole, on: old)
                    == "The database has the room console, which this program does not have: it would take its functions away. Migrate with a program that has it."
            )
            #expect(try await old.int(made) == before)
            #expect(try await old.int("select max(number) from millrace.migration") == 74)
            // A room that came later is not taken for one that was there.
            let extra = RoomSchema(
                name: "extra", purpose: "",
                migrations: [Script("001_extra", Array("create table millrace.extra ()".utf8))],
                functions: [])
            let report = try await Migrator(rooms: RoomSchemas.all + [extra], adoption: RoomSchemas.adoption)
                .migrate(on: old)
            #expect(report.rooms == RoomSchemas.names)
        }
    }

    @Test(arguments: [(73, "takes over from 74 on"), (98, "knows only up to")])
    func `a schema that is too old or of nobody knows whom is refused`(number: Int, words: String) async throws {
        try await Self.withEmpty { connection in
            try await connection.run(
                """
                create schema millrace;
                create table millrace.migration (number int primary key, name text not null, applied_at timestamptz not null default clock_timestamp());
                insert into millrace.migration (number, name) values (\(number), 'one')
                """)
            #expect(await Self.refusal(Migrator.ofAllRooms(), on: connection)?.contains(words) == true)
        }
    }

    /// Its functions run with the owner's rights, so it must not stand in another's place.
    @Test func `a room of another package is refused where it makes what somebody else has`() async throws {
        func room(_ name: String, needs: [String] = [], _ sql: String) -> RoomSchema {
            RoomSchema(
                name: name, needs: needs, purpose: "", migrations: ["001_\(name)": Array("".utf8)],
                functions: [name: Array(sql.utf8)])
        }
        let harmless = "create or replace function millrace.attic_of() returns int language sql as 'select 1'"
        let stolen = "create or replace function millrace.may_see(a int) returns int language sql as 'select 1'"
        func refused(_ rooms: RoomSchema..., adding: String) async -> String? {
            try? await withDatabase(.empty) { database in
                let connection = try await database.connect()
                let said = await Self.refusal(
                    Migrator(rooms: RoomSchemas.all + rooms, adding: [adding]), on: connection)
                await connection.close()
                return said
            }
        }
        #expect(
            await refused(room("attic", stolen), adding: "attic")
                == "The room attic makes millrace.may_see, which is core's: give it another name.")
        #expect(
            await refused(room("mail", harmless), adding: "mail")
                == "The room mail makes a room of this name, which is another room's: give it another name.")
        #expect(
            await refused(room("attic", needs: ["cellar"], harmless), adding: "attic")
                == "The room attic needs the room cellar, which this program does not have, or which comes after it.")
        #expect(
            await refused(room("attic", harmless), room("cellar", harmless), adding: "attic")
                == "The room attic makes millrace.attic_of, which is cellar's: give it another name.")
        #expect(await refused(room("attic", needs: ["mail"], harmless), adding: "attic") == nil)
    }
}
