import Foundation
import JSON
import Listeners
import Postgres
import TestSupport
import Testing

@testable import Gateway

/// Phones whose clocks are wrong: nothing is lost, and nothing counts for a time that was not.
@Suite(.timeLimit(.minutes(10))) struct ClockTests {
    static let shifts: [Double] = [0, 600, -600, 2 * 86_400, -2 * 86_400]

    private static func text(_ date: Date) -> String {
        date.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    }

    /// By a clock that is wrong by this.
    private static func headers(_ shift: Double) -> [String: String] {
        ["Client-Time": text(Date(timeIntervalSinceNow: shift))]
    }

    /// Ada and Ben are a family with a thread, and Ada's watch is armed.
    private func prepare(_ world: GatewayWorld, _ person: String) async throws {
        try await world.owner.run(
            """
            select millrace.family_create('f-\(person)', 'UTC'); select millrace.family_join('f-\(person)', '\(person)', 'parent');
            select millrace.family_join('f-\(person)', 'ben-\(person)', 'parent');
            select millrace.chat_thread_create(array['ben-\(person)'], id => '\(Self.thread(person))', actor => '\(person)');
            select millrace.check_in_contact('\(person)', 'bob', 1, '{"mail": "bob@example.com"}', actor => '\(person)'),
                   millrace.check_in_confirm('\(person)', 'bob', '{mail}'), millrace.check_in_arm('\(person)', actor => '\(person)');
            update millrace.watch set last_checked_in = millrace.now() - interval '20 hours' where person = '\(person)';
            delete from millrace.checkin_change where person = '\(person)'
            """)
    }

    private static func thread(_ person: String) -> String {
        "00000000-0000-4000-8000-\(String(repeating: "0", count: 12 - person.utf8.count))\(person.utf8.map { String($0 % 10) }.joined())"
    }

    /// How many seconds ago each counts as done.
    private func ages(_ world: GatewayWorld, _ person: String) async throws -> [Double] {
        let found = try await world.owner.value(
            """
            select concat_ws(' ', extract(epoch from millrace.now() - (select at from millrace.mood where person = '\(person)')),
                extract(epoch from millrace.now() - (select at from millrace.quest_completion where person = '\(person)' and family = 'f-\(person)')),
                extract(epoch from millrace.now() - (select at from millrace.chat_message where sender = '\(person)')),
                extract(epoch from millrace.now() - (select last_checked_in from millrace.watch where person = '\(person)')))
            """)
        return (found ?? "").split(separator: " ").compactMap { Double($0) }
    }

    @Test func `calls of a phone whose clock is wrong are taken, and count for when they were made`() async throws {
        try await GatewayWorld.with { world in
            for (number, shift) in Self.shifts.enumerated() {
                let person = "p\(number)"
                try await prepare(world, person)
                // Done ten seconds before it is told.
                let at = Self.text(Date(timeIntervalSinceNow: shift - 10))
                for (door, more) in [
                    ("mood_log", #""person": "\#(person)", "color": "calm""#),
                    ("quest_complete", #""family": "f-\#(person)", "person": "\#(person)""#),
                    ("chat_send", #""thread": "\#(Self.thread(person))", "text": "hello""#),
                    ("check_in", #""person": "\#(person)""#),
                ] {
                    let answer = try await world.call(
                        door, #"{\#(more), "at": "\#(at)"}"#, as: person, headers: Self.headers(shift))
                    #expect(answer.status == 200, "\(door) at \(shift): \(answer.text)")
                }
                let ages = try await ages(world, person)
                #expect(ages.count == 4 && ages.allSatisfy { $0 > 9 && $0 < 120 }, "at \(shift): \(ages)")
            }
        }
    }

    @Test func `a push of a phone whose clock is wrong is taken, and counts for when each was done`() async throws {
        try await GatewayWorld.with { world in
            for (number, shift) in Self.shifts.enumerated() {
                let person = "p\(number)"
                try await prepare(world, person)
                func operation(_ op: String, _ args: String, ago: Double = 3600) -> String {
                    let at = Self.text(Date(timeIntervalSinceNow: shift - ago))
                    return #"{"id": "\#(UUID().uuidString)", "op": "\#(op)", "at": "\#(at)", "args": \#(args)}"#
                }
                let later = Self.text(Date(timeIntervalSinceNow: shift + 7200))
                let operations = [
                    operation("mood_log", #"{"person": "\#(person)", "color": "calm"}"#, ago: 60),
                    operation("quest_complete", #"{"family": "f-\#(person)", "person": "\#(person)"}"#, ago: 60),
                    operation("chat_send", #"{"thread": "\#(Self.thread(person))", "text": "hello"}"#, ago: 60),
                    operation(
                        "check_in",
                        #"{"person": "\#(person)", "place": {"latitude": 1, "longitude": 2, "at": "\#(Self.text(Date(timeIntervalSinceNow: shift - 70)))"}}"#,
                        ago: 60),
                    operation(
                        "own_notice_schedule",
                        #"{"person": "\#(person)", "kind": "water", "key": "k", "at": "\#(later)"}"#),
                    operation("check_in_pause", #"{"person": "\#(person)", "until": "\#(later)"}"#, ago: 50),
                ]
                let body = #"{"device": "phone", "ops": [\#(operations.joined(separator: ", "))]}"#
                // Told twice: what was told first is known.
                for words in [Set(["applied"]), ["same"]] {
                    let answer = try await world.ask(
                        "POST", "/v1/sync", as: person, body, headers: Self.headers(shift))
                    #expect(answer.status == 200, "at \(shift): \(answer.text)")
                    let outcomes = answer.json["results"]?.items ?? []
                    #expect(outcomes.count == 6 && !answer.text.contains("superseded"), "at \(shift): \(answer.text)")
                    #expect(
                        Set(outcomes.compactMap { $0["outcome"]?.text }) == words, "at \(shift): \(answer.text)")
                }
                let ages = try await ages(world, person)
                #expect(ages.count == 4 && ages.allSatisfy { $0 > 59 && $0 < 180 }, "at \(shift): \(ages)")
                #expect(
                    try await world.owner.bool(
                        """
                        select (select abs(extract(epoch from due_at - millrace.now()) - 7200) < 120 from millrace.notice where person = '\(person)' and key = 'own:k')
                           and (select abs(extract(epoch from wake_at - millrace.now()) - 7200) < 120 from millrace.watch where person = '\(person)')
                           and (select extract(epoch from millrace.now() - at) between 69 and 190 from millrace.place where person = '\(person)')
                        """), "at \(shift)")
            }
        }
    }

    @Test func `a client that does not say what its clock shows loses nothing to a clock that is fast`() async throws {
        try await GatewayWorld.with { world in
            for (number, shift) in Self.shifts.filter({ $0 > 0 }).enumerated() {
                let person = "p\(number)"
                try await prepare(world, person)
                let at = Self.text(Date(timeIntervalSinceNow: shift))
                let operations = [
                    ("mood_log", #"{"person": "\#(person)", "color": "calm"}"#),
                    ("quest_complete", #"{"family": "f-\#(person)", "person": "\#(person)"}"#),
                    ("chat_send", #"{"thread": "\#(Self.thread(person))", "text": "hello"}"#),
                    ("check_in", #"{"person": "\#(person)"}"#),
                ].map { #"{"id": "\#(UUID().uuidString)", "op": "\#($0.0)", "at": "\#(at)", "args": \#($0.1)}"# }
                let answer = try await world.ask(
                    "POST", "/v1/sync", as: person,
                    #"{"device": "phone", "ops": [\#(operations.joined(separator: ", "))]}"#)
                let outcomes = (answer.json["results"]?.items ?? []).compactMap { $0["outcome"]?.text }
                #expect(outcomes == Array(repeating: "applied", count: 4), "at \(shift): \(answer.text)")
                let ages = try await ages(world, person)
                #expect(ages.count == 4 && ages.allSatisfy { $0 >= 0 && $0 < 120 }, "at \(shift): \(ages)")
                // And to a door by itself; the same mood again is the same, though it counted as now.
                let mood = #"{"person": "\#(person)", "color": "sad", "id": "\#(UUID().uuidString)", "at": "\#(at)"}"#
                for _ in 0..<2 {
                    #expect(try await world.call("mood_log", mood, as: person).status == 200, "at \(shift)")
                }
            }
        }
    }

    @Test func `what a client's clock shows is read as RFC 3339 writes it, or not at all`() {
        func lag(_ text: String) -> String? {
            ClientTime.lag(of: [.init("Client-Time", text)], at: Date(timeIntervalSince1970: 1_800_000_000.5))
        }
        #expect(lag("2027-01-15T08:00:00Z") == "0.500")
        #expect(lag("2027-01-15T07:58:20.250Z") == "100.250")
        #expect(lag("2027-01-15T10:00:01+02:00") == "-0.500")
        for bad in [
            "", "now", "2027-01-15", "2027-01-15 08:00:00Z", "2027-01-15T08:00:00", "infinity", "1800000000",
            "2027-13-15T08:00:00Z",
        ] {
            #expect(lag(bad) == nil, "\(bad)")
        }
        #expect(ClientTime.lag(of: [], at: Date()) == nil)
    }

    @Test func `every time that an operation of a phone takes is put right`() async throws {
        try await withConnection { connection in
            let others = try await connection.column(
                """
                select o.op || '.' || a.name from millrace.sync_operations() o
                  join pg_proc p on p.pronamespace = 'millrace'::regnamespace and p.proname = o.op
                 cross join lateral unnest(p.proargnames[1:p.pronargs], p.proargtypes::oid[]) a(name, type)
                 where a.type in ('timestamptz'::regtype, 'timestamp'::regtype) and a.name not in ('at', 'until')
                """)
            #expect(others.isEmpty)
        }
    }

    @Test func `times and dates are those of RFC 3339, and no others`() async throws {
        try await GatewayWorld.with { world in
            for bad in [
                "yesterday", "now", "infinity", "-infinity", "epoch", "2030-01-31", "2030-01-31 12:00:00+00",
                "2030-01-31T12:00:00", "2030-01-31T12:00Z", "Jan 31 2030 12:00 UTC", "2030-01-31T12:00:00Z ", "",
            ] {
                let body = #"{"person": "ada", "color": "calm", "at": \#(JSONText.quoted(bad))}"#
                let answer = try await world.call("mood_log", body)
                #expect(answer.status == 400 && answer.word("field") == "at", "\(bad): \(answer.text)")
                let many = try await world.call("mood_log_many", #"{"moods": [\#(body)]}"#)
                #expect(many.status == 400 && many.word("class") == "invalid", "\(bad): \(many.text)")
                let push =
                    #"{"device": "d", "ops": [{"id": "\#(UUID().uuidString)", "op": "mood_log", "args": \#(body)}]}"#
                let outcome = try await world.ask("POST", "/v1/sync", push).json["results"]?.items?.first
                #expect(outcome?["class"]?.text == "invalid" && outcome?["field"]?.text == "at", "\(bad)")
            }
            for bad in ["today", "tomorrow", "20300131", "31.1.2030", "2030-1-31"] {
                let answer = try await world.call("weekly_stats", #"{"person": "ada", "week": "\#(bad)"}"#)
                #expect(answer.status == 400 && answer.word("field") == "week", "\(bad): \(answer.text)")
            }
            for bad in ["now", "allballs", "22", "10 pm", "22:0"] {
                let answer = try await world.call(
                    "notice_preferences",
                    #"{"person": "ada", "zone": "UTC", "quiet_from": "\#(bad)", "quiet_to": "07:00", "channels": {}}"#)
                #expect(answer.status == 400 && answer.word("field") == "quiet_from", "\(bad): \(answer.text)")
            }
            for good in ["2020-01-31T12:00:00Z", "2020-01-31t12:00:00.123456789+05:30", "2020-01-31T12:00:00.5z"] {
                let answer = try await world.call("moods", #"{"person": "ada", "since": "\#(good)"}"#)
                #expect(answer.status == 200, "\(good): \(answer.text)")
            }
        }
    }
}
