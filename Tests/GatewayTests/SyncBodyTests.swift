import Faults
import Foundation
import JSON
import TestSupport
import Testing

@testable import Gateway

/// What a phone hands in over HTTP: each operation is read by itself.
@Suite(.timeLimit(.minutes(10))) struct SyncBodyTests {
    private static let id = "6f1c0a52-6a0e-4c58-9f0b-6a4b8f6b2d10"

    /// Operations that cannot be read, but whose end can be found.
    private static let unreadable: [String] = [
        #"{"id": "\#(id)", "op": "mood_log", "args": {"person": "ada", "color": "sad\u0000"}}"#,
        #"{"op": "mood_log", "args": {"note": "\ud800"}, "id": "\#(id)"}"#,
        #"{"id": "\#(id)", "op": "mood_log", "op": "check_in", "args": {}}"#,
        #"{"id": "\#(id)", "op": "mood_log", "args": {"a": 1, "a": 2}}"#,
        #"{"id": "\#(id)", "op": "mood_log", "args": \#(String(repeating: "[", count: 65))\#(String(repeating: "]", count: 65))}"#,
        #"{"id": "\#(id)", "op": "mood_log", "args": {"a": 01}}"#,
        #"{"id": "\#(id)", "op": "mood_log", "args": {"a": "tab\#u{1}"}}"#,
        #"{"id": "\#(id)", "op": "mood_log", "args": {"a": "\x"}}"#, #"{"id": "\#(id)", "args": [}]"#,
        #"{"id": "\#(id)", "op": nul}"#,
    ]

    @Test func `an operation that cannot be read holds back no other, whatever is wrong with it`() async throws {
        try await GatewayWorld.with { world in
            for (number, bad) in Self.unreadable.enumerated() {
                let person = "p\(number)"
                try await world.owner.run(
                    """
                    select millrace.check_in_contact('\(person)', 'bob', 1, '{"mail": "bob@example.com"}', actor => '\(person)'),
                           millrace.check_in_confirm('\(person)', 'bob', '{mail}'), millrace.check_in_arm('\(person)', actor => '\(person)');
                    update millrace.watch set last_checked_in = millrace.now() - interval '20 hours' where person = '\(person)'
                    """)
                let checkIn =
                    #"{"id": "\#(UUID().uuidString)", "op": "check_in", "args": {"person": "\#(person)"}}"#
                let answer = try await world.ask(
                    "POST", "/v1/sync", as: person, #"{"device": "phone", "ops": [\#(bad), \#(checkIn)]}"#)
                #expect(answer.status == 200, "\(bad): \(answer.text)")
                let outcomes = answer.json["results"]?.items ?? []
                #expect(
                    outcomes.compactMap { $0["outcome"]?.text } == ["refused", "applied"], "\(bad): \(answer.text)")
                #expect(outcomes.first?["class"]?.text == "invalid", "\(bad): \(answer.text)")
                #expect(outcomes.first?["id"]?.text == Self.id, "\(bad): \(answer.text)")
                #expect(
                    try await world.owner.bool(
                        "select last_checked_in > millrace.now() - interval '1 hour' from millrace.watch where person = '\(person)'"
                    ), "\(bad)")
            }
        }
    }

    @Test func `bytes that are no UTF-8 spoil their own operation only`() throws {
        let good = #"{"id": "\#(Self.id)", "op": "check_in", "args": {"person": "ada"}}"#
        let bytes =
            Array(#"{"device": "phone", "ops": [{"id": "\#(Self.id)", "op": ""#.utf8) + [0xff, 0xc0]
            + Array(#""}, \#(good)]}"#.utf8)
        let body = try SyncBody(bytes)
        #expect(body.device?.text == "phone")
        #expect(body.ops == #"[{"unreadable":true,"id":"\#(Self.id)"},\#(good)]"#)
    }

    @Test func `of a push that has no end nothing is taken, and the answer says where`() {
        for bad in [
            "{", #"{"device": "phone", "ops": [{]}"#, #"{"device": "phone", "ops": [{}}"#, "[]", "",
            #"{"device": "phone", "ops": []} x"#, #"{"device": "a", "device": "b", "ops": []}"#,
            #"{"device": "phone", "ops": [], "more": 1}"#, #"{"device": "\u0000", "ops": []}"#,
            #"{"device": "phone", "ops": [,]}"#, #"{"device": "phone", "ops": [1,]}"#,
        ] {
            let problem = #expect(throws: GatewayProblem.self, "\(bad)") { _ = try SyncBody(Array(bad.utf8)) }
            #expect(problem?.class == .invalid, "\(bad)")
        }
    }

    /// Against the strict reader: what it reads is taken as it stands.
    @Test func `what can be read is passed on as it was sent`() throws {
        var random = SeededRandom(11)
        func value(_ depth: Int) -> String {
            switch random.below(depth > 5 ? 5 : 7) {
            case 0: return "null"
            case 1: return "-1.50e+3"
            case 2: return #""a \"quoted\" \\ [ { é 😀""#
            case 3: return "true"
            case 4: return #""""#
            case 5: return "[ \((0..<random.below(4)).map { _ in value(depth + 1) }.joined(separator: " ,\n")) ]"
            default:
                return "{\((0..<random.below(4)).map { "\"k\($0)\" : \(value(depth + 1))" }.joined(separator: ","))}"
            }
        }
        for _ in 0..<300 {
            let operations = (0..<random.below(5)).map { _ in value(0) }
            let text = #" { "ops" : [ \#(operations.joined(separator: " , ")) ] , "device" : "d" } "#
            let body = try SyncBody(Array(text.utf8))
            #expect(body.ops == "[\(operations.joined(separator: ","))]", "\(text)")
            #expect(try JSONValue.read(text)["ops"] == JSONValue.read(body.ops))
        }
    }

    @Test
    func `a position that the database has not given out yet is reset, and so is every one from before a restore`()
        async throws
    {
        try await GatewayWorld.with { world in
            func log() async throws {
                try await world.owner.run("select millrace.mood_log('ada', 'calm', actor => 'ada')")
            }
            func pull(_ since: Int) async throws -> JSONValue {
                try await world.ask("GET", "/v1/sync?since=\(since)").json
            }
            for _ in 0..<3 { try await log() }
            let first = try await pull(0)
            let position = try #require(first["position"]?.integer)
            #expect(first["reset"] == false && first["events"]?.items?.isEmpty == false)
            #expect(try await pull(position)["reset"] == false)
            // The phone has more than the database, as after a restore to an earlier moment.
            let ahead = try await pull(position + 100)
            #expect(ahead["reset"] == true && ahead["events"] == first["events"])
            #expect(ahead["position"]?.integer == position)
            let next = try await pull(position)
            #expect(next["reset"] == false && next["events"]?.items == [])
            // What has come since hides that, unless the operator has said so.
            for _ in 0..<200 { try await log() }
            #expect(try await pull(position + 100)["reset"] == false)
            let start = try await world.owner.int("select millrace.feed_restored()")
            for since in [1, position, position + 100, 1_000_000] {
                let late = try await pull(since)
                #expect(late["reset"] == true && late["position"]?.integer == start, "\(since)")
            }
            try await log()
            let new = try await pull(start)
            #expect(new["reset"] == false && new["events"]?.items?.isEmpty == false)
            #expect((new["position"]?.integer ?? 0) > start)
        }
    }
}
