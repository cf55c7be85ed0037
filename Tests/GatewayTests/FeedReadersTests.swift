import Postgres
import TestSupport
import Testing

/// Who reads what of the feed.
@Suite struct FeedReadersTests {
    @Test func `each person reads its own, and of its tenant what is nobody's`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.document_register('https://a.example/1', 'a', lesson_id => 'l7', tenant => 'school', actor => 'ada'),
                       millrace.document_register('https://a.example/2', 'b', tenant => 'school', actor => 'bob'),
                       millrace.document_register('https://a.example/3', 'c', tenant => 'school'),
                       millrace.document_register('https://a.example/4', 'd', tenant => 'other'),
                       millrace.document_register('https://a.example/5', 'e', actor => 'ada'),
                       millrace.document_register('https://a.example/6', 'f')
                """)
            func titles(_ claims: String) async throws -> [String] {
                try await connection.signIn(claims)
                let titles = try await connection.column(
                    "select d.title from millrace.feed_mine() f join millrace.document d on d.id::text = f.ref where f.change = 'created' order by 1"
                )
                try await connection.signIn("")
                return titles
            }
            #expect(try await titles(#"{"sub": "ada", "tenant": "school"}"#) == ["a", "c", "e"])
            #expect(try await titles(#"{"sub": "ada"}"#) == ["e"])
            #expect(try await titles(#"{"sub": "bob", "tenant": "school"}"#) == ["b", "c"])
            #expect(try await titles(#"{"sub": "eve", "tenant": "other"}"#) == ["d"])
            // A person of a tenant's name is no tenant.
            #expect(try await titles(#"{"sub": "school"}"#).isEmpty)
            #expect(
                try await connection.records(
                    "select distinct f.person, f.tenant, f.lesson from millrace.feed_new(0) f order by 1, 2, 3")
                    == ["(ada,school,l7)", "(ada,,)", "(bob,school,)", "(,other,)", "(,school,)"])
        }
    }

    @Test func `mail that a client sent is of its tenant, and a server's is nobody's business`() async throws {
        try await withDatabase { database in
            let office = try await TestCluster.office()
            let role = TestCluster.name("client")
            try await office.run("create role \(role) nologin")
            let owner = try await database.connect()
            try await owner.run(
                """
                grant usage on schema millrace to \(role); select millrace.grant_enqueue('\(role)');
                grant execute on function millrace.mail_send to \(role);
                select millrace.mail_send(array['a@b.example'], 's', 't', tenant => 'ada');
                begin; select set_config('request.jwt.claims', '{"sub": "ada"}', true); set local role \(role);
                select millrace.mail_send(array['a@b.example'], 's', 't', id => '00000000-0000-0000-0000-000000000001'); commit
                """)
            try await owner.signIn(#"{"sub": "ada"}"#)
            #expect(
                try await owner.column("select topic || ' ' || change || ' ' || ref from millrace.feed_mine()")
                    == ["mail created 00000000-0000-0000-0000-000000000001"])
            try await owner.signIn(#"{"sub": "bob"}"#)
            #expect(try await owner.int("select count(*) from millrace.feed_mine()") == 0)
            try await owner.run("drop owned by \(role)")
            await owner.close()
            try await office.run("drop role \(role)")
            await office.close()
        }
    }

    @Test func `topics, pages and positions are what was asked for`() async throws {
        try await withConnection { connection in
            try await connection.befriend("ada", "bob")
            try await connection.run(
                """
                select millrace.check_in_arm('ada', actor => 'ada');
                select millrace.mood_log('ada', 'calm', id => '00000000-0000-0000-0000-000000000001', actor => 'ada');
                select millrace.own_notice_schedule('ada', 'water', 'k', now() + interval '1 hour', actor => 'ada');
                select millrace.mood_delete('00000000-0000-0000-0000-000000000001', 'ada')
                """)
            let all = try await connection.feed(of: "ada")
            #expect(
                all.changes == [
                    "check-ins contact", "check-ins consent_given", "check-ins armed", "moods logged",
                    "notices scheduled", "moods deleted",
                ])
            #expect(
                try await connection.feed(of: "ada", topics: "array['moods', 'notices']").changes
                    == ["moods logged", "notices scheduled", "moods deleted"])
            #expect(try await connection.feed(of: "ada", since: all.position).changes.isEmpty)
            #expect(try await connection.feedEnd() == all.position)
            let pages = "select string_agg(f.seq::text, ' ') from millrace.sync_pull"
            let own = try await connection.column("select f.seq from millrace.sync_pull(actor => 'ada') f")
            #expect(own.count == 6)
            #expect(try await connection.value("\(pages)(0, 2, 'ada') f") == own[0..<2].joined(separator: " "))
            #expect(try await connection.value("\(pages)(\(own[1]), 2, 'ada') f") == own[2..<4].joined(separator: " "))
            for call in [
                "feed_mine(0, '{moods,weather}', actor => 'ada')", "feed_mine(0, '{null}', actor => 'ada')",
                "feed_mine(page => 0, actor => 'ada')", "sync_pull(page => 501, actor => 'ada')", "feed_new(0, 0)",
                "feed_next(0, 0)",
                "feed_mine()", "feed_position()", "jobs_followed(null)",
            ] {
                let refusal = try await connection.refusal(of: "select millrace.\(call)")
                #expect(refusal?.sqlState == "22023", "\(call): \(refusal?.message ?? "it went through")")
            }
            let refusal = try await connection.refusal(of: "select millrace.feed_mine(0, '{weather}', actor => 'ada')")
            #expect(refusal?.hint?.contains("documents, check-ins, alarms, quests, moods, notices, mail") == true)
        }
    }

    @Test func `a plain check-in is one row with the new deadline, and what the timer does alone is none`() async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.befriend("ada", "bob")
            try await connection.run("select millrace.check_in_arm('ada', '1 hour', actor => 'ada')")
            let begin = try await connection.feed(of: "ada").position
            try await connection.run(
                "select millrace.test_clock_advance('10 min'), millrace.check_in('ada', actor => 'ada')")
            let checkedIn = try await connection.feed(of: "ada", since: begin)
            #expect(checkedIn.changes == ["check-ins checked_in"] && checkedIn.refs == ["ada"])
            #expect(
                try await connection.bool(
                    """
                    select (\(checkedIn.data.first.map { "'\($0)'" } ?? "null")::jsonb ->> 'check_in_expiration')::timestamptz = w.expires_at from millrace.watch w
                    """))
            // The timer moves the next look only.
            try await connection.run("select millrace.test_clock_advance('41 min')")
            try await connection.run("select millrace.watch_step('w')")
            #expect(try await connection.feed(of: "ada", since: checkedIn.position).changes == [])
            try await connection.run("select millrace.test_clock_advance('10 min')")
            try await connection.run("select millrace.watch_step('w')")
            try await connection.run(
                """
                select millrace.check_in_set_interval('ada', '2 hours', 'ada');
                select millrace.check_in_pause('ada', millrace.now() + interval '1 hour', 'ada');
                select millrace.check_in_disarm('ada', actor => 'ada')
                """)
            #expect(
                try await connection.feed(of: "ada", since: checkedIn.position).changes
                    == ["check-ins warned", "check-ins armed", "check-ins paused", "check-ins disarmed"])
        }
    }

    @Test func `a followed job shows where it is, and one that is gone does not`() async throws {
        try await withConnection { connection in
            let (first, second) = (
                try await connection.int("select millrace.enqueue('one', tenant => 't')"),
                try await connection.int("select millrace.enqueue('two', run_at => now() + interval '1 day')")
            )
            try await connection.run("select millrace.cancel(\(second))")
            #expect(
                try await connection.records(
                    "select f.id, f.owner = current_user, f.tenant, f.state, f.attempt, f.message, f.updated is not null from millrace.jobs_followed(array[\(second), \(first), \(first), 987654321]) f order by f.id"
                ) == ["(\(first),t,t,ready,0,,t)", "(\(second),t,,cancelled,0,,t)"])
            #expect(try await connection.int("select count(*) from millrace.feed") == 0, "jobs are followed, not told")
        }
    }
}
