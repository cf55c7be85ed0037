import Calendars
import FoundationEssentials

/// What the database stores about a family: the events, and what it computed from them.
struct FamilyFacts: Decodable {
    struct Day: Decodable {
        var date: String
        var state: String
        var completions: Int

        init(from decoder: any Decoder) throws {
            var list = try decoder.unkeyedContainer()
            date = try list.decode(String.self)
            state = try list.decode(String.self)
            completions = try list.decode(Int.self)
        }
    }

    struct Person: Decodable {
        var person: String
        var streak: [Int]
        var last: String?
        var moods: [String]
        var earned: [String]
        var held: [String]
        var doubled: [String]
    }

    var family: String
    var zone: String
    var today: String
    var streak: [Int]
    var days: [Day]
    var people: [Person]
}

/// A stored value that does not follow from the events.
package struct Discrepancy: Sendable, Equatable {
    package var family: String
    package var person: String?
    /// day, streak, award
    package var what: String
    package var sentence: String
}

/// Computes everything from the events again, and reports where the database has something else.
enum Audit {
    static func findings(in facts: FamilyFacts, zones: ZoneFiles) -> [Discrepancy] {
        var found: [Discrepancy] = []
        func say(_ what: String, _ sentence: String, of person: String? = nil) {
            found.append(Discrepancy(family: facts.family, person: person, what: what, sentence: sentence))
        }
        let days = facts.days.map { (number: CivilDate($0.date)?.dayNumber ?? 0, day: $0) }.sorted {
            $0.number < $1.number
        }
        for (one, other) in zip(days, days.dropFirst()) where other.number != one.number + 1 {
            say("day", "there is no day between \(one.day.date) and \(other.day.date)")
        }
        let today = CivilDate(facts.today)?.dayNumber ?? 0
        var outcomes: [Streak.Outcome] = []
        for (number, day) in days {
            let expected = day.completions > 0 ? "done" : number < today ? "missed" : "open"
            if day.state != expected, day.state != "not_lived" || day.completions > 0 {
                say("day", "\(day.date) is \(day.state) with \(day.completions) completions")
            }
            guard number < today else { continue }
            outcomes.append(day.state == "not_lived" ? .notLived : day.completions > 0 ? .done : .missed)
        }
        let streak = Streak.folding(outcomes)
        if facts.streak != streak.numbers {
            say("streak", "the days make \(streak.numbers), stored is \(facts.streak)")
        }

        let states = Dictionary(days.map { ($0.number, $0.day.state) }) { one, _ in one }
        let zone = try? zones.zone(facts.zone)
        for person in facts.people {
            let moods = person.moods.compactMap { CivilDate($0)?.dayNumber }.sorted()
            let (streak, full) = Streak.folding(days: moods) { number in
                if let state = states[number] { return state != "not_lived" }
                return zone?.has(CivilDate(dayNumber: number)) ?? true
            }
            if person.streak != streak.numbers || person.last.flatMap({ CivilDate($0)?.dayNumber }) != moods.last {
                say("streak", "the moods make \(streak.numbers), stored is \(person.streak)", of: person.person)
            }
            let earned = Set(person.earned + full.map { "mood_streak:\(CivilDate(dayNumber: $0))" })
            for key in earned.subtracting(person.held).sorted() {
                say("award", "\(key) is earned and not booked", of: person.person)
            }
            for key in Set(person.held).subtracting(earned).sorted() {
                say("award", "\(key) is booked and not earned", of: person.person)
            }
            for key in person.doubled { say("award", "\(key) is booked more than once", of: person.person) }
        }
        return found
    }
}

extension Streak {
    var numbers: [Int] { [length, best, freezes] }
}

extension CivilDate {
    /// `2026-11-01`
    package init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { Int($0) }
        guard parts.count == 3, let year = parts[0], let month = parts[1], let day = parts[2], (1...12).contains(month),
            day >= 1, day <= CivilDate.days(in: month, of: year)
        else { return nil }
        self.init(year: year, month: month, day: day)
    }
}
