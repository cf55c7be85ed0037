import CommandKit
import Postgres
import TestSupport
import Testing

@testable import RoomLoad

@Suite struct PeopleTests {
    /// Ends with the first sequence that finds a fault of this kind.
    private static func played(
        _ sequences: ClosedRange<UInt64>, breaking sql: String = "select 1", until kind: String? = nil
    ) async throws -> PeopleWorld.Tally {
        try await withConnection(.movableClock) { connection in
            try await connection.run(sql)
            let world = PeopleWorld(connection, name: TestCluster.name("people"))
            try await world.open()
            var tally = PeopleWorld.Tally()
            for seed in sequences {
                try await world.play(seed: seed, steps: 60, into: &tally)
                if let kind, tally.byWhat[kind] != nil { break }
            }
            try await world.close()
            return tally
        }
    }

    /// The first of the sequences that `millrace load people` plays ten thousand of.
    @Test func `random sequences of family, consent, erasure and check-in calls keep to the rules`() async throws {
        let tally = try await Self.played(1...40)
        #expect(tally.faults.isEmpty, "\(tally.faults.prefix(3).joined(separator: "\n"))")
        #expect(tally.steps == 40 * 60)
        // The sequences reached something: many calls succeeded, and the cases that the rules are about occurred.
        #expect(tally.refused > 500 && tally.refused < tally.steps * 2 / 3, "\(tally.refused)")
        #expect(tally.asks > 150 && tally.alarms > 25 && tally.endings > 1, "\(tally)")
    }

    @Test(arguments: [
        (
            "watch",
            "create or replace function millrace.acts_as_person(actor text, person text, caller name) returns void language sql as 'select null::void'"
        ),
        (
            "read",
            "create or replace function millrace.person_sees_since(actor text, person text, caller name) returns timestamptz language sql as 'select null::timestamptz'"
        ),
        (
            "asked",
            "create or replace function millrace.consent_cap(the_cap text) returns int language sql as 'select 1000'"
        ),
        (
            "asked",
            "create or replace function millrace.consent_mailbox(mailbox text) returns text language sql immutable as 'select mailbox'"
        ),
        (
            "asked",
            "create or replace function millrace.consent_blocked(the_address bytea) returns boolean language sql as 'select false'"
        ),
        (
            "ending",
            "create or replace function millrace.alarm_farewell(a millrace.alarm, the_contact text, kept jsonb, why text, t timestamptz) returns int language sql as 'select 0'"
        ),
        (
            "rule",
            "create or replace function millrace.family_has(the_family text, the_person text, as_parent boolean) returns boolean language sql as 'select true'"
        ),
    ])
    func `a database that breaks a rule is found out`(_ kind: String, _ breaking: String) async throws {
        let tally = try await Self.played(1...30, breaking: breaking, until: kind)
        #expect(tally.byWhat[kind] ?? 0 > 0, "\(tally.byWhat)")
    }
}
