import JSON
import TestSupport
import Testing

@testable import Gateway

/// Several calls in one transaction.
@Suite(.timeLimit(.minutes(10))) struct BatchTests {
    @Test func `a batch is done as a whole, or not at all`() async throws {
        try await GatewayWorld.with { world in
            let good = try await world.ask(
                "POST", "/v1/batch",
                #"{"calls": [{"function": "mood_log", "args": {"person": "ada", "color": "happy"}}, {"function": "moods", "args": {"person": "ada"}}, {"function": "hobby_presets"}]}"#
            )
            #expect(good.status == 200, "\(good.text)")
            #expect(good.json["results"]?.items?.count == 3)
            #expect(good.json["results"]?.items?[2].items?.isEmpty == false)
            let bad = try await world.ask(
                "POST", "/v1/batch",
                #"{"calls": [{"function": "mood_log", "args": {"person": "ada", "color": "calm"}}, {"function": "mood_log", "args": {"person": "bob", "color": "calm"}}]}"#
            )
            #expect([403, 404].contains(bad.status), "\(bad.text)")
            #expect(bad.json["index"]?.integer == 1)
            let moods = try await world.call("moods", #"{"person": "ada"}"#)
            #expect(moods.json.items?.map { $0["color"]?.text } == ["happy"], "\(moods.text)")
        }
    }

    @Test func `a batch that is malformed says where`() async throws {
        try await GatewayWorld.with { world in
            let call = #"{"function": "now"}"#
            let cases: [(String, Int, String?, Int?)] = [
                (#"{}"#, 400, "calls", nil), (#"{"calls": []}"#, 400, "calls", nil),
                (#"{"calls": {}}"#, 400, "calls", nil),
                (#"{"calls": [], "more": 1}"#, 400, "more", nil),
                ("{\"calls\": [\(Array(repeating: call, count: 51).joined(separator: ","))]}", 400, "calls", nil),
                (#"{"calls": [1]}"#, 400, "calls", 0), (#"{"calls": [{}]}"#, 400, "function", 0),
                ("{\"calls\": [\(call), {\"function\": \"claim\"}]}", 404, "function", 1),
                ("{\"calls\": [\(call), {\"function\": \"now\", \"args\": []}]}", 400, "args", 1),
                ("{\"calls\": [{\"function\": \"own_jobs\", \"args\": {\"page\": \"x\"}}]}", 400, "page", 0),
                ("{\"calls\": [{\"function\": \"now\", \"arg\": {}}]}", 400, "arg", 0),
            ]
            for (body, status, field, index) in cases {
                let answer = try await world.ask("POST", "/v1/batch", body)
                #expect(answer.status == status, "\(body): \(answer.text)")
                #expect(answer.word("field") == field, "\(body): \(answer.text)")
                #expect(answer.json["index"]?.integer == index, "\(body): \(answer.text)")
            }
            let all = try await world.ask(
                "POST", "/v1/batch", "{\"calls\": [\(Array(repeating: call, count: 50).joined(separator: ","))]}")
            #expect(all.status == 200 && all.json["results"]?.items?.count == 50)
        }
    }
}
