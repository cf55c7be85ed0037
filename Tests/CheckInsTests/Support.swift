import Postgres
import TestSupport

/// Shorthands for the calls of the tests.
extension Connection {
    func advance(by interval: String) async throws(PostgresError) {
        try await run("select millrace.test_clock_advance('\(interval)')")
    }

    /// Named, asked, and agreed.
    func befriend(
        _ person: String = "anna", _ contact: String = "mum", step: Int = 1, channels: String? = nil,
        wait: String = "5 min"
    ) async throws(PostgresError) {
        let channels = channels ?? #"{"mail": "\#(contact)@example.com"}"#
        try await run(
            """
            select millrace.check_in_contact('\(person)', '\(contact)', \(step), '\(channels)', '\(wait)', '\(person)');
            select millrace.check_in_confirm('\(person)', '\(contact)')
            """)
    }

    func arm(_ person: String = "anna", _ more: String = "") async throws(PostgresError) {
        try await run("select millrace.check_in_arm('\(person)', \(more) actor => '\(person)')")
    }

    func checkIn(_ person: String = "anna", at: String = "null") async throws(PostgresError) {
        try await run("select millrace.check_in('\(person)', \(at), '\(person)')")
    }

    /// As a check-in service does, until nothing is due.
    func watch() async throws(PostgresError) {
        while try await int("select taken from millrace.watch_step('test')") > 0 {}
    }

    /// The kinds of notices and whom they are for, in the order in which they were written, without the questions for consent.
    func told() async throws(PostgresError) -> [String] {
        try await column(
            "select kind || ' ' || person || coalesce(' ' || channel, '') from millrace.notice where kind <> 'alarm.consent' order by created_at, person, channel"
        )
    }

    func watchState(_ person: String = "anna") async throws(PostgresError) -> String? {
        try await value("select state from millrace.check_ins where person = '\(person)'")
    }

    func alarmState(_ person: String = "anna") async throws(PostgresError) -> [String] {
        try await column(
            "select state || coalesce(' ' || resolution, '') from millrace.alarms where person = '\(person)' order by raised_at"
        )
    }
}
