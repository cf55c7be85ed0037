import Fakes
import Postgres
import TestSupport
import Testing

@testable import AI

/// Purposes that an app adds, before workers start and while they run.
@Suite struct AIPurposeTests {
    @Test func `an app's own purpose has versions, and questions keep theirs`() async throws {
        try await withAI { _ in
            .answer(#"{"dish": "Soup"}"#)
        } _: { bench in
            try await bench.configure()
            func put(_ prompt: String) async throws -> Int {
                try await bench.connection.int(
                    #"select millrace.ai_purpose_put('menu', 'You cook.', '\#(prompt) {{for}}', '{"for": {"type": "text", "required": true}}', '{"type": "object", "required": ["dish"], "properties": {"dish": {"type": "string", "maxLength": 20}}}', limits => '{"client_tokens": 1000}')"#
                )
            }
            #expect(try await put("Name a dish for") == 1)
            #expect(try await put("Name a dish for") == 1)
            try await bench.ask("menu", #"{"for": "two"}"#)
            #expect(try await put("Name one dish for") == 2)
            try await bench.ask("menu", #"{"for": "two"}"#)
            try await bench.withWorker { try await bench.ended(2) }
            #expect(Set(bench.fake.asked.map(\.prompt)) == ["Name a dish for two", "Name one dish for two"])
            #expect(
                try await bench.connection.column("select answer ->> 'dish' from millrace.ai_question") == [
                    "Soup", "Soup",
                ])
        }
    }

    /// Instructions are no subject of a mail: what an app puts into them may have lines, and may be nothing but that.
    @Test func `what an app says stands in the instructions with all its lines`() async throws {
        try await withAI { _ in
            .answer(#"{"dish": "Soup"}"#)
        } _: { bench in
            try await bench.configure()
            try await bench.connection.run(
                #"select millrace.ai_purpose_put('menu', '{{rules}}', 'Name a dish.', '{"rules": {"type": "text", "required": true}}', '{"type": "object", "required": ["dish"], "properties": {"dish": {"type": "string"}}}', limits => '{"client_tokens": 1000}')"#
            )
            let id = try await bench.ask("menu", #"{"rules": "You cook.\nNo <meat>."}"#)
            try await bench.withWorker { try await bench.ended(1) }
            #expect(try await bench.status(id) == "answered")
            #expect(bench.fake.asked.first?.instructions.contains("You cook.\nNo <meat>.") == true)
        }
    }

    @Test func `a worker that runs takes the questions of a purpose that was added or changed since it started`()
        async throws
    {
        try await withAI { _ in
            .answer(#"{"dish": "Soup"}"#)
        } _: { bench in
            try await bench.configure()
            func put(_ name: String, _ prompt: String) async throws {
                try await bench.connection.run(
                    #"select millrace.ai_purpose_put('\#(name)', 'You cook.', '\#(prompt)', '{"text": {}}', '{"type": "object", "required": ["dish"], "properties": {"dish": {"type": "string"}}}', limits => '{"client_tokens": 1000}')"#
                )
            }
            try await bench.ask("sentiment", #"{"text": "first"}"#)
            try await bench.withWorker {
                try await bench.ended(1)  // so it has started
                try await put("menu", "Name a dish.")
                try await bench.ask("menu", "{}")
                try await bench.ended(2)
                try await put("menu", "Name another dish.")
                try await put("sentiment", "Name a third dish.")
                try await bench.ask("menu", "{}")
                try await bench.ask("sentiment", #"{"text": "second"}"#)
                try await bench.ended(4)
            }
            #expect(
                Set(bench.fake.asked.map(\.prompt)).isSuperset(of: [
                    "Name a dish.", "Name another dish.", "Name a third dish.",
                ]))
            let jobs = try await bench.connection.column(
                "select distinct j.kind || ' ' || coalesce(j.tags::text, '') from millrace.jobs j where j.state = 'succeeded' order by 1"
            )
            #expect(jobs == ["ai.ask {ai.menu}", "ai.sentiment {}"])
        }
    }
}
