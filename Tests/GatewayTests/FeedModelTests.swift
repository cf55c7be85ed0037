import Foundation
import Postgres
import TestSupport
import Testing

/// What people of two families should have in their feeds, kept by other means: a list for each person, changed as each act says.
private struct FeedModel {
    struct Row: Equatable {
        var change: String
        var ref: String
        /// Through which family it came; nil: it is the person's own.
        var family: String?
        var about: String?

        var text: String { "\(change) \(ref)" }
    }

    var families: [String: Set<String>] = [:]
    var rows: [String: [Row]] = [:]

    func family(of person: String) -> String? { families.first { $0.value.contains(person) }?.key }

    mutating func tell(_ people: Set<String>, _ change: String, _ ref: String, by actor: String, in family: String) {
        for person in people {
            rows[person, default: []].append(
                Row(change: change, ref: ref, family: family, about: person == actor ? nil : actor))
        }
    }

    mutating func tellOneself(_ person: String, _ change: String, _ ref: String) {
        rows[person, default: []].append(Row(change: change, ref: ref))
    }

    /// `place`: the family that it was logged in.
    mutating func mood(_ change: String, _ id: String, of person: String, in place: String?) {
        tellOneself(person, "moods \(change)", id)
        guard let family = place, family == self.family(of: person) else { return }
        tell(families[family, default: []].subtracting([person]), "moods \(change)", id, by: person, in: family)
    }

    mutating func leave(_ person: String, _ family: String) {
        families[family]?.remove(person)
        rows[person]?.removeAll { $0.family == family }
        tellOneself(person, "quests left", family)
        for (other, list) in rows where other != person {
            let seen = list.filter { $0.about == person && $0.family == family && $0.change.hasPrefix("moods") }
            rows[other]?.removeAll { seen.contains($0) }
            for id in Set(seen.map(\.ref)) { tellOneself(other, "moods deleted", id) }
        }
        tell(families[family, default: []], "quests left", family, by: person, in: family)
    }

    mutating func erase(_ person: String) {
        if let family = family(of: person) {
            families[family]?.remove(person)
            for other in families[family, default: []] {
                tell([other], "quests left", family, by: other, in: family)
            }
        }
        rows[person] = nil
        for (other, list) in rows {
            let seen = list.filter { $0.about == person }
            rows[other]?.removeAll { $0.about == person }
            for id in Set(seen.filter { $0.change.hasPrefix("moods") }.map(\.ref)) {
                tellOneself(other, "moods deleted", id)
            }
        }
    }
}

@Suite struct FeedModelTests {
    private static let people = ["ada", "bob", "cyd", "dan", "eli"]

    @Test(arguments: 1...4)
    func `after any acts each person has exactly what it may see`(seed: Int) async throws {
        try await withConnection { connection in
            var (random, model) = (SeededRandom(seed), FeedModel())
            var moods: [(id: String, person: String, family: String?)] = []
            for family in ["f", "g"] { try await connection.run("select millrace.family_create('\(family)', 'UTC')") }
            try await connection.run(
                "update millrace.quest set item = (select min(id) from millrace.quest_item where kind = 'family_chat')")
            let day = try await connection.value("select day from millrace.quest limit 1") ?? ""
            for turn in 0..<120 {
                let person = Self.people[random.below(Self.people.count)]
                let family = model.family(of: person)
                switch random.below(20) {
                case 0..<6 where family == nil:
                    let joined = random.chance(0.7) ? "f" : "g"
                    try await connection.run("select millrace.family_join('\(joined)', '\(person)', 'teen')")
                    model.families[joined, default: []].insert(person)
                    model.tell(model.families[joined, default: []], "quests joined", joined, by: person, in: joined)
                case 6..<8 where family != nil:
                    try await connection.run("select millrace.family_leave('\(family ?? "")', '\(person)')")
                    model.leave(person, family ?? "")
                case 8..<12 where family != nil:
                    let act = random.chance(0.6) ? "complete" : "undo"
                    let answer = try await connection.value(
                        "select millrace.quest_\(act)('\(family ?? "")', '\(person)', actor => '\(person)') ->> '\(act == "undo" ? "undone" : "awarded")'"
                    )
                    guard answer == "true" || answer == "1" else { continue }
                    model.tell(
                        model.families[family ?? "", default: []], "quests \(act == "undo" ? "undone" : "completed")",
                        day,
                        by: person, in: family ?? "")
                case 12..<14:
                    guard let place = moods.indices.randomElement(using: &random) else { continue }
                    let mood = moods.remove(at: place)
                    try await connection.run("select millrace.mood_delete('\(mood.id)', '\(mood.person)')")
                    model.mood("deleted", mood.id, of: mood.person, in: mood.family)
                case 14:
                    guard random.chance(0.2) else { continue }
                    try await connection.run("select millrace.person_erase('\(person)', '\(person)')")
                    moods.removeAll { $0.person == person }
                    model.erase(person)
                default:
                    let id = "00000000-0000-0000-0000-" + String(format: "%012d", turn)
                    try await connection.run(
                        "select millrace.mood_log('\(person)', 'calm', id => '\(id)', actor => '\(person)')")
                    moods.append((id, person, family))
                    model.mood("logged", id, of: person, in: family)
                }
                if random.chance(0.3) { try await connection.run("select millrace.feed_number()") }
            }
            for person in Self.people {
                let feed = try await connection.feed(of: person)
                let found = zip(feed.changes, feed.refs).filter { $0.0 != "quests points" }.map { "\($0.0) \($0.1)" }
                let expected = model.rows[person, default: []].map(\.text)
                #expect(found.sorted() == expected.sorted(), "\(person), seed \(seed)")
            }
        }
    }
}
