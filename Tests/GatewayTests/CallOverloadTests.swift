import JSON
import Postgres
import TestSupport
import Testing

@testable import Gateway

/// What strangers plant in `public` does not run as a caller of the gateway, nor as the gateway's login.
@Suite struct CallOverloadTests {
    @Test(arguments: [false, true]) func `no call of a door calls what a stranger has planted`(isPooled: Bool)
        async throws
    {
        guard !isPooled || TestPooler.program != nil else { return }
        var setup = GatewayWorld.Setup()
        setup.template = GatewayWorld.planted
        setup.isPooled = isPooled
        setup.change = { options in
            options.rates.subject = nil
            options.rates.address = nil
            options.rates.functions = [:]
        }
        try await GatewayWorld.with(setup) { world in
            func expectAnswer(_ what: String, _ answer: GatewayWorld.Answer) {
                #expect(answer.status < 500, "\(what): \(answer.status) \(answer.text.prefix(300))")
            }
            let doors = try await world.service.catalogue.contents().doors.values.sorted { $0.name < $1.name }
            #expect(doors.count > 60)
            var answered = 0
            for door in doors {
                for arguments in [door.arguments.filter(\.isRequired), door.arguments] {
                    let members = arguments.map { ($0.name, Self.value(of: $0.type)) }
                    let body = JSONText.object(members)
                    let answer = try await world.call(door.name, body)
                    answered += answer.status == 200 ? 1 : 0
                    expectAnswer(door.name, answer)
                }
            }
            #expect(answered > 20)
            let calls =
                #"{"calls": [{"function": "mood_log", "args": {"person": "ada", "color": "happy"}}, {"function": "moods", "args": {"person": "ada"}}]}"#
            for headers in [[:], ["Idempotency-Key": "k1"], ["Idempotency-Key": "k1"]] {
                expectAnswer("a batch", try await world.ask("POST", "/v1/batch", calls, headers: headers))
            }
            let push =
                #"{"device": "phone", "ops": [{"id": "00000000-0000-4000-8000-000000000001", "op": "mood_log", "at": "2026-01-01T00:00:00Z", "args": {"person": "ada", "color": "sad"}}]}"#
            expectAnswer("a push", try await world.ask("POST", "/v1/sync", push))
            for path in ["/v1/sync?since=0", "/v1/openapi.json", "/v1/me"] {
                expectAnswer(path, try await world.ask("GET", path))
            }
            #expect(try await PlantedOverloads.sprung(in: world.database) == [])
        }
    }

    @Test func `no stream calls what a stranger has planted`() async throws {
        try await withDatabase(.planted) { database in
            #expect(try await PlantedOverloads.sprung(in: database) == [])
            try await StreamKit.with(database) { kit in
                let stream = try kit.stream()
                _ = try await stream.next()
                try await kit.say("one", to: "ada")
                #expect(try await stream.events(1).map(\.name) == ["change"])
                let again = try kit.stream(after: 0)
                #expect(try await again.events(2).count == 2)
                let job = try await kit.connection.int("select millrace.enqueue('k')")
                _ = try await kit.stream("/v1/jobs/\(job)/events").head()
            }
            #expect(try await PlantedOverloads.sprung(in: database) == [])
        }
    }

    private static func value(of type: SQLType) -> String {
        switch type {
        case .list(let plain): "[\(value(of: .plain(plain)))]"
        case .plain(let plain):
            switch plain {
            case .text: #""ada""#
            case .uuid: #""00000000-0000-4000-8000-000000000001""#
            case .boolean: "true"
            case .smallint, .integer, .bigint, .numeric, .real, .double: "1"
            case .date: #""2030-01-01""#
            case .timestamp: #""2030-01-01T00:00:00Z""#
            case .time: #""10:00""#
            case .interval: #""1 day""#
            case .json, .jsonb: "{}"
            case .bytea: #""""#
            }
        }
    }
}
