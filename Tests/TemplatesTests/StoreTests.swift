import Postgres
import Templates
import TestSupport
import Testing

@Suite struct StoreTests {
    static let publish = #"""
        select millrace.template_publish('hello', 'Hello {{name}}', '<p>{{name}}</p>', 'Hello {{name}}', '{"name": {}}'
        """#

    @Test func `versions count up, the newest is live, and the same again is no new one`() async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            func publish(_ text: String, _ locale: String = "en") async throws -> Int {
                try await connection.int(
                    "select millrace.template_publish('hello', 'S', null, '\(text)', '{}', '\(locale)', 'why')")
            }
            #expect(try await publish("one") == 1)
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await publish("two") == 2)
            #expect(try await publish("two") == 2)
            #expect(try await publish("eins", "de") == 1)
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await publish("two") == 2)
            #expect(
                try await connection.records(
                    "select locale, version, live, bytes, built_in, note from millrace.templates where name = 'hello' order by 1, 2"
                )
                    == ["(de,1,t,5,f,why)", "(en,1,f,4,f,why)", "(en,2,t,4,f,why)"])
            #expect(try await connection.bool("select millrace.template_use('hello', 1)"))
            #expect(try await connection.bool("select millrace.template_use('hello', 1)") == false)
            #expect(try await publish("one") == 1)
            #expect(try await publish("two") == 3)
            #expect(
                try await connection.column(
                    "select change || version || (by = session_user) from millrace.template_history('hello') where locale = 'en'"
                )
                    == ["published1true", "published2true", "used1true", "published3true"])
        }
    }

    @Test func `the built-in ones are listed, replaced, and come back`() async throws {
        try await withConnection { connection in
            let listed = try await connection.column(
                "select name || ' ' || locale from millrace.templates where built_in and live and version = 0")
            let known = BuiltIn.names.flatMap { name in BuiltIn.locales.map { "\(name) \($0)" } }
            #expect(Set(listed) == Set(known) && listed.count == known.count)
            let chain = ["en"]
            #expect(try await TemplateStore.live("welcome", locales: chain, on: connection)?.version == 0)
            _ = try await connection.int("select millrace.template_publish('welcome', 'S', null, 'T', '{}')")
            #expect(try await TemplateStore.live("welcome", locales: chain, on: connection)?.version == 0)
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await TemplateStore.live("welcome", locales: chain, on: connection)?.version == 1)
            #expect(try await TemplateStore.live("welcome", locales: ["de", "en"], on: connection)?.locale == "de")
            #expect(
                try await connection.column(
                    "select version::text || live from millrace.templates where name = 'welcome' and locale = 'en' order by 1"
                )
                    == ["0false", "1true"])
            #expect(try await connection.bool("select millrace.template_use('welcome', 0)"))
            #expect(try await TemplateStore.live("welcome", locales: chain, on: connection)?.version == 0)
        }
    }

    @Test(arguments: [
        ("'Hello', 'S', null, 'T', '{}'", "22023", "name"), ("'h', '', null, 'T', '{}'", "22023", "subject"),
        ("'h', E'a\\nb', null, 'T', '{}'", "22023", "subject"), ("'h', 'S', null, ' ', '{}'", "22023", "plain"),
        ("'h', 'S', '', 'T', '{}'", "22023", "html"), ("'h', 'S', repeat('x', 104449), 'T', '{}'", "53400", "html"),
        ("'h', 'S', null, repeat('x', 104449), '{}'", "53400", "plain"),
        ("'h', 'S', null, 'T', '[]'", "22023", "variables"),
        ("'h', 'S', null, 'T', '{\"a b\": {}}'", "22023", "variables"),
        ("'h', 'S', null, 'T', '{\"a\": {\"type\": \"x\"}}'", "22023", "variables"),
        ("'h', 'S', null, 'T', '{\"a\": {\"max\": null}}'", "22023", "variables"),
        ("'h', 'S', null, 'T', '{\"a\": {\"required\": 1}}'", "22023", "variables"),
        ("'h', 'S', null, 'T', '{\"a\": {\"other\": 1}}'", "22023", "variables"),
        ("'h', 'S', null, 'T', null", "22023", "variables"), ("'h', 'S', null, 'T', '{}', 'en_US'", "22023", "locale"),
        ("'h', 'S', null, 'T', '{}', 'en', repeat('x', 501)", "22023", "note"),
    ])
    func `what the database can check it refuses with its field and what to do`(
        _ arguments: String, _ state: String, _ field: String
    ) async throws {
        try await withConnection { connection in
            let error = try await connection.refusal(of: "select millrace.template_publish(\(arguments))")
            #expect(error?.sqlState == state && error?.hint?.isEmpty == false)
            #expect(error?.detail?.contains("\"field\" : \"\(field)\"") == true, "\(error?.detail ?? "-")")
            #expect(try await connection.int("select count(*) from millrace.template_version") == 0)
        }
    }

    @Test func `an unknown version is not found`() async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            for call in ["'hello', 1", "'hello', 0", "'welcome', 0, 'fr'", "'welcome', null"] {
                #expect(
                    try await connection.refusal(of: "select millrace.template_use(\(call))")?.sqlState == "P0002",
                    "\(call)")
            }
        }
    }

    @Test func `the nearest locale is used and told`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            for locale in ["pt", "en", "de"] {
                _ = try await connection.int(
                    "select millrace.template_publish('hello', '\(locale) {{name}}', null, 'T', '{\"name\": {}}', '\(locale)')"
                )
            }
            let pool = Pool(database.options, size: 2)
            let store = TemplateStore(pool: pool, defaultLocale: "de")
            for (asked, found) in [("pt-BR", "pt"), ("pt", "pt"), ("fr", "de"), ("de-AT", "de"), ("en-GB", "en")] {
                let mail = try await store.render("hello", locale: asked, data: ["name": "A"])
                #expect(mail.subject == "\(found) A" && mail.locale == found && mail.version == 1, "\(asked)")
            }
            #expect(try await store.render("hello", data: ["name": "A"]).locale == "de")
            await #expect(throws: TemplateError.self) { try await store.template("absent") }
            await pool.close()
            await connection.close()
        }
    }

    @Test func `a change is heard of, and seen without being heard of`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            func publish(_ text: String) async throws {
                _ = try await connection.int("select millrace.template_publish('hello', 'S', null, '\(text)', '{}')")
            }
            try await publish("1")
            let pool = Pool(database.options, size: 2)
            let deaf = TemplateStore(pool: pool)
            let hearing = TemplateStore(pool: pool)
            let listener = Task { await hearing.run() }
            try await eventually("somebody listens") {
                try await connection.bool(
                    "select count(*) > 0 from pg_stat_activity where datname = current_database() and query ilike 'listen %millrace_templates%'"
                )
            }
            for (text, store) in [("2", deaf), ("3", hearing), ("4", hearing), ("5", deaf)] {
                _ = try await store.render("hello", data: [:])
                try await publish(text)
                try await eventually("\(text) is seen") { try await store.render("hello", data: [:]).text == text }
            }
            listener.cancel()
            await listener.value
            await pool.close()
            await connection.close()
        }
    }

    @Test func `many who publish at once get a version each`() async throws {
        try await withDatabase { database in
            let versions = try await withThrowingTaskGroup(of: Int.self) { group in
                for number in 0..<8 {
                    group.addTask {
                        let connection = try await database.connect()
                        let version = try await connection.int(
                            "select millrace.template_publish('hello', 'S', null, 'text \(number)', '{}')")
                        await connection.close()
                        return version
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(versions.sorted() == Array(1...8))
        }
    }
}
