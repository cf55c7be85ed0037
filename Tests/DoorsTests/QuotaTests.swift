import Foundation
import Postgres
import TestSupport
import Testing

/// Who has used up what it may have hears how much that is, how much is used, and when there is room again.
@Suite struct QuotaTests {
    struct Refusal: Sendable, CustomTestStringConvertible {
        /// The function that refuses.
        let function: String
        /// Uses up all but nothing.
        let given: String
        let call: String
        let field: String
        let limit: Int
        let used: Int
        /// What the reset date is, in SQL.
        let reset: String
        var testDescription: String { "\(function): \(call)" }
    }

    private static let tomorrow = "(millrace.today_utc() + 1)::timestamp at time zone 'UTC'"

    private static func day(_ what: String, _ who: String, _ count: Int) -> String {
        "insert into millrace.day_count values ('\(what)', \(who), millrace.today_utc(), \(count))"
    }

    private static let eve = "millrace.keyed_hash('person', 'eve')"

    static let refusals = [
        Refusal(
            function: "device_add", given: day("device", eve, 20),
            call: "device_add('eve', 'fcm', 'token-0001')", field: "token", limit: 20, used: 20, reset: tomorrow),
        Refusal(
            function: "preference_count", given: day("preference", eve, 5),
            call: #"notice_preferences('eve', 'UTC', '0:00', '0:00', '{"mail": "m@example.com"}', null)"#,
            field: "channels", limit: 5, used: 5, reset: tomorrow),
        Refusal(
            function: "preference_count",
            given: day("preference_address", "millrace.consent_hash('mail', 'm@example.com', 'eve')", 3),
            call: #"notice_preferences('eve', 'UTC', '0:00', '0:00', '{"mail": "m@example.com"}', null)"#,
            field: "channels", limit: 3, used: 3, reset: tomorrow),
        Refusal(
            function: "own_notice_schedule", given: day("own_notice", eve, 50),
            call: "own_notice_schedule('eve', 'w', 'k', millrace.now() + interval '1 hour')",
            field: "key", limit: 50, used: 50, reset: tomorrow),
        Refusal(
            function: "own_notice_schedule",
            given: """
                insert into millrace.notice (id, person, kind, key, data, alarm, status, due_at, created_at)
                select gen_random_uuid(), 'eve', 'own.w', 'own:' || n, '{}', false, 'pending', '2200-01-01 00:00Z'::timestamptz + n * interval '1 day', millrace.now()
                  from generate_series(1, 100) n
                """,
            call: "own_notice_schedule('eve', 'w', 'k', millrace.now() + interval '1 hour')",
            field: "key", limit: 100, used: 100, reset: "'2200-01-02 00:00Z'::timestamptz"),
        Refusal(
            function: "ai_quota_refuse",
            given: """
                insert into millrace.ai_provider values ('openai', 1, 'openai', 'm', now()); insert into millrace.ai_switched values ('tenant', 'person:eve', true, now(), 'x');
                insert into millrace.quota (tenant, name, allowed, period, since, used, warned) values ('family:f', 'ai_tokens', 100, 'month', millrace.quota_since('month'), 100, 100)
                """,
            call: #"ai_ask('sentiment', '{"text": "x"}', 'person:eve')"#, field: "tenant", limit: 100, used: 100,
            reset: "millrace.quota_reset('month', millrace.quota_since('month'))"),
        Refusal(
            function: "check_in_drill", given: day("drill", eve, 10), call: "check_in_drill('eve')",
            field: "person", limit: 10, used: 10, reset: tomorrow),
        Refusal(
            function: "check_in_contact",
            given: """
                insert into millrace.watch_contact (person, contact, step, wait, created_at)
                select 'eve', 'c' || n, 1, '5 min', millrace.now() from generate_series(1, 50) n
                """,
            call: #"check_in_contact('eve', 'one more', 1, '{"push": true}')"#,
            field: "contact", limit: 50, used: 50, reset: "null"),
        Refusal(
            function: "invitation_make",
            given: """
                insert into millrace.family_invitation (family, person, role, invited_by, invited_at, expires_at)
                select 'f', 'p' || n, 'teen', 'eve', millrace.now(), '2200-01-01 00:00Z'::timestamptz + n * interval '1 day' from generate_series(1, 50) n
                """,
            call: "family_invite('f', 'one more', 'teen')",
            field: "family", limit: 50, used: 50, reset: "'2200-01-02 00:00Z'::timestamptz"),
        Refusal(
            function: "sync_device_add",
            given: """
                insert into millrace.sync_device (person, device, token, claims, made_at, expires_at)
                select 'eve', 'd' || n, sha256(convert_to(n::text, 'UTF8')), '{}', millrace.now(), '2200-01-01 00:00Z'::timestamptz + n * interval '1 day' from generate_series(1, 20) n
                """,
            call: "sync_device_add('one-more')",
            field: "device", limit: 20, used: 20, reset: "'2200-01-02 00:00Z'::timestamptz"),
        Refusal(
            function: "document_register",
            given: "select millrace.quota_set('person:eve', 'documents', 3); update millrace.quota set used = 3",
            call: "document_register('https://a.example/x', tenant => 'person:eve')",
            field: "tenant", limit: 3, used: 3,
            reset: "(select reset_date from millrace.quotas where tenant = 'person:eve')"),
        Refusal(
            function: "lesson_put",
            given: "select millrace.quota_set('person:eve', 'lessons', 3); update millrace.quota set used = 3",
            call: "lesson_put('l', tenant => 'person:eve')",
            field: "tenant", limit: 3, used: 3,
            reset: "(select reset_date from millrace.quotas where tenant = 'person:eve')"),
        Refusal(
            function: "media_keep",
            given: """
                select millrace.blob_put(sha256('file'), 'file'), millrace.blob_allow(sha256('file'), current_user, 'person:eve'), millrace.quota_set('person:eve', 'bytes', 3)
                """,
            call: "media_keep('blob:' || encode(sha256('file'), 'hex'), 'audio/mp4', tenant => 'person:eve')",
            field: "tenant", limit: 3, used: 0,
            reset: "(select reset_date from millrace.quotas where tenant = 'person:eve')"),
        Refusal(
            function: "media_process",
            given: """
                select millrace.blob_put(sha256('x'), 'x'), millrace.blob_allow(sha256('x'), current_user, 'person:eve'), millrace.quota_set('person:eve', 'cpu_seconds', 3);
                update millrace.quota set used = 3
                """,
            call: "media_process('blob:' || encode(sha256('x'), 'hex'), '{\"strip\": true}', tenant => 'person:eve')",
            field: "tenant", limit: 3, used: 3,
            reset: "(select reset_date from millrace.quotas where tenant = 'person:eve')"),
        Refusal(
            function: "chat_count", given: "\(thread); \(day("chat", eve, 5000))",
            call: "chat_send(current_setting('test.thread')::uuid, 'x')", field: "actor", limit: 5000, used: 5000,
            reset: tomorrow),
        Refusal(
            function: "chat_count",
            given:
                "\(thread); select millrace.quota_set('person:eve', 'messages', 3); update millrace.quota set used = 3",
            call: "chat_send(current_setting('test.thread')::uuid, 'x')", field: "tenant", limit: 3, used: 3,
            reset: "(select reset_date from millrace.quotas where tenant = 'person:eve')"),
        Refusal(
            function: "chat_thread_create", given: day("chat_thread", eve, 50), call: "chat_thread_create()",
            field: "members", limit: 50, used: 50, reset: tomorrow),
        Refusal(
            function: "chat_two",
            given: """
                select millrace.check_in_contact('eve', 'zoe', 1, '{"push": true}', actor => 'eve');
                select millrace.check_in_accept('eve', true, 'zoe'); \(day("chat_thread", eve, 50))
                """,
            call: "chat_thread_create('{zoe}')", field: "members", limit: 50, used: 50, reset: tomorrow),
        Refusal(
            function: "chat_upload", given: day("chat_upload", eve, 500), call: "chat_upload('image/png', 5)",
            field: "size", limit: 500, used: 500, reset: tomorrow),
    ]

    private static let thread =
        "select set_config('test.thread', millrace.chat_thread_create(actor => 'eve')::text, true)"

    @Test func `each refusal for a quota's sake says how much is allowed and used, and when there is room again`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            // In the morning of a day, which must not end meanwhile.
            try await connection.run(
                """
                select millrace.test_clock_advance(date_trunc('day', millrace.now(), 'UTC') + interval '30 hours' - millrace.now());
                select millrace.family_create('f', 'UTC'), millrace.family_join('f', 'eve', 'parent')
                """)
            for one in Self.refusals {
                try await connection.run("begin; \(one.given)")
                let reset = try await connection.value("to_json((\(one.reset))::timestamptz)::text") ?? "null"
                try await connection.run(#"select set_config('request.jwt.claims', '{"sub": "eve"}', true)"#)
                let refusal = try await connection.refusal(of: "select millrace.\(one.call)")
                try await connection.run("rollback")
                #expect(refusal?.sqlState == "53400", "\(one): \(refusal?.message ?? "it went through")")
                let detail = try #require(refusal?.detail)
                let said = try #require(
                    try JSONSerialization.jsonObject(with: Data(detail.utf8)) as? [String: Any], "\(one): \(detail)")
                #expect(said["error"] as? String == "quota" && said["field"] as? String == one.field, "\(detail)")
                #expect(said["limit"] as? Int == one.limit && said["used"] as? Int == one.used, "\(one): \(detail)")
                #expect((said["reset_date"] as? String).map { "\"\($0)\"" } ?? "null" == reset, "\(one): \(detail)")
                #expect(said.keys.contains("reset_date") && refusal?.hint?.isEmpty == false, "\(one): \(detail)")
            }
        }
    }

    /// Functions that refuse for a quota's sake otherwise than by `refuse_quota`, which demands the numbers.
    private static let others = """
        select p.proname from pg_proc p
         where p.pronamespace = 'millrace'::regnamespace and p.prokind = 'f' and p.proname <> 'refuse_quota'
           and (replace(p.prosrc, 'return ''quota''', '') ~ '''quota'''
                or regexp_replace(p.prosrc, E'sqlstate ''53400''|''53400'', ''too_large''', '', 'g') ~ '53400')
        """

    @Test func `no function refuses for a quota's sake without these numbers, and each that does has its test`()
        async throws
    {
        try await withConnection { connection in
            #expect(try await connection.column(Self.others).isEmpty)
            // What the search would find.
            for body in [
                "perform millrace.refuse('enough', 'x', null, '53400', 'quota')",
                "perform millrace.refuse(format('%s; %s', 1, 2), 'x', class => 'quota')",
                "raise exception 'enough' using errcode = '53400'",
                "raise exception 'enough' using detail = json_build_object('error', 'quota')::text",
            ] {
                try await connection.run(
                    """
                    create or replace function millrace.made_otherwise() returns void language plpgsql as
                        $made$ begin \(body); end $made$
                    """)
                #expect(try await connection.column(Self.others) == ["made_otherwise"], "\(body)")
            }
            try await connection.run("drop function millrace.made_otherwise()")
            let refusing = try await connection.column(
                """
                select p.proname from pg_proc p
                 where p.pronamespace = 'millrace'::regnamespace and p.proname <> 'day_must_take'
                   and p.prosrc ~ E'millrace\\\\.(refuse_quota|day_must_take)\\\\('
                """)
            #expect(Set(refusing) == Set(Self.refusals.map(\.function)))
        }
    }
}
