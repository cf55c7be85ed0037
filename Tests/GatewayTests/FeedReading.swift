import Postgres
import TestSupport

/// How the tests of the feed read it.
extension Connection {
    /// What a person's feed says after `since`, with the position that it has then read.
    struct Feed: Equatable {
        var position = 0
        /// As `topic change`.
        var changes: [String] = []
        var refs: [String] = []
        var data: [String] = []
    }

    func feed(of person: String, since: Int = 0, topics: String = "null") async throws(PostgresError) -> Feed {
        let rows = try await query(
            .pasted(
                "select f.seq, f.topic || ' ' || f.change, f.ref, f.data::text from millrace.feed_mine(\(since), \(topics), 500, '\(person)') f"
            ), deadline: .seconds(60)
        ) { row throws(PostgresError) in
            (Int(try row.int(0)), try row.string(1), try row.string(2), try row.string(3))
        }
        return Feed(
            position: rows.last?.0 ?? since, changes: rows.map(\.1), refs: rows.map(\.2), data: rows.map(\.3))
    }

    /// Where all is read that was written so far.
    func feedEnd() async throws(PostgresError) -> Int {
        try await int("select newest from millrace.feed_position('anybody')")
    }

    /// A contact that has agreed.
    func befriend(_ person: String, _ contact: String, step: Int = 1) async throws(PostgresError) {
        try await run(
            """
            select millrace.check_in_contact('\(person)', '\(contact)', \(step), '{"push": true}', actor => '\(person)'), millrace.check_in_confirm('\(person)', '\(contact)')
            """)
    }

    func makeFamily(_ family: String, _ members: [(String, String)]) async throws(PostgresError) {
        try await run("select millrace.family_create('\(family)', 'UTC')")
        for (person, role) in members {
            try await run("select millrace.family_join('\(family)', '\(person)', '\(role)')")
        }
    }

    /// From here on the connection speaks for somebody who is signed in.
    func signIn(_ claims: String) async throws(PostgresError) {
        try await run("select set_config('request.jwt.claims', '\(claims)', false)")
    }
}
