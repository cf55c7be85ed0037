import Digests
import Encodings
import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand
@testable import MillraceLoad

/// What programs, scripts and old workers rely on, as it was recorded: it may grow, and nothing of it may go.
///
/// A recording is a text file in `Recorded/`, one entry a line. A release adds lines; no change takes one away.
@Suite struct RecordedContractTests {
    private static func recorded(_ name: String) throws -> [String] {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Recorded/\(name).txt")
        let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n").map(String.init)
        #expect(lines.count >= 5, "\(name) records next to nothing")
        return lines
    }

    @Test func `no verb and no flag of the command line has gone`() throws {
        var known: Set<String> = []
        for command in LoadVerbs.tree.commands {
            let path = command.path.joined(separator: " ")
            for length in 1...command.path.count { known.insert(command.path.prefix(length).joined(separator: " ")) }
            for flag in command.flags { known.insert("\(path) --\(flag.name)") }
        }
        for flag in CommandFlag.global {
            known.insert("* --\(flag.name)" + (flag.short.map { " -\($0)" } ?? ""))
        }
        let gone = try Self.recorded("commands").filter { !known.contains($0) }
        #expect(gone == [])
    }

    @Test func `no variable of the environment has gone`() throws {
        let known = Set(Setting.all.map(\.environment))
        #expect(try Self.recorded("environment").filter { !known.contains($0) } == [])
    }

    @Test func `no field of JSON has gone from the guide, whose rows are compared with what is printed`() throws {
        let rows = try JSONContractTests.rows(below: "Fields")
        var known: Set<String> = []
        for row in rows {
            for path in Self.paths(of: try JSONShape.fields(in: row.fields)) { known.insert("\(row.line) | \(path)") }
        }
        #expect(try Self.recorded("fields").filter { !known.contains($0) } == [])
    }

    private static func paths(of fields: [JSONShape.Field]) -> [String] {
        fields.flatMap { field -> [String] in
            let inner: [JSONShape.Field] =
                switch field.shape {
                case .fields(let fields), .entries(.fields(let fields)): fields
                case .text, .int, .number, .bool, .object, .list, .any, .entries: []
                }
            return [field.name] + paths(of: inner).map { "\(field.name).\($0)" }
        }
    }

    @Test func `released migrations are what they were`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized
        var known: [String: String] = [:]
        for folder in ["sql", "Tests/QueuesTests/Shipped"] {
            let files = FileManager.default.enumerator(
                at: root.appending(path: folder), includingPropertiesForKeys: nil)
            for case let file as URL in try #require(files) where file.pathExtension == "sql" {
                known[file.deletingPathExtension().lastPathComponent] = Hexadecimal.text(
                    SHA256Digest.of(Array(try Data(contentsOf: file))))
            }
        }
        for line in try Self.recorded("migrations") {
            let words = line.split(separator: " ").map(String.init)
            #expect(known[words[0]] == words[1], "\(words[0])")
        }
    }

    /// Workers of earlier versions take these numbers from their own program.
    @Test func `no advisory lock has another number`() throws {
        let page = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../sql/locks.md")
        let text = try String(contentsOf: page, encoding: .utf8)
        for number in [
            "1297239619, 0–63", "1297239620, 0–63", "1297239619, 64", "1297239640", "1297239641, 0", "1297239622",
        ] {
            #expect(text.contains("| \(number)"), "\(number)")
        }
    }

    @Test func `no exit code has another number`() {
        let codes: [ExitCode: Int32] = [
            .done: 0, .failed: 1, .misused: 2, .notFound: 3, .conflict: 4, .unreachable: 5, .schemaMismatch: 6,
            .timedOut: 7, .jobDied: 8, .degraded: 10, .critical: 11,
        ]
        for (code, number) in codes { #expect(code.rawValue == number) }
    }

    /// A function may get parameters behind those that it has, and its rows columns behind theirs.
    @Test func `no function of the schema has gone, and none takes or returns less`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("set search_path = pg_catalog")
            let now = try await connection.column(
                """
                select p.proname || '(' || coalesce((select string_agg(coalesce(a.name, '') || ' ' || format_type(a.type, null), ', ' order by a.n)
                           from unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) with ordinality a(name, type, n)
                          where a.name is distinct from 'caller'), '') || ') -> ' || pg_get_function_result(p.oid)
                  from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.prokind = 'f'
                """
            ).map(Signature.init)
            let gone = try Self.recorded("functions").filter { line in
                let before = Signature(line)
                return !now.contains { $0.replaces(before) }
            }
            #expect(gone == [])
            await connection.close()
        }
    }

    /// Columns of tables that no role may read, and where their rows have moved. A view shows them under the names that they had.
    private static let moved = [
        "family.best": "quest_family", "family.due_at": "quest_family", "family.failures": "quest_family",
        "family.freezes": "quest_family", "family.next_rollover_at": "quest_family",
        "family.opened_at": "quest_family", "family.problem": "quest_family", "family.streak": "quest_family",
        "family.today": "quest_family", "family_member.mood_best": "quest_person",
        "family_member.mood_freezes": "quest_person", "family_member.mood_last": "quest_person",
        "family_member.mood_streak": "quest_person",
    ]

    @Test func `no column of a table or view has gone or changed its type`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("set search_path = pg_catalog")
            let now = Set(
                try await connection.column(
                    """
                    select c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, null)
                      from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                     where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p', 'v') and not c.relispartition
                    """))
            let gone = try Self.recorded("columns").filter { line in
                let column = line.prefix { $0 != " " }
                let place = Self.moved[String(column)].map { $0 + line.drop { $0 != "." } }
                return !now.contains(place ?? line)
            }
            #expect(gone == [])
            await connection.close()
        }
    }

    @Test func `a recording finds what is gone`() {
        let before = Signature("quest_today(family text, day date) -> TABLE(day date, kind text)")
        #expect(
            Signature("quest_today(family text, day date, more int) -> TABLE(day date, kind text, id text)").replaces(
                before))
        for less in [
            "quest_now(family text, day date) -> TABLE(day date, kind text)",
            "quest_today(family text) -> TABLE(day date, kind text)",
            "quest_today(family text, day text) -> TABLE(day date, kind text)",
            "quest_today(family text, day date) -> TABLE(kind text)",
            "quest_today(family text, day date) -> void",
        ] { #expect(!Signature(less).replaces(before), "\(less)") }
    }

    private struct Signature {
        let name: String
        let parameters: [String]
        let result: String

        init(_ line: String) {
            let halves = line.split(separator: ") -> ", maxSplits: 1).map(String.init)
            let head = halves[0].split(separator: "(", maxSplits: 1).map(String.init)
            name = head[0]
            parameters = head.count > 1 ? head[1].split(separator: ", ").map(String.init) : []
            result = halves.count > 1 ? halves[1] : ""
        }

        func replaces(_ before: Signature) -> Bool {
            guard name == before.name, parameters.starts(with: before.parameters) else { return false }
            if result == before.result { return true }
            return before.result.hasPrefix("TABLE(") && result.hasPrefix(before.result.dropLast() + ", ")
        }
    }
}
