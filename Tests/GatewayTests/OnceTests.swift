import JSON
import TestSupport
import Testing

@testable import Gateway

/// The header Idempotency-Key.
@Suite(.timeLimit(.minutes(10))) struct OnceTests {
    private static let script = """
        create table millrace.app_count (id bigint generated always as identity, note text);
        create function millrace.app_add(note text default 'x') returns bigint
            language sql security definer set search_path = pg_catalog, pg_temp as
            $$ insert into millrace.app_count (note) values (note) returning id $$;
        create function millrace.app_fail() returns void language plpgsql security definer as $$ begin perform millrace.refuse('no'); end $$;
        """

    private func count(_ world: GatewayWorld) async throws -> Int {
        try await world.owner.int("select count(*) from millrace.app_count")
    }

    @Test func `a request with a key is done once, and its answer told again`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            let key = ["Idempotency-Key": "k-1"]
            let first = try await world.call("app_add", #"{"note": "a"}"#, headers: key)
            #expect(first.status == 200 && first.header("idempotent-replayed") == nil, "\(first.text)")
            let second = try await world.call("app_add", #"{"note": "a"}"#, headers: key)
            #expect(second.status == 200 && second.text == first.text, "\(second.text)")
            #expect(second.header("idempotent-replayed") == "true")
            let other = try await world.call("app_add", #"{"note": "b"}"#, headers: key)
            #expect(other.status == 409 && other.word("field") == "Idempotency-Key", "\(other.text)")
            // The key is the person's own.
            let bob = try await world.call("app_add", #"{"note": "a"}"#, as: "bob", headers: key)
            #expect(bob.status == 200 && bob.header("idempotent-replayed") == nil)
            #expect(try await count(world) == 2)
            let batch = try await world.ask(
                "POST", "/v1/batch", #"{"calls": [{"function": "app_add"}, {"function": "app_add"}]}"#,
                headers: ["Idempotency-Key": "k-2"])
            let again = try await world.ask(
                "POST", "/v1/batch", #"{"calls": [{"function": "app_add"}, {"function": "app_add"}]}"#,
                headers: ["Idempotency-Key": "k-2"])
            #expect(batch.status == 200 && again.header("idempotent-replayed") == "true")
            #expect(batch.json == again.json && batch.json["results"]?.items?.count == 2)
            #expect(try await count(world) == 4)
        }
    }

    @Test func `a request is the same however it is written`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            let key = ["Idempotency-Key": "k-1"]
            let ways = [
                #"{"calls":[{"args":{"note":"é/1"},"function":"app_add"}]}"#,
                #"{ "calls" : [ { "function" : "app_add", "args" : { "note" : "\u00e9\/1" } } ] }"#,
            ]
            for (number, way) in ways.enumerated() {
                let answer = try await world.ask("POST", "/v1/batch", way, headers: key)
                #expect(answer.status == 200, "\(answer.text)")
                #expect(answer.header("idempotent-replayed") == (number == 0 ? nil : "true"))
            }
            #expect(try await count(world) == 1)
            let none = ["Idempotency-Key": "k-2"]
            #expect(try await world.ask("POST", "/v1/rpc/app_add", nil, headers: none).status == 200)
            #expect(try await world.call("app_add", " { } ", headers: none).header("idempotent-replayed") == "true")
            // Another order of a list is another request.
            for (order, status) in [("1, 2", 200), ("2, 1", 409)] {
                let body =
                    #"{"calls": [\#(order.split(separator: ", ").map { #"{"function": "app_add", "args": {"note": "\#($0)"}}"# }.joined(separator: ","))]}"#
                #expect(
                    try await world.ask("POST", "/v1/batch", body, headers: ["Idempotency-Key": "k-3"]).status == status
                )
            }
        }
    }

    @Test func `what was refused is not kept, and a batch that fails leaves nothing`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            let key = ["Idempotency-Key": "k"]
            for _ in 0..<2 {
                let failed = try await world.ask(
                    "POST", "/v1/batch", #"{"calls": [{"function": "app_add"}, {"function": "app_fail"}]}"#,
                    headers: key)
                #expect(failed.status == 400 && failed.json["index"]?.integer == 1, "\(failed.text)")
                #expect(failed.header("idempotent-replayed") == nil)
            }
            #expect(try await count(world) == 0)
            #expect(try await world.call("app_add", headers: key).status == 200)
            #expect(try await count(world) == 1)
            for bad in ["", " ", "a b", String(repeating: "k", count: 129), "ü"] {
                let answer = try await world.call("app_add", headers: ["Idempotency-Key": bad])
                #expect(bad.isEmpty || bad == " " || answer.status == 400, "\(bad): \(answer.status)")
            }
        }
    }

    @Test func `eight requests with one key at once have one effect and one answer`() async throws {
        try await GatewayWorld.with(.init(script: Self.script)) { world in
            for round in 0..<5 {
                let answers = try await withThrowingTaskGroup(of: GatewayWorld.Answer.self) { group in
                    for _ in 0..<8 {
                        group.addTask {
                            try await world.call("app_add", headers: ["Idempotency-Key": "race-\(round)"])
                        }
                    }
                    return try await group.reduce(into: []) { $0.append($1) }
                }
                #expect(Set(answers.map(\.text)).count == 1, "\(answers)")
                #expect(answers.allSatisfy { $0.status == 200 })
                #expect(answers.count { $0.header("idempotent-replayed") == nil } == 1)
                #expect(try await count(world) == round + 1)
            }
        }
    }
}
