import Postgres
import Templates
import TestSupport
import Testing

/// A published version is used once the compiler has checked it, whatever role published it.
@Suite struct TemplateCheckTests {
    private static func publish(_ html: String?, _ plain: String = "T {{v}}", on connection: Connection) async throws
        -> Int
    {
        let part = html.map { "$h$\($0)$h$" } ?? "null"
        return try await connection.int(
            "select millrace.template_publish('hello', 'S', \(part), '\(plain)', '{\"v\": {}}')")
    }

    private static func rows(on connection: Connection) async throws -> [String] {
        try await TemplateStore.list(name: "hello", on: connection).map { "\($0.version) \($0.state.rawValue)" }
    }

    @Test func `what SQL publishes is not live before it was compiled, and what is live stays so`() async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            #expect(try await Self.publish("<p>{{v}}</p>", on: connection) == 1)
            #expect(try await Self.rows(on: connection) == ["1 unchecked"])
            #expect(try await TemplateStore.live("hello", locales: ["en"], on: connection) == nil)
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await Self.rows(on: connection) == ["1 live"])
            #expect(try await Self.publish("<p><b>{{v}}</b></p>", on: connection) == 2)
            #expect(try await Self.rows(on: connection) == ["1 live", "2 unchecked"])
            #expect(try await TemplateStore.live("hello", locales: ["en"], on: connection)?.version == 1)
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await Self.rows(on: connection) == ["1 -", "2 live"])
        }
    }

    @Test(arguments: [
        "<p title={{v}} class=\"x\">", "<a href=\"https://shop.example{{v}}\">x</a>",
        "<animate attributeName=href values={{v}}>",
        "<script>{{v}}</script>", "<p>{{w}}</p>", "<p>{{{v}}}</p>", "<p>{{#v}}",
    ])
    func `SQL and the command line refuse the same, in the same words`(_ html: String) async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            let version = try await Self.publish(html, on: connection)
            try await TemplateStore.checkUnchecked(on: connection)
            let row = try #require(try await TemplateStore.list(name: "hello", on: connection).first)
            #expect(row.state == .refused && row.checkedAt != nil)
            let source = try #require(
                try await TemplateStore.source("hello", locales: ["en"], version: version, on: connection))
            #expect(row.problem != nil && row.problem == Lint.problem(with: source))
            #expect(try await TemplateStore.live("hello", locales: ["en"], on: connection) == nil)
            let refusal = try await connection.refusal(of: "select millrace.template_use('hello', \(version))")
            #expect(refusal?.sqlState == "22023" && refusal?.message.contains("was refused") == true)
            #expect(try await Self.publish("<p>{{v}}</p>", on: connection) == 2)
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await Self.rows(on: connection) == ["1 refused", "2 live"])
        }
    }

    @Test func `a version that was compiled is live only if it is still wanted`() async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            _ = try await Self.publish(nil, "1 {{v}}", on: connection)
            try await TemplateStore.checkUnchecked(on: connection)
            _ = try await Self.publish(nil, "2 {{v}}", on: connection)
            _ = try await Self.publish(nil, "3 {{v}}", on: connection)
            #expect(try await Self.publish(nil, "3 {{v}}", on: connection) == 3, "it awaits its check already")
            #expect(
                try await connection.bool("select millrace.template_use('hello', 1)"),
                "the third is not wanted any more")
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await Self.rows(on: connection) == ["1 live", "2 -", "3 -"])
            _ = try await Self.publish(nil, "4 {{v}}", on: connection)
            #expect(try await connection.bool("select millrace.template_use('hello', 2)"))
            _ = try await Self.publish(nil, "5 {{v}}", on: connection)
            #expect(try await connection.bool("select millrace.template_use('hello', 4)"))
            #expect(try await connection.bool("select millrace.template_use('hello', 4)") == false)
            #expect(try await TemplateStore.live("hello", locales: ["en"], on: connection)?.version == 2)
            try await TemplateStore.checkUnchecked(on: connection)
            #expect(try await Self.rows(on: connection) == ["1 -", "2 -", "3 -", "4 live", "5 -"])
            _ = try await Self.publish(nil, "6 {{v}}", on: connection)
            #expect(try await connection.bool("select millrace.template_checked('hello', 'en', 6, 'no')"))
            #expect(
                try await connection.bool("select millrace.template_checked('hello', 'en', 6)") == false,
                "the first word counts")
            #expect(try await Self.rows(on: connection).last == "6 refused")
        }
    }

    @Test func `the command line hands its check in with what it publishes`() async throws {
        try await withConnection { (connection: Connection) async throws -> Void in
            func source(_ html: String) -> MailSource {
                MailSource(
                    name: "hello", locale: "en", version: 0, subject: "S", html: html, plain: "{{v}}",
                    variables: Array(#"{"v": {}}"#.utf8))
            }
            #expect(try await TemplateStore.publish(source("<p>{{v}}</p>"), note: nil, on: connection) == 1)
            #expect(try await Self.rows(on: connection) == ["1 live"])
            #expect(try await TemplateStore.publish(source("<p {{v}}>"), note: nil, on: connection) == 2)
            #expect(try await Self.rows(on: connection) == ["1 live", "2 refused"])
        }
    }

    @Test func `rendering compiles first, and a running worker compiles on its own`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let pool = Pool(database.options, size: 2)
            let store = TemplateStore(pool: pool)
            _ = try await Self.publish("<p>{{v}}</p>", on: connection)
            #expect(try await store.render("hello", data: ["v": "x"]).html == "<p>x</p>")
            let running = Task { await store.run() }
            _ = try await Self.publish("<p title={{v}}>", on: connection)
            try await eventually("it is refused") {
                try await connection.bool(
                    "select exists (select from millrace.templates where problem like '%without quotes%')")
            }
            #expect(try await store.render("hello", data: ["v": "x"]).version == 1)
            running.cancel()
            await running.value
            await pool.close()
            await connection.close()
        }
    }
}
