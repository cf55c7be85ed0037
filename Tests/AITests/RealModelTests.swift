import Foundation
import Postgres
import TestSupport
import Testing
import Transfers

@testable import AI

/// Questions to a real server of the format of OpenAI: deploy/checks/ai starts llama.cpp's with a model of random weights.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["MILLRACE_AI_SERVER"] != nil, "MILLRACE_AI_SERVER is not set"))
struct RealModelTests {
    private let server = ProcessInfo.processInfo.environment["MILLRACE_AI_SERVER"] ?? ""

    @Test(arguments: [100])
    func `a real server is asked, its answers fit, and its tokens are counted as it counts them`(
        count: Int
    ) async throws {
        try await withAI { bench in
            try await bench.connection.run(
                """
                select millrace.ai_purpose_put('mood', 'You judge moods.', 'How is the mood of: {{text}}?', '{"text": {"type": "text", "required": true}}',
                    '{"type": "object", "required": ["mood", "words"], "additionalProperties": false, "properties": {
                        "mood": {"type": "string", "enum": ["good", "bad", "mixed"]},
                        "words": {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 4}}}}', limits => '{"max_tokens": 400, "client_tokens": 0}')
                """)
            try await bench.configure()
            let before = try await figures()
            for n in 0..<count { try await bench.ask("mood", #"{"text": "day \#(n)"}"#) }
            try await bench.withWorker(base: server + "/v1") { try await bench.ended(count) }
            let byStatus = try await bench.connection.column(
                "select status || ' ' || count(*) from millrace.ai_question group by status")
            #expect(byStatus == ["answered \(count)"])
            let misfits = try await bench.connection.int(
                """
                select count(*) from millrace.ai_question q
                 where not (q.answer ->> 'mood' in ('good', 'bad', 'mixed') and jsonb_typeof(q.answer -> 'words') = 'array'
                            and jsonb_array_length(q.answer -> 'words') <= 2)
                """)
            #expect(misfits == 0)
            let told = try await bench.connection.column(
                "select sum(tokens_in)::text from millrace.ai_call union all select sum(tokens_out)::text from millrace.ai_call"
            ).compactMap { Int($0) }
            print("real model: \(count) questions answered, tokens in and out: \(told)")
            // A server may close a connection that it has just been asked on. Then nobody tells what that call did cost.
            let untold = try await bench.connection.column(
                "select concat_ws(' ', reserved, outcome, error_class, error) from millrace.ai_call where tokens_in is null"
            )
            for call in untold { print("real model: without a price: \(call)") }
            #expect(untold.count <= count / 20)
            if let before, let after = try await figures() {
                let theirs = [after.prompts - before.prompts, after.answers - before.answers]
                #expect(untold.isEmpty ? told == theirs : zip(told, theirs).allSatisfy { $0 <= $1 })
            }
            let reserved = untold.compactMap { Int($0.prefix { $0.isNumber }) }.reduce(0, +)
            #expect(try await bench.used() == told.reduce(reserved, +))
        }
    }

    /// What llama.cpp's server counts itself; nil: another server, which does not tell.
    private func figures() async throws -> (prompts: Int, answers: Int)? {
        let client = HTTPClient()
        defer { client.close() }
        let answer = try await client.send(HTTPRequest("GET", server + "/metrics"))
        guard answer.status == 200 else { return nil }
        func value(_ name: String) -> Int? {
            String(decoding: answer.body, as: UTF8.self).split(separator: "\n").first { $0.hasPrefix(name + " ") }
                .flatMap { Double($0.split(separator: " ")[1]) }.map { Int($0) }
        }
        guard let prompts = value("llamacpp:prompt_tokens_total"),
            let answers = value("llamacpp:tokens_predicted_total")
        else { return nil }
        return (prompts, answers)
    }
}
