import Foundation
import Postgres
import TestSupport
import Testing

/// A person leaves traces in every room and is erased. Every column of every table is searched, as the catalogue lists them, so that a new table is
/// searched too. All that says something of the person has `qxz` in it.
@Suite struct ErasureTests {
    /// What stays, and why.
    private static let exceptions = [
        // The app's own work that still waits goes on: it may be what tells other systems of the erasure. Retention deletes it once it has ended.
        "job.args", "job.tenant", "queue.tenant",
        // Who did what as an operator is kept for the audit's days, and nobody changes it.
        "audit.object",
    ]

    /// Columns of this name are a person's, a contact's or an account's; the seed fills them, or they stand in `unfilled`.
    private static let personal = ["person", "contact", "about", "account", "invited_by", "actor"]
    private static let unfilled = [
        "door.about",  // what a call names: a kind of thing, and no thing
        "document_output.about", "approval_person.person", "sync_done.person",
        "sync_newest.person", "sync_person.person", "family_invitation.invited_by",
    ]

    private func found(_ token: String, on connection: Connection) async throws -> [String] {
        let columns = try await connection.column(
            """
            select k.relname || '.' || a.attname || '.' || (a.atttypid = 'bytea'::regtype)
              from pg_class k join pg_attribute a on a.attrelid = k.oid
             where k.relnamespace = 'millrace'::regnamespace and k.relkind in ('r', 'p') and not k.relispartition and a.attnum > 0 and not a.attisdropped
             order by 1
            """)
        #expect(columns.count > 500)
        var found: [String] = []
        for column in columns {
            let parts = column.split(separator: ".").map(String.init)
            let text = parts[2] == "true" ? token.utf8.map { String($0, radix: 16) }.joined() : token
            let n = try await connection.int(
                "select count(*) from millrace.\"\(parts[0])\" x where x.\"\(parts[1])\"::text ~* '\(text)'")
            if n > 0 { found.append("\(parts[0]).\(parts[1])") }
        }
        return found
    }

    @Test func `of an erased person nothing is found in any column of any table, but what is listed with its reason`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.run(Self.seed)
            let before = try await found("qxz", on: connection)
            #expect(Set(before.map { $0.split(separator: ".")[0] }).count >= 34)
            let personal = try await connection.column(
                """
                select k.relname || '.' || a.attname from pg_class k join pg_attribute a on a.attrelid = k.oid
                 where k.relnamespace = 'millrace'::regnamespace and k.relkind in ('r', 'p') and not k.relispartition and a.attnum > 0
                   and a.attname in ('\(Self.personal.joined(separator: "', '"))')
                """)
            for column in personal where !before.contains(column) && !Self.unfilled.contains(column) {
                Issue.record("\(column) may name a person, and the seed fills it with none")
            }
            try await connection.run("select millrace.person_erase('qxzper', 'qxzper')")
            let after = try await found("qxz", on: connection)
            #expect(Set(after) == ["job.args", "job.tenant", "queue.tenant"])
            #expect(Set(after).isSubset(of: Self.exceptions))
            #expect(
                try await connection.column("select kind from millrace.jobs where args::text ~ 'qxz'") == ["app.waits"])
            #expect(try await connection.int("select count(*) from millrace.place") == 0)
            // Others keep what is theirs.
            #expect(
                try await connection.int("select count(*) from millrace.family_member where person in ('mum', 'ben')")
                    == 2)
            #expect(try await connection.value("select status from millrace.subscription where ref = 'sub_77'") == nil)
            #expect(
                try await connection.value("select account from millrace.subscription where ref = 'sub_77'") == "school"
            )
        }
    }

    /// Words of the seed that nobody is shown: secrets, and what the person has only announced.
    private static let unshown: Set<String> = ["qxzdevice", "qxztoken", "qxzfile"]

    @Test func `a person reads all that is kept of it, page by page, and nobody else does`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(Self.seed)
            func words(_ text: String) -> Set<String> {
                Set(text.lowercased().matches(of: /qxz\w+/).map { String($0.output) })
            }
            let all = try await connection.column(
                "select place || ' ' || data from millrace.person_export('qxzper', actor => 'qxzper')")
            #expect(words(all.joined(separator: " ")) == words(Self.seed).subtracting(Self.unshown))
            #expect(Set(all.map { String($0.prefix { $0 != "/" }) }).count >= 12)
            // Small pages are the same rows, each once.
            var (place, read) = ("null", [String]())
            while true {
                let page = try await connection.column(
                    "select place || ' ' || data from millrace.person_export('qxzper', \(place), 7)")
                guard let last = page.last else { break }
                read += page
                place = "'\(last.prefix { $0 != " " })'"
            }
            #expect(read == all && read.count > 30)
            // What others keep of themselves is not in it.
            #expect(!all.contains { $0.contains("ben@example.com") && !$0.hasPrefix("checkins/address/") })
            for actor in ["mum", "ben", "zoe"] {
                #expect(
                    try await connection.refusal(of: "select millrace.person_export('qxzper', actor => '\(actor)')")?
                        .sqlState == "42501")
            }
            #expect(
                try await connection.refusal(of: "select millrace.person_export('qxzper', 'nowhere/1')")?.sqlState
                    == "22023")
            try await connection.run("select millrace.person_erase('qxzper', 'qxzper')")
            #expect(
                try await connection.column("select room || '/' || thing from millrace.person_export('qxzper')")
                    == ["jobs/job"])
        }
    }

    /// Each table that an erasure touches, with where its rows stand in the export, and which of them are the person's own.
    private static let exported: [String: (place: String, own: String)] = [
        "ai_question": ("ai/question", "actor = 'qxzper'"),
        "ai_call": ("ai/call", "question in (select id from millrace.ai_question where actor = 'qxzper')"),
        "alarm": ("checkins/alarm", "person = 'qxzper'"),
        "alarm_event": (
            "checkins/answer",
            "'qxzper' in (contact, by) or alarm in (select id from millrace.alarm where person = 'qxzper')"
        ),
        "card_reply": ("quests/card_answer", "person = 'qxzper'"), "chat_member": ("chat/member", "person = 'qxzper'"),
        "chat_message": ("chat/message", "sender = 'qxzper'"), "device": ("notices/device", "person = 'qxzper'"),
        "document": ("documents/document", "owner = 'qxzper'"),
        "event": ("events/event", "id in (select millrace.events_about('qxzper'))"),
        "family_invitation": ("people/invitation", "person = 'qxzper'"),
        "family_member": ("people/membership", "person = 'qxzper'"),
        "gateway_answer": ("gateway/answer", "person = 'qxzper'"), "hobby": ("quests/hobby", "person = 'qxzper'"),
        "hobby_view": ("quests/hobby_seen", "person = 'qxzper'"), "job": ("jobs/job", "tenant = 'person:qxzper'"),
        "lesson": ("lessons/lesson", "owner = 'qxzper'"), "mail": ("mail/mail", "person = 'qxzper'"),
        "media": ("media/media", "owner = 'qxzper'"), "mood": ("quests/mood", "person = 'qxzper'"),
        "notice": ("notices/notice", "person = 'qxzper' and parent is null"),
        "notice_preference": ("people/preferences", "person = 'qxzper'"),
        "place": ("checkins/place", "person = 'qxzper'"),
        "points_ledger": ("quests/points", "person = 'qxzper'"), "profile": ("people/profile", "person = 'qxzper'"),
        "quest_completion": ("quests/quest", "person = 'qxzper'"),
        "quest_person": ("quests/mood_streak", "person = 'qxzper'"),
        "quota": ("quotas/quota_use", "tenant = 'person:qxzper'"),
        "subscription": ("subscriptions/subscription", "person = 'qxzper' or account = 'person:qxzper'"),
        "subscription_account": ("subscriptions/plan", "account = 'person:qxzper'"),
        "subscription_event": (
            "subscriptions/event",
            "subscription in (select id from millrace.subscription where 'qxzper' in (person, substr(account, 8)))"
        ),
        "sync_device": ("gateway/device", "person = 'qxzper'"), "watch": ("checkins/watch", "person = 'qxzper'"),
        "watch_address": ("checkins/address", "person = 'qxzper'"),
        "watch_contact": ("checkins/contact", "person = 'qxzper'"),
    ]

    /// Tables that an erasure touches, and why their rows are not in the export by themselves.
    private static let within = [
        "card": "a hobby says its facts", "hobby_share": "a hobby says its facts", "mail_content": "a mail says it",
        "chat_thread": "the membership says its title; the thread is everybody's",
        "upload": "a link to a file that has not come",
        "checkin_change": "news of a row that is there", "document_change": "news of a row that is there",
        "feed": "news of rows that are there", "queue": "a line of the machine's, named by the tenant",
    ]

    /// The primary keys, or whole rows, of what has the word in it, by table.
    private func rows(_ token: String, on connection: Connection) async throws -> [String: Set<String>] {
        var rows: [String: Set<String>] = [:]
        for table in try await connection.column(
            "select relname from pg_class where relnamespace = 'millrace'::regnamespace and relkind in ('r', 'p') and not relispartition"
        ) {
            let hex = token.utf8.map { String($0, radix: 16) }.joined()
            rows[table] = Set(
                try await connection.column(
                    "select to_jsonb(x)::text from millrace.\"\(table)\" x where x::text ~* '\(token)|\(hex)'"))
        }
        return rows
    }

    @Test func `the export has every row that the erasure takes, and nothing of anybody else`() async throws {
        try await withConnection(.movableClock) { connection in
            try await connection.run(Self.seed)
            try await connection.run(Self.others)
            let all = try await connection.column(
                "select place || ' ' || data from millrace.person_export('qxzper', actor => 'qxzper')")
            #expect(all.filter { $0.lowercased().contains("yxz") }.isEmpty)
            let places = all.map { $0.split(separator: "/", maxSplits: 2).prefix(2).joined(separator: "/") }
            var own: [String: Int] = [:]
            for (table, there) in Self.exported {
                own[table] = try await connection.int("select count(*) from millrace.\(table) where \(there.own)")
            }
            let before = try await rows("qxz", on: connection)
            try await connection.run("select millrace.person_erase('qxzper', 'qxzper')")
            let after = try await rows("", on: connection)
            let touched = before.filter { table, rows in !rows.subtracting(after[table] ?? []).isEmpty }.keys
            #expect(touched.count >= 40)
            for table in touched.sorted() where Self.within[table] == nil {
                let there = try #require(Self.exported[table], "\(table) is erased from, and no export is named for it")
                #expect(places.count { $0 == there.place } == own[table], "\(table) as \(there.place)")
                #expect((own[table] ?? 0) > 0, "\(table): the seed has no row of the person's own")
            }
            // Nothing that is listed here is a mistake of this list.
            #expect(Set(Self.exported.keys).union(Self.within.keys).isSubset(of: touched))
        }
    }

    /// What others keep for themselves, beside what they share with the person.
    private static let others = """
        select millrace.person_profile('mum', 'Yxzmum', 'de', 'UTC', actor => 'mum'), millrace.hobby_save('mum', 'Yxzhobby', 'a yxzfact', actor => 'mum'),
               millrace.mood_log('ben', 'calm', 'yxz', actor => 'ben'), millrace.own_notice_schedule('ben', 'water', 'yxzkey', millrace.now() + interval '1 hour', '{"title": "yxztitle"}', actor => 'ben'),
               millrace.document_register('https://a.example/yxzpath', 'yxztitle', tenant => 'person:ben', actor => 'ben'),
               millrace.mail_send(array['yxzmail@example.com'], 'yxzsubject', 'yxzbody', person => 'ben'),
               millrace.event_publish('com.example.x', '/x', '{"person": "ben", "name": "yxzname"}'), millrace.lesson_put('yxzlesson', 'Yxz', tenant => 'person:ben', actor => 'ben'),
               millrace.enqueue('app.waits', '{"person": "yxz"}', tenant => 'person:ben'),
               millrace.check_in_contact('ben', 'zoe', 1, '{"mail": "yxzcontact@example.com"}', actor => 'ben');
        select millrace.chat_send(t.id, 'yxzreply', actor => 'ben') from millrace.chat_thread t where 'ben' in (t.first_person, t.second_person);
        insert into millrace.ai_question (id, purpose, version, tenant, actor, caller, account, locale, input, key, status, answer, asked_at, ended_at)
        values (gen_random_uuid(), 'sentiment', 1, 'person:ben', 'ben', 'app', 'person:ben', 'de', '{"text": "yxzsad"}', 'k2', 'answered', '{"summary": "yxzwas sad"}', now(), now())
        """

    private static let seed = """
        select millrace.link_key_set(sha256('k'), 'https://a.example'), millrace.subscription_plan_set('pro', '{"pages": 5}');
        select millrace.family_create('f', 'UTC'), millrace.family_join('f', 'mum', 'parent'), millrace.family_join('f', 'qxzper', 'teen'),
               millrace.family_invite('f', 'qxzper', 'parent', 'mum'), millrace.family_create('g', 'UTC'), millrace.family_join('g', 'ben', 'parent');
        select millrace.person_profile('qxzper', 'Qxzname', 'de', 'Europe/Berlin', avatar => 'https://img.example.com/qxzavatar', actor => 'qxzper'),
               millrace.notice_preferences('qxzper', 'UTC', '22:00', '07:00', '{"mail": "qxzmail@example.com"}', 'de', 'qxzper'),
               millrace.device_add('qxzper', 'fcm', 'qxzdevice-12345678', actor => 'qxzper');
        select millrace.mood_log('qxzper', 'happy', 'qxz', actor => 'qxzper'), millrace.hobby_save('qxzper', 'Qxzhobby', 'a qxzfact', actor => 'qxzper'),
               millrace.quest_complete('f', 'qxzper', actor => 'qxzper'), millrace.hobby_save('mum', 'Chess', 'old', actor => 'mum');
        select millrace.hobby_seen(h.id, p, p) from millrace.hobby h join (values ('qxzper', 'mum'), ('mum', 'qxzper')) v(p, of) on v.of = h.person;
        select millrace.card_answer(c.id, p, 'qxzanswer', actor => p) from millrace.card c join millrace.hobby h on h.id = c.hobby
          join (values ('qxzper', 'mum'), ('mum', 'qxzper')) v(p, of) on v.of = h.person;
        select millrace.own_notice_schedule('qxzper', 'water', 'qxzkey', millrace.now() + interval '1 hour', '{"title": "qxztitle"}', actor => 'qxzper'),
               millrace.notice_send('qxzper', 'note', '{"text": "qxztext"}'), millrace.notice_send('mum', 'note', '{"person": "qxzper", "name": "Qxzname"}');
        select millrace.check_in_contact('qxzper', 'ben', 1, '{"mail": "ben@example.com", "push": true}', actor => 'qxzper'), millrace.check_in_confirm('qxzper', 'ben'),
               millrace.check_in_accept('qxzper', true, 'ben'), millrace.check_in_arm('qxzper', actor => 'qxzper'), millrace.check_in('qxzper', actor => 'qxzper');
        select millrace.check_in_respond(millrace.check_in_alarm('qxzper', 'qxznote', 'qxzper'), 'qxzper', 'safe'), millrace.check_in_alarm('qxzper', 'qxznote', 'qxzper', '{"latitude": 1, "longitude": 2}'),
               millrace.check_in('qxzper', actor => 'qxzper', place => '{"latitude": 1, "longitude": 2}');
        select millrace.check_in_contact('zoe', 'qxzper', 1, '{"mail": "qxzmail@example.com", "push": true}', actor => 'zoe'), millrace.check_in_confirm('zoe', 'qxzper'),
               millrace.check_in_accept('zoe', true, 'qxzper');
        select millrace.check_in_contact_details('qxzper', 'ben', 'Qxzben', 'Qxzfriends', 'times', 'qxzper'),
               millrace.check_in_contact_details('zoe', 'qxzper', 'Qxzname', 'Qxzfriends', 'times', 'zoe');
        select millrace.check_in_respond(millrace.check_in_alarm('zoe', 'help', 'zoe'), 'qxzper', 'acknowledged');
        select millrace.document_register('https://a.example/qxzpath', 'qxztitle', lesson_id => 'qxzlesson', tenant => 'person:qxzper', actor => 'qxzper'),
               millrace.document_upload('qxzfile.pdf', 'application/pdf', 5, tenant => 'person:qxzper', actor => 'qxzper');
        select millrace.mail_send(array['qxzmail@example.com'], 'qxzsubject', 'qxzbody', person => 'qxzper'), millrace.mail_password_reset('qxzmail@example.com', 'qxztoken', 'qxzper');
        select millrace.event_publish('com.example.x', '/x', '{"person": "qxzper", "name": "Qxzname"}'), millrace.event_publish('com.example.x', '/x', '{}', tenant => 'person:qxzper');
        select millrace.subscription_set('pro', person => 'qxzper'), millrace.subscription_link('stripe', 'sub_77', 'qxzper', 'school'), millrace.quota_use('person:qxzper', 'pages', 1);
        select millrace.cancel(millrace.enqueue('app.ended', '{"person": "qxzper"}', tenant => 'person:qxzper')), millrace.enqueue('app.waits', '{"person": "qxzper"}', tenant => 'person:qxzper');
        select millrace.chat_send(millrace.chat_thread_create(family => 'f', actor => 'qxzper'), 'qxzhello', actor => 'qxzper'),
               millrace.chat_send(millrace.chat_thread_create('{ben}', actor => 'qxzper'), 'qxzdinner', actor => 'qxzper'),
               millrace.lesson_put('qxzalgebra', 'Qxzalgebra', tenant => 'person:qxzper', actor => 'qxzper');
        insert into millrace.ai_question (id, purpose, version, tenant, actor, caller, account, locale, input, key, status, answer, asked_at, ended_at)
        values (gen_random_uuid(), 'sentiment', 1, 'person:qxzper', 'qxzper', 'app', 'person:qxzper', 'de', '{"text": "qxzsad"}', 'k', 'answered', '{"summary": "qxzwas sad"}', now(), now());
        insert into millrace.ai_call (id, question, n, account, purpose, provider, model, reserved, outcome, at)
        select gen_random_uuid(), q.id, 1, q.account, q.purpose, 'openai', 'm', 10, 'answered', now() from millrace.ai_question q;
        select millrace.blob_put(sha256('x'), 'x'),
               millrace.media_process('blob:' || encode(sha256('x'), 'hex'), '{"strip": true}', tenant => 'person:qxzper', actor => 'qxzper'),
               millrace.template_render('welcome', '{"app_name": "Shop", "user_name": "Qxzname"}', tenant => 'person:qxzper', options => '{"to": "pdf"}', actor => 'qxzper');
        insert into millrace.media (id, what, owner, caller, status, reason, sentence, created_at, ended_at)
        values (gen_random_uuid(), 'template', 'qxzper', 'app', 'failed', 'malformed', 'qxzsentence', now(), now());
        insert into millrace.gateway_answer (person, key, request, at, status, answer) values ('qxzper', 'k', 'x', now(), 200, '{"x": "qxzanswer"}');
        insert into millrace.sync_device (person, device, token, claims, made_at, expires_at) values ('qxzper', 'qxzphone', 'h', '{"sub": "qxzper"}', now(), now() + interval '1 day');
        update millrace.notice set status = 'attempting', holder = 1 where channel = 'mail' and status = 'pending';
        select millrace.notice_mail(1, (select jsonb_agg(jsonb_build_object('id', id, 'subject', data ->> 'title', 'body', 'Qxzname needs help')) from millrace.notice where status = 'attempting'))
        """
}
