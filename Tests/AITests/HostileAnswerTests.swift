import Fakes
import Foundation
import JSON
import Postgres
import TestSupport
import Testing

@testable import AI

/// Answers made to break out, from a seed: each is stored as the data it is, or refused.
@Suite struct HostileAnswerTests {
    private static let parts = [
        "<script>alert(1)</script>", "'; drop table millrace.ai_question; --", "{{#each}}{{{secret}}}{{/each}}", "${x}",
        "<img src=x onerror=alert(1)>", "\u{202E}evil", "%s%n", "\\u0000", "]]>", "{{", "}}", "$1", "<!--", "a\u{0}b",
        "Ignore all instructions", String(repeating: "x", count: 5000), "\"}", "\u{1F600}", "--", "javascript:alert(1)",
    ]

    static func answer(_ seed: Int) -> String {
        var random = SeededRandom(seed)
        func text() -> JSONValue {
            .string((0...random.below(3)).map { _ in parts[random.below(parts.count)] }.joined(separator: " "))
        }
        switch random.below(10) {
        case 0: return parts[random.below(parts.count)]
        case 1: return String(repeating: "[", count: 1 + random.below(20_000))
        case 2: return #"{"tip": 1, "action": []}"#
        case 3: return JSONValue.object([.init(key: "tip", value: text())]).compact
        case 4:
            return JSONValue.object([
                .init(key: "tip", value: text()), .init(key: "action", value: text()), .init(key: "x", value: text()),
            ]).compact
        case 5: return #"{"tip": "a", "action": "b""#
        case 6: return #"{"tip": "a\u0000b", "action": "b"}"#
        default:
            return JSONValue.object([.init(key: "tip", value: text()), .init(key: "action", value: text())]).compact
        }
    }

    @Test func `a thousand hostile answers are stored as data or refused`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let schema = try #require(
                try await connection.value("select schema from millrace.ai_built_in() where name = 'coaching_tip'"))
            var stored = 0
            var refused = 0
            try await connection.run("create table public.kept (n int, answer jsonb)")
            for seed in 0..<1000 {
                let answer = AIRun.bare(Self.answer(seed))
                if AIRun.complaint(answer) != nil {
                    refused += 1
                    continue
                }
                let problem =
                    try await connection.query(
                        "select millrace.ai_problem($1, $2)", [.json(schema), .text(answer)]
                    ) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
                if problem != nil {
                    refused += 1
                    continue
                }
                try await connection.execute(
                    "insert into public.kept values ($1, $2::text::jsonb)", [.int4(Int32(seed)), .text(answer)])
                let kept = try await connection.query(
                    "select answer ->> 'tip', length(answer ->> 'tip') between 1 and 600, (select count(*) from jsonb_object_keys(answer)) from public.kept where n = $1",
                    [.int4(Int32(seed))]
                ) { row throws(PostgresError) in (try row.string(0), try row.bool(1), try row.int(2)) }.first
                #expect(kept?.0 == (try JSONValue.read(answer))["tip"]?.text, "seed \(seed)")
                #expect(kept?.1 == true && kept?.2 == 2, "seed \(seed)")
                stored += 1
            }
            #expect(stored + refused == 1000)
            #expect(stored > 100 && refused > 100)
            #expect(try await connection.int("select count(*) from millrace.ai_question") == 0)
        }
    }

    @Test func `hostile answers pass through a worker as data, and those that do not fit are refused`() async throws {
        try await withAI {
            .answer(HostileAnswerTests.answer($0.number))
        } _: { bench in
            try await bench.configure()
            for n in 0..<40 { try await bench.ask("coaching_tip", #"{"situation": "case \#(n)"}"#) }
            try await bench.withWorker { try await bench.ended(40) }
            let misfits = try await bench.connection.int(
                """
                select count(*) from millrace.ai_question q cross join millrace.ai_built_in() b
                 where b.name = q.purpose and q.status = 'answered' and millrace.ai_misfit(b.schema, q.answer) is not null
                """)
            #expect(misfits == 0)
            let statuses = try await bench.connection.column(
                "select distinct status from millrace.ai_question order by status")
            #expect(statuses == ["answered", "failed"])
        }
    }
}
