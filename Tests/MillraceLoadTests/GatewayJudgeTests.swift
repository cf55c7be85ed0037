import CommandKit
import Testing

@testable import RoomLoad

/// The search for what is another's, in the scenario `load gateway-isolation`.
@Suite struct GatewayJudgeTests {
    private static let people = IsolationPeople(count: 40, seed: 7)
    private static let id = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"

    private static func tally(
        _ call: IsolationCall, _ status: Int, _ body: String, headers: [String: String] = [:], reader: Int
    ) -> IsolationJudge.Tally {
        let judge = IsolationJudge(
            people: people, owners: [id: IsolationPeople.Mark(kind: .document, owner: 15)])
        var tally = IsolationJudge.Tally()
        judge.judge(
            call, GatewayClient.Answer(status: status, headers: headers, body: Array(body.utf8)), reader: reader,
            step: 1,
            into: &tally)
        return tally
    }

    @Test func `a mark is found anywhere in an answer, and tells whose it is`() {
        let people = Self.people
        let text = "[{\"a\":\"x\(people.mark(.mood, 3))y\"},\"\(people.mark(.job, 39))\",\"mkm0003zzzzzzzz\",\"mk\"]"
        #expect(
            people.marks(in: Array(text.utf8)) == [
                IsolationPeople.Mark(kind: .mood, owner: 3), IsolationPeople.Mark(kind: .job, owner: 39),
            ])
        #expect(IsolationPeople.ids(in: Array("{\"id\":\"\(Self.id.uppercased())\"}".utf8)) == [Self.id])
    }

    @Test func `what a person may see follows from group, family, tenant and contacts`() {
        let people = Self.people
        func sees(_ reader: Int, _ kind: IsolationPeople.Kind, of owner: Int) -> Bool {
            people.mayRead(reader, IsolationPeople.Mark(kind: kind, owner: owner))
        }
        #expect(IsolationPeople.Kind.allCases.allSatisfy { sees(12, $0, of: 12) && !sees(12, $0, of: 32) })
        // The first group is a tenant, the second is not; its first six are a family.
        #expect(sees(1, .document, of: 9) && !sees(11, .document, of: 12))
        #expect(sees(11, .mood, of: 12) && !sees(11, .mood, of: 17) && !sees(11, .notice, of: 12))
        #expect(people.contact(of: 19) == 10 && sees(10, .alarm, of: 19) && !sees(11, .alarm, of: 19))
    }

    @Test func `what is another's is a leak, in bytes, ids and headers, unless the call itself named it`() {
        let mark = Self.people.mark(.contact, 15)
        let call = IsolationCall.rpc("moods", [("person", "person-2")])
        #expect(Self.tally(call, 200, "[\"\(mark)\"]", reader: 2).byKind == ["leak": 1])
        #expect(Self.tally(call, 404, "{\"detail\":\"\(mark)\"}", reader: 2).byKind == ["leak": 1])
        #expect(Self.tally(call, 200, "[{\"id\":\"\(Self.id)\"}]", reader: 2).byKind == ["leak": 1])
        #expect(Self.tally(call, 303, "", headers: ["location": "/x/\(mark)"], reader: 2).byKind == ["leak": 1])
        #expect(Self.tally(call, 200, "[\"\(Self.people.mark(.contact, 2))\"]", reader: 2).byKind == [:])
        #expect(Self.tally(call, 200, "[\"\(Self.people.mark(.contact, 2))\"]", reader: 2).own == 1)
        let naming = IsolationCall.rpc("document", [("id", .string(Self.id))], .nothing)
        #expect(Self.tally(naming, 404, "there is no document \(Self.id)", reader: 2).byKind == [:])
    }

    @Test(arguments: [
        "null", "false", "0", "[]", "[{\"id\":\"x\",\"deleted\":false}]", "{\"results\":[{\"outcome\":\"refused\"}]}",
        "{\"events\":[],\"position\":7}",
    ])
    func `an answer that says that there is nothing is none`(body: String) {
        #expect(Self.tally(.rpc("cancel", [], .nothing), 200, body, reader: 2).byKind == [:])
    }

    @Test(arguments: [
        "true", "1", "[{\"id\":\"x\",\"deleted\":true}]", "{\"results\":[{\"outcome\":\"applied\"}]}", "\"2030-01-01\"",
    ])
    func `an answer that says that something was done to a stranger's is a fault`(body: String) {
        #expect(Self.tally(.rpc("cancel", [], .nothing), 200, body, reader: 2).byKind == ["acted": 1])
    }

    @Test func `doors that are not there, forged tokens, internal errors and lost answers are told apart`() {
        #expect(Self.tally(.closed("finish"), 404, "", reader: 2).byKind == [:])
        #expect(Self.tally(.closed("finish"), 403, "", reader: 2).byKind == ["door": 1])
        var forged = IsolationCall.rpc("moods", [])
        forged.expectation = .noToken
        #expect(Self.tally(forged, 401, "", reader: 2).byKind == [:])
        #expect(Self.tally(forged, 200, "[]", reader: 2).byKind == ["token": 1])
        #expect(Self.tally(.rpc("moods", []), 500, "", reader: 2).byKind == ["internal": 1])
        #expect(Self.tally(.rpc("moods", []), 0, "", reader: 2).byKind == ["lost": 1])
    }

    @Test func `events are read from pieces of any size`() {
        let bytes = Array(
            "retry: 2000\n\nid: 7\nevent: ready\ndata: {\"position\": 7}\n\n: alive\n\nid: 8\nevent: change\ndata: a\ndata: b\n\nid: 9\n"
                .utf8)
        for size in [1, 3, 1000] {
            var parser = EventParser()
            for start in stride(from: 0, to: bytes.count, by: size) {
                parser.take(Array(bytes[start..<min(start + size, bytes.count)]))
            }
            #expect(
                parser.events == [
                    .init(id: 7, event: "ready", data: "{\"position\": 7}"),
                    .init(id: 8, event: "change", data: "a\nb"),
                ])
        }
    }

    @Test func `an offline batch is the same for a seed, and has a check-in between what must be refused`() {
        for seed in 1...50 as ClosedRange<UInt64> {
            let batch = OfflineBatch(seed: seed, now: 1_800_000_000)
            let again = OfflineBatch(seed: seed, now: 1_800_000_000)
            #expect(
                batch.operations.map { batch.json($0, person: "a").compact }
                    == again.operations.map { again.json($0, person: "a").compact })
            let place = batch.operations.indices.first { n in
                n > 0 && n + 1 < batch.operations.count && batch.operations[n].op == "check_in"
                    && !batch.operations[n].isRefused
                    && batch.operations[n - 1].isRefused && batch.operations[n + 1].isRefused
            }
            #expect(place != nil && batch.lastCheckIn != nil)
            #expect(Set(batch.operations.map(\.number)).count == batch.operations.count)
            #expect(
                OfflineBatch.id(3, of: "a") != OfflineBatch.id(3, of: "b")
                    && OfflineBatch.id(3, of: "a").utf8.count == 36)
        }
    }
}
