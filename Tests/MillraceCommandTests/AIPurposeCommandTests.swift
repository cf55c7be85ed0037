import AI
import Foundation
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

/// Purposes by the command line, and what `doctor` says of AI.
@Suite struct AIPurposeCommandTests {
    private static let menu = #"""
        {"instructions": "You plan meals.", "prompt": "Name a dish for {{people}}, in {{language}}.", "variables": {"people": {"type": "number", "required": true}},
         "schema": {"type": "object", "required": ["dish"], "properties": {"dish": {"type": "string", "maxLength": 80}}}, "limits": {"max_tokens": 200, "client_tokens": 5000}}
        """#

    private func put(_ arguments: String..., file: String = menu, database url: String = "") async -> Outcome {
        let capture = Capture()
        let code = await Application.run(
            arguments: ["ai", "purpose", "put"] + arguments + (url.isEmpty ? [] : ["--database-url", url]),
            surroundings: .fake([:], files: ["menu.json": file]), console: capture.console)
        return Outcome(code: code, output: capture.output, errors: capture.errors)
    }

    @Test
    func `a purpose is put by file or flags, shown as it can be put again, and keeps its version if nothing is new`()
        async throws
    {
        try await withDatabase { database in
            let url = database.url
            let first = await put("menu", "--file", "menu.json", database: url)
            #expect(first.code == .done && first.output == "the purpose menu has now version 1\n", "\(first.errors)")
            #expect(!first.errors.contains("restart"), "running workers take its questions")
            let again = await put("menu", "--file", "menu.json", "--json", database: url)
            #expect(try JSONValue.read(again.output)["changed"] == .bool(false) && !again.errors.contains("restart"))
            let shown = await millrace("ai", "purpose", "show", "menu", "--json", "--database-url", url)
            let back = await put("menu", "--file", "menu.json", file: shown.output, database: url)
            #expect(back.output == "the purpose menu already had version 1\n", "\(back.errors)")
            // Only what the flags say changes.
            let other = await put(
                "menu", "--model", "anthropic:small", "--timeout", "30s", "--note", "cheaper", database: url)
            #expect(other.output == "the purpose menu has now version 2\n", "\(other.errors)")
            let changed = try JSONValue.read(
                await millrace("ai", "purpose", "show", "menu", "--json", "--database-url", url).output)
            #expect(changed["model"]?.text == "anthropic:small" && changed["note"]?.text == "cheaper")
            #expect(changed["limits"]?.compact == #"{"max_tokens":200,"client_tokens":5000,"timeout_seconds":30}"#)
            #expect(changed["prompt"]?.text == "Name a dish for {{people}}, in {{language}}.")
            let bounded = await put("menu", "--client-tokens", "7000", database: url)
            #expect(bounded.output == "the purpose menu has now version 3\n", "\(bounded.errors)")
            // A built-in one, in an own version.
            let sentiment = await put("sentiment", "--max-tokens", "99", "--json", database: url)
            #expect(try JSONValue.read(sentiment.output)["purpose_version"]?.integer == 1, "\(sentiment.errors)")
            let listed = await millrace("ai", "purposes", "--database-url", url)
            #expect(listed.output.contains("menu") && listed.output.contains("anthropic:small"))
            #expect(listed.output.contains("7000") && listed.output.contains("500000"))
            #expect(await millrace("ai", "purpose", "show", "none", "--database-url", url).code == .notFound)
        }
    }

    @Test func `what is wrong with a purpose is said before it is put, or by the database in its words`() async throws {
        try await withDatabase { database in
            let url = database.url
            for (file, words) in [
                ("[]", "expected an object, found a list"), ("{", "malformed JSON"),
                (#"{"promt": "x"}"#, "unknown key"), (#"{"prompt": "x"}"#, "lacks instructions, schema"),
                (#"{"instructions": 7, "prompt": "x", "schema": {}}"#, "instructions: expected a text, found a number"),
                (#"{"instructions": "i", "prompt": "x", "schema": []}"#, "schema: expected an object, found a list"),
            ] {
                let refused = await put("menu", "--file", "menu.json", file: file, database: url)
                #expect(refused.code == .misused && refused.errors.contains(words), "\(file): \(refused.errors)")
            }
            let missing = await put("menu", "--file", "nowhere.json", database: url)
            #expect(missing.code == .misused && missing.errors.contains("no such file"))
            let strange = await put(
                "menu", "--file", "menu.json", "--schema", #"{"type": "object", "oneOf": []}"#, database: url)
            #expect(strange.code == .misused && strange.errors.contains("Allowed words:"), "\(strange.errors)")
            let unbounded = await put(
                "menu", "--file", "menu.json",
                file: Self.menu.replacing(#", "client_tokens": 5000"#, with: ""), database: url)
            #expect(
                unbounded.code == .misused && unbounded.errors.contains("limits.client_tokens is missing")
                    && unbounded.errors.contains("only back ends ask"), "\(unbounded.errors)")
            let name = await put("Menu!", "--file", "menu.json", database: url)
            #expect(name.code == .misused && name.errors.contains("malformed"), "\(name.errors)")
        }
    }

    @Test func `doctor says when AI is switched on and nothing can answer, or nothing does`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            func judged() async throws -> Check.Result {
                try await AIAdmin.troubles(on: connection, deadline: .ample).judged
            }
            #expect(try await judged() == .ok("switched on for nobody"))
            try await connection.run("select millrace.ai_switch('tenant', 'shop', true)")
            #expect(try await judged().sentence.contains("no worker has a model to ask"))
            try await connection.run(
                #"select millrace.ai_providers_tell('[{"name": "openai", "wire": "openai", "model": "m"}]')"#)
            #expect(try await judged().sentence == "no running worker asks models")
            try await connection.run(
                """
                select millrace.register_kinds(array(select 'ai.' || name from millrace.ai_built_in()), array(select null::text from millrace.ai_built_in()));
                select millrace.session_open(5, 'w', 'h', 1, '1', null, array(select id from millrace.kind where name like 'ai.%'), 1, false)
                """)
            #expect(try await judged() == .ok("of openai, switched on for 1"))
            let question = "millrace.ai_ask('sentiment', '{\"text\": \"x\"}', 'shop'"
            try await connection.run(
                "select \(question)), \(question), options => '{\"run_at\": \"2100-01-01T00:00:00Z\", \"locale\": \"de\"}')"
            )
            #expect(try await judged().word == "ok")
            try await connection.run("update millrace.ai_question set asked_at = asked_at - interval '16 min'")
            let late = try await judged()
            #expect(late.sentence.hasPrefix("1 question has no answer after 15 minutes, the oldest after 16m"))
            try await connection.run(
                "update millrace.ai_question set status = 'cancelled', ended_at = now(); select millrace.ai_purpose_put('menu', 'i', 'p', '{}', '{\"type\": \"object\", \"properties\": {\"dish\": {\"type\": \"string\"}}}', limits => '{\"client_tokens\": 9}')"
            )
            #expect(try await judged().sentence == "no running worker takes questions of menu")
            // As purposes were put before they said how much a person may use.
            try await connection.run(
                """
                update millrace.ai_purpose set limits = '{}';
                select millrace.register_kinds(array['ai.ask'], array[null]::text[]);
                update millrace.session set kinds = array(select id from millrace.kind where name like 'ai.%')
                """)
            let unbounded = try await judged()
            #expect(unbounded.sentence == "clients may ask for menu without a limit for each person")
            #expect(unbounded.advice?.contains("millrace ai purpose put menu --client-tokens") == true)
            try await connection.run(
                """
                insert into millrace.ai_leftover (provider, remote, what, since, due_at, tries, tried_at, error)
                select 'openai', 'batch_' || n, 'batch', now() - interval '3 hours', now(), 2, now(), 'it was down' from generate_series(1, 7) n;
                insert into millrace.ai_leftover (provider, remote, what, since, due_at) values ('openai', 'file-1', 'file', now(), now())
                """)
            let undeleted = try await judged()
            #expect(
                undeleted.sentence
                    == "what batches asked is still at the provider, and could not be deleted for 3h: "
                    + "openai batch_1, openai batch_2, openai batch_3, openai batch_4, openai batch_5, …")
            #expect(undeleted.advice?.contains("it was down") == true)
            await connection.close()
        }
    }
}
