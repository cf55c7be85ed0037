import JSON
import TestSupport
import Testing

@testable import Gateway

/// What one person's calls show of another.
@Suite(.timeLimit(.minutes(10))) struct IsolationTests {
    /// Twenty people in five families, each in a tenant of their own. What each writes carries a word of theirs.
    private struct Person: Sendable {
        let number: Int
        var name: String { "person\(number)" }
        var family: String { "family\(number / 4)" }
        var token: String { "\(name)@tenant\(number)" }
        /// Nobody else may ever read it.
        var secret: String { "secret-\(number)-" }
        /// The family may.
        var shared: String { "shared-\(number)-" }

        static let all = (0..<20).map { Person(number: $0) }
    }

    /// What has been made so far, by anybody: everybody asks for all of it.
    private struct Made: Sendable {
        var documents: [String] = []
        var jobs: [Int] = []
    }

    @Test func `two thousand random calls of twenty people show nobody what is another's`() async throws {
        try await GatewayWorld.with { world in
            try await world.owner.run(
                """
                select millrace.family_create('family' || f, 'UTC') from generate_series(0, 4) f;
                select millrace.family_join('family' || p / 4, 'person' || p, 'teen') from generate_series(0, 19) p;
                select millrace.grant_enqueue('\(world.role)', 'document.receive', 'documents');
                select millrace.grant_enqueue('\(world.role)', 'work.do', 'default');
                """)
            let made = Locked(Made())
            let own = Locked(0)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for person in Person.all {
                    group.addTask {
                        var random = SeededRandom(39 + person.number)
                        for turn in 0..<100 {
                            let (function, body, mayWork) = Self.call(of: person, turn, made.value, &random)
                            let answer = try await world.call(function, body, as: person.token)
                            #expect(
                                [200, 400, 403, 404, 409, 429].contains(answer.status),
                                "\(function) \(body): \(answer.text)")
                            #expect(
                                mayWork || answer.status != 200 || answer.text == "[]\n",
                                "\(person.name), \(function) \(body): \(answer.text)")
                            Self.check(answer, of: person, "\(function) \(body)")
                            if answer.text.contains(person.secret) { own.add() }
                            Self.note(function, answer, made)
                        }
                    }
                }
                try await group.waitForAll()
            }
            // Or the test would show nothing: people do read their own, and there was much to find.
            #expect(own.value > 100)
            #expect(made.value.documents.count > 40 && made.value.jobs.count > 40)
        }
    }

    private static func check(_ answer: GatewayWorld.Answer, of person: Person, _ call: String) {
        for other in Person.all where other.number != person.number {
            #expect(!answer.text.contains(other.secret), "\(person.name), \(call): \(answer.text)")
            if other.family != person.family {
                #expect(!answer.text.contains(other.shared), "\(person.name), \(call): \(answer.text)")
            }
        }
    }

    private static func note(_ function: String, _ answer: GatewayWorld.Answer, _ made: Locked<Made>) {
        guard answer.status == 200 else { return }
        switch (function, answer.json) {
        case ("document_register", .string(let id)): made.withLock { $0.documents.append(id) }
        case ("enqueue", let number): if let id = number.integer { made.withLock { $0.jobs.append(id) } }
        default: break
        }
    }

    private static func call(
        of person: Person, _ turn: Int, _ made: Made, _ random: inout SeededRandom
    ) -> (String, String, mayWork: Bool) {
        // Half of the time their own, otherwise anybody's.
        let target = Bool.random(using: &random) ? person : Person.all.randomElement(using: &random) ?? person
        let document = made.documents.randomElement(using: &random) ?? "00000000-0000-0000-0000-000000000000"
        let job = made.jobs.randomElement(using: &random) ?? 1
        let (isSelf, isFamily) = (target.number == person.number, target.family == person.family)
        let color = ["happy", "calm", "sad"].randomElement(using: &random) ?? "calm"
        switch Int.random(in: 0..<20, using: &random) {
        case 0, 1:
            return ("mood_log", #"{"person": "\#(target.name)", "color": "\#(color)", "buffer": "0 seconds"}"#, isSelf)
        case 2: return ("moods", #"{"person": "\#(target.name)", "page": 50}"#, isFamily)
        case 3:
            return (
                "hobby_save",
                #"{"person": "\#(target.name)", "name": "\#(person.shared)\#(turn)", "fact": "\#(person.shared)"}"#,
                isSelf
            )
        case 4: return ("hobbies", #"{"family": "\#(target.family)"}"#, isFamily)
        case 5, 6:
            return (
                "document_register",
                #"{"storage_url": "https://files.example.com/\#(person.number)/\#(turn).pdf", "title": "\#(person.secret)\#(turn)", "mime_type": "application/pdf", "size": 1000}"#,
                true
            )
        case 7, 8: return ("document_list", "{}", true)
        case 9: return ("document_list", #"{"tenant": "tenant\#(target.number)"}"#, isSelf)
        case 10, 11: return ("document", #"{"id": "\#(document)"}"#, true)
        case 12: return ("document_feed", #"{"tenant": "tenant\#(target.number)"}"#, isSelf)
        case 13: return ("enqueue", #"{"kind": "work.do", "args": {"word": "\#(person.secret)\#(turn)"}}"#, true)
        case 14: return ("own_jobs", "{}", true)
        case 15, 16: return ("job", #"{"id": \#(job)}"#, true)
        case 17: return ("check_in_show", #"{"person": "\#(target.name)"}"#, isSelf)
        case 18:
            return (
                "check_in_alarm", #"{"person": "\#(target.name)", "note": "\#(person.secret)"}"#, isSelf
            )
        default: return ("document_search", #"{"query": "secret", "tenant": "tenant\#(target.number)"}"#, isSelf)
        }
    }
}
