import Calendars
import FoundationEssentials
import Postgres
import TestSupport

@testable import Quests

/// Shorthands for the calls of the tests.
extension Connection {
    func advance(by interval: String) async throws(PostgresError) {
        try await run("select millrace.test_clock_advance('\(interval)')")
    }

    func now() async throws(PostgresError) -> Int64 {
        Int64(try await int("select floor(extract(epoch from millrace.now()))::bigint"))
    }

    /// Rolls all due families over; returns the number of transactions.
    @discardableResult
    func rollOver(_ most: Int = 500) async throws(PostgresError) -> Int {
        var steps = 0
        while try await int("select families from millrace.quest_rollover(\(most))") > 0 { steps += 1 }
        return steps
    }

    func makeFamily(
        _ family: String = "f", zone: String = "Europe/Berlin", teens: [String] = ["kid"]
    ) async throws(PostgresError) {
        try await run("select millrace.family_create('\(family)', '\(zone)')")
        try await run("select millrace.family_join('\(family)', '\(family)-mum', 'parent')")
        for teen in teens { try await run("select millrace.family_join('\(family)', '\(teen)', 'teen')") }
    }

    /// As a signed-in person.
    func signIn(_ person: String?) async throws(PostgresError) {
        let claims = person.map { #"{"sub": "\#($0)"}"# } ?? ""
        try await run("select set_config('request.jwt.claims', '\(claims)', false)")
    }

    /// Everything that must not depend on when a worker looked.
    func questState() async throws(PostgresError) -> [String] {
        try await column(
            "select x from (select family || ' ' || zone || ' ' || today || ' ' || next_rollover_at || ' ' || opened_at || ' ' || streak || ' ' || best || ' ' || freezes as x from millrace.quest_family union all select family || ' ' || day || ' ' || item || ' ' || state from millrace.quest union all select person || ' ' || key || ' ' || delta from millrace.points_ledger) q order by x collate \"C\""
        )
    }

    func findings(_ repair: Bool = false) async throws -> [Discrepancy] {
        var found: [Discrepancy] = []
        _ = try await QuestAdmin.verify(only: nil, repair: repair, on: self) { found.append($0) }
        return found
    }
}
