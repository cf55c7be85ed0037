import Foundation
import Postgres
import TestSupport

/// Shorthands for the calls of the tests.
extension Connection {
    /// A family with a parent, anna, and others as teens.
    func makeFamily(_ family: String = "f", _ teens: [String] = ["ben", "cleo"]) async throws(PostgresError) {
        try await run(
            "select millrace.family_create('\(family)', 'UTC'), millrace.family_join('\(family)', 'anna', 'parent')")
        for teen in teens { try await run("select millrace.family_join('\(family)', '\(teen)', 'teen')") }
    }

    /// A thread of the whole family.
    func beginThread(by person: String = "anna") async throws(PostgresError) -> String {
        try await value("millrace.chat_thread_create(actor => '\(person)')") ?? ""
    }

    /// Makes the two accepted contacts.
    func makeContacts(_ person: String, _ contact: String) async throws(PostgresError) {
        try await run(
            """
            select millrace.check_in_contact('\(person)', '\(contact)', 1, '{"push": true}', actor => '\(person)');
            select millrace.check_in_accept('\(person)', true, '\(contact)')
            """)
    }

    @discardableResult
    func send(
        _ text: String, to thread: String, by person: String, id: String = UUID().uuidString.lowercased()
    ) async throws(PostgresError) -> String {
        try await value("millrace.chat_send('\(thread)', '\(text)', id => '\(id)', actor => '\(person)')") ?? ""
    }

    func unread(_ person: String, in thread: String) async throws(PostgresError) -> Int {
        try await int("select unread from millrace.chat_threads(actor => '\(person)') where id = '\(thread)'")
    }

    /// What the person reads in the thread, oldest first.
    func texts(_ thread: String, _ person: String) async throws(PostgresError) -> [String] {
        try await column(
            "select coalesce(text, '-') from millrace.chat_messages('\(thread)', actor => '\(person)') order by n")
    }

    /// Members whose count of unread messages is not what a count over the messages gives.
    func miscounted() async throws(PostgresError) -> [String] {
        try await column(
            """
            select m.person || ' has ' || millrace.chat_unread_of(m, t.last_n) || ', counted ' || millrace.chat_unread_counted(m.thread, m.person)
              from millrace.chat_member m join millrace.chat_thread t on t.id = m.thread
             where millrace.chat_unread_of(m, t.last_n) <> millrace.chat_unread_counted(m.thread, m.person)
            """)
    }

    /// As a signed-in person.
    func signIn(_ person: String) async throws(PostgresError) {
        try await run("select set_config('request.jwt.claims', '{\"sub\": \"\(person)\"}', false)")
    }

    /// A blob that callers of this role may name, of some bytes.
    func putBlob(_ bytes: String) async throws(PostgresError) -> String {
        let hash = try await value("encode(sha256('\(bytes)'::bytea), 'hex')") ?? ""
        try await run("select millrace.blob_put(sha256('\(bytes)'::bytea), '\(bytes)'::bytea)")
        return hash
    }
}
