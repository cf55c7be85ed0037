import Postgres
import TestSupport
import Testing

/// What the app's server does for a person, the person sees: in the feed, and by a notice of a kind that it has asked for.
@Suite struct FeedServerTests {
    private static let wanted = """
        select millrace.notice_preferences('ada', 'UTC', '0:00', '0:00',
            '{"push": true, "kinds": {"quota.warning": ["push"], "document.ready": ["push"], "subscription.changed": []}}', 'de', 'ada')
        """

    private func notices(of person: String, on connection: Connection) async throws -> [String] {
        try await connection.column(
            "select kind || ' ' || (data ->> 'title') from millrace.notice where person = '\(person)' and kind <> 'daily_reminder' order by 1"
        )
    }

    @Test func `a mail that the server sends for a person is followed by that person, and by nobody else`() async throws
    {
        try await withConnection { connection in
            let id = try #require(
                try await connection.value(
                    "select millrace.mail_send(array['ada@example.com'], 'Secret subject', 'there', person => 'ada')"))
            let other = try #require(
                try await connection.value("select millrace.mail_send(array['x@example.com'], 'Hi', 'there')"))
            try await connection.run(
                """
                insert into millrace.mail_attempt (message, n, provider, outcome, batch, key, at) values ('\(id)', 1, 'resend', 'refused', 1, 'k', now());
                update millrace.mail set service = 'smtp' where id = '\(id)';
                select millrace.mail_raise('\(id)', 'accepted', 'accepted', null)
                """)
            let heard = try await connection.feed(of: "ada", topics: "'{mail}'")
            #expect(heard.changes == ["mail created", "mail accepted"] && Set(heard.refs) == [id])
            // Another service had been tried: the app can say so.
            #expect(heard.data.last?.contains(#""switched_from": "resend""#) == true)
            #expect(!heard.data.contains { $0.contains("Secret") || $0.contains("@") })
            #expect(try await connection.feed(of: "bob", topics: "'{mail}'").changes.isEmpty)
            // Its own doors show it, too: signed in it reads this one, and no other.
            let role = TestCluster.name("app")
            try await connection.run("create role \(role) nologin; grant usage on schema millrace to \(role)")
            try await connection.run(
                "grant execute on function millrace.mail_message(uuid, millrace.caller_name) to \(role); set role \(role)"
            )
            for (person, count) in [("ada", 1), ("bob", 0)] {
                try await connection.signIn(#"{"sub": "\#(person)"}"#)
                #expect(try await connection.int("select count(*) from millrace.mail_message('\(id)')") == count)
                #expect(try await connection.int("select count(*) from millrace.mail_message('\(other)')") == 0)
            }
            try await connection.run("reset role; drop owned by \(role); drop role \(role)")
        }
    }

    @Test func `a quota that is nearly used is told to whose it is, once for each share`() async throws {
        try await withConnection { connection in
            try await connection.run(Self.wanted)
            try await connection.run(
                """
                select millrace.quota_set('person:ada', 'pages', 10), millrace.quota_set('person:bob', 'pages', 10);
                select millrace.quota_use('person:ada', 'pages', 9), millrace.quota_use('person:bob', 'pages', 9);
                select millrace.quota_use('person:ada', 'pages', 2), millrace.quota_use('person:ada', 'pages', 2)
                """)
            let heard = try await connection.feed(of: "ada", topics: "'{subscriptions}'")
            #expect(
                heard.changes == Array(repeating: "subscriptions quota_warning", count: 2)
                    && heard.refs == ["pages", "pages"])
            #expect(heard.data[0].contains(#""share": 80"#) && heard.data[1].contains(#""share": 100"#))
            #expect(
                try await notices(of: "ada", on: connection)
                    == ["quota.warning Dein Tarif ist fast verbraucht", "quota.warning Dein Tarif ist verbraucht"])
            // Who has not asked for this kind hears it in the feed alone.
            #expect(try await connection.feed(of: "bob", topics: "'{subscriptions}'").changes.count == 1)
            #expect(try await notices(of: "bob", on: connection).isEmpty)
        }
    }

    @Test func `a document that is ready, and a subscription that has changed, are notices for who wants them`()
        async throws
    {
        try await withConnection { connection in
            try await connection.run(Self.wanted)
            try await connection.run(
                """
                select millrace.subscription_plan_set('pro', '{}');
                select millrace.subscription_set('pro', person => p) from unnest(array['ada', 'bob']) p;
                select millrace.document_register('https://a.example/' || p, 'Algebra', tenant => 'person:' || p, actor => p) from unnest(array['ada', 'bob']) p;
                select millrace.document_end(id, 'completed', null, null) from millrace.document
                """)
            // An empty list says that none is wanted.
            #expect(try await notices(of: "ada", on: connection) == ["document.ready Dein Dokument ist fertig"])
            #expect(
                try await connection.value("select data ->> 'body' from millrace.notice where kind = 'document.ready'")
                    == "Algebra")
            #expect(try await notices(of: "bob", on: connection).isEmpty)
            for person in ["ada", "bob"] {
                let heard = try await connection.feed(of: person).changes
                #expect(heard.contains("documents processing_complete") && heard.contains("subscriptions active"))
            }
        }
    }
}
