import Postgres
import TestSupport
import Testing

/// Who may join a family, and who decides about whom.
@Suite struct JoiningTests {
    private func refused(
        _ connection: Connection, as person: String?, _ call: String, _ state: String = "42501",
        at line: SourceLocation = #_sourceLocation
    ) async throws {
        try await connection.signIn(person)
        let refusal = try await connection.refusal(of: "select millrace.\(call)")
        #expect(refusal?.sqlState == state, "\(call): \(refusal?.message ?? "taken")", sourceLocation: line)
    }

    private func said(_ connection: Connection, as person: String?, _ call: String) async throws -> String? {
        try await connection.signIn(person)
        return try await connection.value("millrace.\(call)")
    }

    @Test func `nobody is put into a family, and nobody in it is erased by another`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.check_in_contact('alice', 'mum', 1, '{"mail": "mum@example.com"}', actor => 'alice'),
                       millrace.check_in_confirm('alice', 'mum'), millrace.check_in_arm('alice', actor => 'alice')
                """)
            // 1. A stranger makes a family, and names somebody else in it.
            #expect(try await said(connection, as: "mallory", "family_create('evil', 'Europe/London')") == "true")
            #expect(try await said(connection, as: "mallory", "family_join('evil', 'mallory', 'parent')") == "false")
            #expect(try await said(connection, as: "mallory", "family_join('evil', 'alice', 'teen')") == "false")
            // 2. That opens nothing, and erases nobody.
            for call in ["weekly_stats('alice')", "points('alice')", "moods('alice')", "person_erase('alice')"] {
                try await refused(connection, as: "mallory", call)
            }
            // 3. A parent of hers erases her as little.
            #expect(try await said(connection, as: "alice", "family_join('evil', 'alice', 'teen')") == "true")
            try await refused(connection, as: "mallory", "person_erase('alice')")
            try await refused(connection, as: nil, "person_erase('alice', 'mallory')")
            try await connection.signIn(nil)
            #expect(try await connection.value("select state from millrace.watch where person = 'alice'") == "armed")
            // A back end may, for the app; and she herself.
            #expect(try await connection.value("millrace.person_erase('mallory') ->> 'quests'") == "1")
            #expect(try await said(connection, as: "alice", "person_erase('alice') ->> 'checkins'") != nil)
        }
    }

    @Test func `an invitation is taken up by its person alone, declined, withdrawn, and ends after a fortnight`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.makeFamily()
            // By name or by family_join, with the same effect.
            #expect(try await said(connection, as: "f-mum", "family_invite('f', 'ben', 'teen')") != nil)
            #expect(try await said(connection, as: "f-mum", "family_join('f', 'eve', 'teen')") == "false")
            #expect(try await said(connection, as: "f-mum", "family_invite('f', 'kid', 'teen')") == nil)
            for person in ["kid", "ben", "stranger"] {
                try await refused(connection, as: person, "family_invite('f', 'x', 'teen')")
                try await refused(connection, as: person, "family_invitations('f')")
                try await refused(connection, as: person, "family_uninvite('f', 'eve')")
                try await refused(connection, as: person, "family_join('f', 'eve', 'teen')")
            }
            try await refused(connection, as: "stranger", "family_join('f', 'stranger', 'teen')")
            try await refused(connection, as: "stranger", "family_join('no-such', 'stranger', 'teen')")
            try await refused(connection, as: "ben", "family_join('f', 'ben', 'parent')")
            try await connection.signIn("ben")
            #expect(
                try await connection.column(
                    "select family || ' ' || role || ' ' || invited_by from millrace.family_invitations()")
                    == ["f teen f-mum"])
            try await connection.signIn("f-mum")
            #expect(
                try await connection.column("select person from millrace.family_invitations('f', page => 1)") == ["ben"]
            )
            #expect(
                try await connection.column("select person from millrace.family_invitations('f', after => 'ben')")
                    == ["eve"])
            #expect(try await said(connection, as: "ben", "family_join('f', 'ben', null)") == "true")
            #expect(try await said(connection, as: "ben", "family_join('f', 'ben', 'teen')") == "false")
            // A no is not asked again until the invitation would have ended, and may be taken back until then.
            #expect(try await said(connection, as: "eve", "family_uninvite('f', 'eve')") == "true")
            #expect(try await said(connection, as: "eve", "family_uninvite('f', 'eve')") == "false")
            try await refused(connection, as: "f-mum", "family_invite('f', 'eve', 'teen')", "55000")
            #expect(try await said(connection, as: "f-mum", "family_uninvite('f', 'eve')") == "false")
            #expect(try await said(connection, as: "eve", "family_join('f', 'eve', 'teen')") == "true")
            #expect(try await said(connection, as: "f-mum", "family_invite('f', 'late', 'teen')") != nil)
            #expect(try await said(connection, as: "f-mum", "family_invite('f', 'gone', 'teen')") != nil)
            #expect(try await said(connection, as: "f-mum", "family_uninvite('f', 'gone')") == "true")
            try await refused(connection, as: "gone", "family_join('f', 'gone', 'teen')")
            try await connection.advance(by: "14 days 1 s")
            try await refused(connection, as: "late", "family_join('f', 'late', 'teen')")
        }
    }

    @Test func `a family without a parent does not go to the first comer`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.family_create('empty', 'UTC')")
            try await refused(connection, as: "first", "family_join('empty', 'first', 'parent')")
            try await refused(connection, as: "first", "family_create('empty', 'UTC')", "23505")
            #expect(try await said(connection, as: nil, "family_join('empty', 'first', 'parent')") == "true")
            // The creator of a family is in it, and in no other.
            #expect(try await said(connection, as: "new", "family_create('n', 'UTC')") == "true")
            #expect(try await said(connection, as: "new", "family_create('n', 'UTC')") == "false")
            try await refused(connection, as: "new", "family_create('m', 'UTC')", "55000")
            // The last parent leaves: the remaining members cannot add anybody, and its invitations are gone.
            #expect(try await said(connection, as: nil, "family_join('n', 'kid', 'teen')") == "true")
            #expect(try await said(connection, as: "new", "family_invite('n', 'heir', 'parent')") != nil)
            #expect(try await said(connection, as: "new", "family_leave('n', 'new')") == "true")
            for person in ["heir", "kid", "new", "stranger"] {
                try await refused(connection, as: person, "family_join('n', '\(person)', 'parent')")
            }
            try await connection.signIn(nil)
            #expect(
                try await connection.column("select person || role from millrace.family_member where family = 'n'")
                    == ["kidteen"])
        }
    }

    @Test func `no parent decides about another parent, and a role changes by one's own yes`() async throws {
        try await withConnection { connection in
            try await connection.makeFamily()
            try await connection.run("select millrace.family_join('f', 'dad', 'parent')")
            try await refused(connection, as: "f-mum", "family_leave('f', 'dad')")
            #expect(try await said(connection, as: "f-mum", "family_join('f', 'dad', 'teen')") == "false")
            #expect(try await said(connection, as: "f-mum", "family_join('f', 'kid', 'parent')") == "false")
            try await connection.signIn(nil)
            #expect(
                try await connection.column("select person || ' ' || role from millrace.family_member order by 1")
                    == ["dad parent", "f-mum parent", "kid teen"])
            #expect(try await said(connection, as: "kid", "family_join('f', 'kid', 'parent')") == "true")
            // A parent may become a teen, but not a parent again; invitations that it made as a parent are gone.
            #expect(try await said(connection, as: "dad", "family_invite('f', 'pal', 'parent')") != nil)
            #expect(try await said(connection, as: "dad", "family_join('f', 'dad', 'teen')") == "true")
            try await refused(connection, as: "pal", "family_join('f', 'pal', 'parent')")
            try await refused(connection, as: "dad", "family_join('f', 'dad', 'parent')")
            // A teen is removed, and none of its data is deleted.
            try await connection.signIn(nil)
            try await connection.run("select millrace.points_award('dad', 5, 'k', 'r')")
            #expect(try await said(connection, as: "f-mum", "family_leave('f', 'dad')") == "true")
            #expect(try await said(connection, as: "dad", "points('dad')") == "5")
        }
    }

    @Test func `a parent sees what happened since the teen joined, and another family's days are not touched`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.makeFamily()
            try await connection.makeFamily("g", teens: ["sis"])
            for call in [
                "points_award('kid', 5, 'k', 'r')", "mood_log('kid', 'sad', actor => 'kid')",
                "quest_complete('f', 'kid', actor => 'kid')",
            ] { _ = try await said(connection, as: nil, call) }
            try await connection.advance(by: "1 min")
            #expect(try await said(connection, as: "kid", "family_leave('f', 'kid')") == "true")
            try await refused(connection, as: "f-mum", "points('kid')")
            #expect(try await said(connection, as: "g-mum", "family_join('g', 'kid', 'teen')") == "false")
            try await refused(connection, as: "g-mum", "points('kid')")
            #expect(try await said(connection, as: "kid", "family_join('g', 'kid', 'teen')") == "true")
            #expect(try await said(connection, as: "g-mum", "points('kid')") == "0")
            #expect(try await said(connection, as: "g-mum", "weekly_stats('kid') ->> 'moods'") == "0")
            #expect(try await said(connection, as: "kid", "weekly_stats('kid') ->> 'moods'") == "1")
            #expect(try await said(connection, as: "g-mum", "points('kid')") == "0")
            try await connection.signIn("g-mum")
            #expect(try await connection.int("select count(*) from millrace.moods('kid')") == 0)
            try await refused(connection, as: "g-mum", "quest_undo('f', 'kid')")
            try await connection.signIn("kid")
            #expect(try await connection.int("select count(*) from millrace.moods('kid')") == 1)
            try await refused(connection, as: "kid", "quest_undo('f', 'kid')")
            try await connection.signIn(nil)
            #expect(
                try await connection.int("select count(*) from millrace.quest_completion where undone_at is null") == 1)
        }
    }
}
