import Foundation
import TestSupport
import Testing

/// The rules of the source tree, which `deploy/check-house` prints and checks.
@Suite struct HouseTests {
    private static let script = Snippet.root.appending(path: "deploy/check-house")

    @Test func `every rule of the house holds`() async throws {
        let outcome = try await Program.run("python3", [Self.script.path], errors: true)
        #expect(outcome.status == 0, "\(outcome.text)")
    }

    @Test func `each rule is found broken where it is broken`() async throws {
        let root = FileManager.default.temporaryDirectory.appending(path: "millrace-house-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: root) }
        func write(_ text: String, to path: String) throws {
            let file = root.appending(path: path)
            try FileManager.default.createDirectory(
                at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: file, atomically: true, encoding: .utf8)
        }
        for name in [
            "check-house", "house_sql.py", "house_doors.py", "house_package.py", "house_pictures.py",
            "house_promises.py", "house_words.py",
        ] {
            let file = Self.script.deletingLastPathComponent().appending(path: name)
            try write(try String(contentsOf: file, encoding: .utf8), to: "deploy/\(name)")
        }
        try write(
            "Plain words: it was so already.\n<!-- made by deploy/pictures: processes --><!-- end -->\n",
            to: "README.md")
        try write(
            "| 1 | a | ✗ | later |\n| 2 | b | ◐ | no |\n| 3 | c | ✓ | `Absent\u{54}ests` |\n| 4 | d | ✓ | words |\n",
            to: "deploy/guides/promises.md")
        try write(
            "## Advisory locks\n\n| 1297239619, 0 | a | b |\n| 1297239619, 0–3: K | c | d |\n", to: "sql/locks.md")
        try writeRooms(write)
        for page in ["deploy/guides/doors.md", "deploy/guides/who-may.md", "sql/README.md"] { try write("", to: page) }
        try write(
            String(contentsOf: Snippet.root.appending(path: "sql/states.md"), encoding: .utf8), to: "sql/states.md")
        try write(
            ["processes", "rooms", "the life of a job"].map { "<!-- made by deploy/pictures: \($0) --><!-- end -->\n" }
                .joined(), to: "Sources/ARCHITECTURE.md")
        try write("@Suite struct SameTests {}\n", to: "Tests/JobsTests/Nine.swift")
        try write("@Suite(.serialized) struct SameTests {}\n", to: "Tests/QueuesTests/Nine.swift")
        try write(
            "func end() async {\n    await Task { await leave() }.value\n}\n", to: "Sources/Engine/Jobs/Ten.swift")
        try write("", to: "Sources/System/CZlib/module.modulemap")
        try write("struct Twice {}\n", to: "Sources/Engine/Jobs/One.swift")
        try write("import CZlib\nimport Quests\nstruct Twice {}\n", to: "Sources/Domains/Mail/Two.swift")
        try write("struct Quest {}\n", to: "Sources/Domains/Quests/Quest.swift")
        try write("import Mail\n// It begins a\u{6e}ew.\n", to: "Sources/Engine/Queues/Three.swift")
        try write(String(repeating: "// line\n", count: 401), to: "Sources/Engine/Queues/Four.swift")
        for number in 1...4 {
            try write(
                String(repeating: "// line\n", count: 400), to: "Sources/Programs/Composition/Long\(number).swift")
        }
        try write(
            "func long() {\n" + String(repeating: "    print(1)\n", count: 80) + "}\n",
            to: "Sources/Engine/Queues/Five.swift")
        try write(
            "let count = \"select count(*) from \" + \"x\"\nlet all = \"select count(*) from pg_\u{6c}ocks\"\n"
                + "let mine = \"select 1 from pg_\u{6c}ocks where database = current_database()\"\n",
            to: "Tests/QueuesTests/Six.swift")
        try write(
            "let answer = try await session.data(for: request)\n// session.data(for: request)\n",
            to: "Sources/Faces/MillraceApp/Seven.swift")
        try write(
            "let handle = PQconnectdb(\"x\")\nlet path: SQL = \"set local search_path = public\"\n",
            to: "Sources/Engine/Queues/Eight.swift")
        try write(Self.manifest, to: "Package.swift")
        try write("char *text = \"discard all\";\n", to: "Sources/Programs/CYardstick/waking.c")
        let outcome = try await Program.run(
            "python3", [root.appending(path: "deploy/check-house").path], errors: true)
        #expect(outcome.status == 1)
        for words in [
            "the type Twice stands in Jobs and Mail", "README.md:1: “Plain words: it was so already",
            "Two.swift imports C: CZlib",
            "Two.swift imports another domain: Quests", "Three.swift (Engine) imports Mail (Domains)",
            "Three.swift:2 says", "Four.swift has 401 lines", "Five.swift:1 is 82 lines long",
            "the lock 1297239619, 0 has 2 purposes", "Six.swift:2 asks the whole server",
            "Seven.swift:1 waits for a session's queue", "Eight.swift:1 opens a connection",
            "the suite SameTests stands in Tests/JobsTests/Nine.swift and Tests/QueuesTests/Nine.swift",
            "Ten.swift:2 awaits a task of its own",
            "the pictures of Sources/ARCHITECTURE.md are not those of the code",
            "the pictures of README.md are not those of the code",
            "Eight.swift:2 changes a session's search_path", "waking.c:1 changes a session's search_path",
            "clock.sql:2 one_call uses millrace.mail_now: mail stands above base",
            "clock.sql:6 one_text uses millrace.mail: mail stands above base",
            "clock.sql:8 one_view uses millrace.mail: mail stands above base",
            "clock.sql:10 clock uses millrace.mail_now: mail stands above base",
            "mail.sql:2 mail_now writes millrace.setting: the table setting is base's",
            "mail.sql:3 mail_now uses millrace.chat_now: mail does not name chat as a need",
            "100_core.sql makes the table mail, which is mail's",
            "100_core.sql:1 the table setting uses millrace.mail: mail stands above base",
            "the table lost has no room", "names the table gone, which no migration makes",
            "clock.sql:3 the core names mail_now, which is mail's", "clock.sql:14 the core names the room chat",
            "clock.sql:14 the core names the kind mail.send", "chat needs mail, which does not stand above it",
            "base, chat, mail call each other in a cycle",
            "chat_hooks.sql registers mail_now for chat", "the room extra is not in sql/rooms.md",
            "mail.sql:3 mail_now uses millrace.chat_old: mail does not name chat as a need",
            "mail.sql:5 says that mail_now is of the room chat",
            "mail.sql:6 says who may use mail_later, which is not made in this file",
            "deploy/guides/doors.md does not list the doors as the lines in sql say",
            "the product Millrace needs CCurl: Millrace > Workers > Transfers > CCurl",
            "the product Millrace needs Mail of Sources/Domains/Mail: Millrace > Mail",
            "the product Millrace embeds what stands in sql: Millrace > Mail > RoomSchemas",
            "the engine's load scenarios need Mail of Sources/Domains/Mail: EngineLoad > LoadKit > Mail",
            "promises.md: 1 is not kept", "promises.md: 2 is not kept whole, and no reason is given",
            "promises.md: 3: there is no suite AbsentTests",
            "promises.md: 4 is kept, and nothing is named that shows it",
            "now 1600 · bar 1500 · is missed",
            "MillraceLoad 0 · EngineLoad 0 · RoomLoad 0 · LoadKit 0 · bar of each 14000 · is met · together 0",
        ] { #expect(outcome.text.contains(words), "\(words): \(outcome.text)") }
        #expect(!outcome.text.contains("Six.swift:1") && !outcome.text.contains("Six.swift:3"), "\(outcome.text)")
        // What is allowed, and what a comment or a sentence says.
        for words in ["uses millrace.now", "clock.sql:3 one_call", "clock.sql:12", "sizes.sql"] {
            #expect(!outcome.text.contains(words), "\(words): \(outcome.text)")
        }
    }

    /// A product Millrace that brings a room, its SQL and a library.
    private static let manifest = """
        .systemLibrary(name: "CCurl", path: "Sources/System/CCurl"),
        .systemLibrary(name: "CPostgres", path: "Sources/System/CPostgres"),
        .target(name: "Schema", path: "sql/core", plugins: ["EmbedSQL"]),
        .target(name: "RoomSchemas", dependencies: ["Schema"], path: "sql", plugins: ["EmbedSQL"]),
        .target(name: "Transfers", dependencies: ["CCurl"], path: "Sources/Adapters/Transfers"),
        .target(name: "Mail", dependencies: ["RoomSchemas"], path: "Sources/Domains/Mail"),
        .target(name: "LoadKit", dependencies: ["Mail"], path: "Sources/Programs/LoadKit"),
        .target(name: "EngineLoad", dependencies: ["LoadKit"], path: "Sources/Programs/EngineLoad"),
        .target(name: "Workers", dependencies: ["CPostgres", "Schema", "Transfers"], path: "Sources/Engine/Workers"),
        .target(
            name: "Millrace",
            dependencies: ["Workers", .target(name: "Mail", condition: .when(traits: ["Mail"]))],
            path: "Sources/Faces/Millrace"),

        """

    /// Three rooms, in which each rule of the rooms' order is broken once.
    private func writeRooms(_ write: (String, String) throws -> Void) throws {
        try write(
            """
            | room | needs | what it is |
            | `base` | core | a |
            | `chat` | `mail` | b |
            | `mail` | | c |

            ```text
            base setting
            mail mail
                gone
            ```

            """, "sql/rooms.md")
        try write(
            """
            create table millrace.setting (mail int references millrace.mail (id)); create table millrace.mail (id int);
            create table millrace.lost (id int);

            """, "sql/core/migrations/100_core.sql")
        try write(
            """
            create or replace function millrace.one_call() returns int language sql as $$
                select millrace.mail_now()
                     + length('millrace.mail_now()') -- and millrace.mail_now()
            $$;
            create or replace function millrace.one_text() returns void language plpgsql as $$ begin
                execute 'delete from millrace.mail'; end $$;
            create or replace view millrace.one_view as
                select * from millrace.mail m;
            do $$ begin
                create trigger a_row_is_told after insert on millrace.setting for each row execute function millrace.mail_now();
            end $$;
            create or replace function millrace.now() returns int language sql as $$ select 1 from millrace.setting $$;
            -- Neither chat nor mail_now is named by a comment, and mail alone is a word.
            create or replace function millrace.told() returns text[] language sql as $$ select array['chat', 'mail.send', 'one mail'] $$;

            """, "sql/core/base/clock.sql")
        try write("select 'mail_now';\n", "sql/core/base/sizes.sql")
        try write(
            """
            create or replace function millrace.mail_now() returns int language sql as $$
                update millrace.setting set value = millrace.now();
                select millrace.chat_now() + millrace.chat_old()
            $$;
            select millrace.door_is('chat', 'mail_now', 'worker', 'staff');
            select millrace.door_is('mail', 'mail_later', 'worker', 'staff');

            """, "sql/mail/functions/mail.sql")
        try write(
            """
            create or replace function millrace.chat_now() returns int language sql as $$ select millrace.mail_now() $$;
            create or replace function millrace.chat_old() returns int language sql as $$ select 1 $$;

            """, "sql/chat/functions/chat.sql")
        try write(
            """
            do $$ begin
                perform millrace.hooks_are('chat', '[{"event": "expire", "function": "mail_now", "position": 1}]');
            end $$;

            """, "sql/chat/functions/chat_hooks.sql")
        try write("", "sql/extra/functions/extra.sql")
    }
}
