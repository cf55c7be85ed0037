import Postgres
import TestSupport
import Testing

/// What operators do is written down, once for each action, and nobody changes it.
@Suite(.enabled(if: Template.hasRooms)) struct AuditTests {
    /// A door that acts for an operator; what the owner prepares, `{}` for its answer; and the operator's call.
    private struct Acting {
        let door: String
        var made = "1"
        var then = ""
        let call: String
    }

    private static func job(_ door: String, _ call: String, made: String = "millrace.enqueue('test')") -> Acting {
        Acting(door: door, made: made, call: call)
    }

    private static let later = "millrace.enqueue('test', run_at => millrace.now() + interval '1 h')"
    private static let mail = "millrace.mail_send(array['a@b.example'], 's', 't')"
    private static let sealed = #"{"$millrace": "sealed", "v": 1, "key": "k", "data": "AAAA"}"#

    /// In this order, in one database.
    private static let acting = [
        job("cancel", "millrace.cancel({})"), job("retry", "millrace.retry({})", made: later),
        job("retry_fresh", "millrace.retry_fresh({})", made: later),
        Acting(
            door: "retry_with", made: "millrace.enqueue('test', '{\"n\": 0, \"password\": \"a@b\"}')",
            then: "select millrace.cancel_now({})",
            call: #"millrace.retry_with({}, '{"n": 1, "password": "[redacted]"}')"#),
        Acting(
            door: "signal_waiting", made: "millrace.enqueue('waits')",
            then: """
                with waiting as (delete from millrace.ready r where r.job = {} returning r.*), timed as (
                    insert into millrace.timer (job, due, queue, kind, lane, attempt, crashes)
                    select w.job, now() + interval '1 day', w.queue, w.kind, w.lane, w.attempt, w.crashes from waiting w returning job, due)
                insert into millrace.wait (job, step, what, name, key, since, due, place, attempt, crashes)
                select t.job, 'ask', 2, 'paid', '', now(), t.due, t.due, 0, 0 from timed t
                """,
            call: #"millrace.signal_waiting({}, 'paid', '"hidden"')"#),
        job("fork", "millrace.fork({}, live => true)"),
        job("step_set", "millrace.step_set({}, 'a', '1', adds => true)"),
        Acting(
            door: "step_forget", made: later,
            then:
                "insert into millrace.step (job, name, value, session, number, attempt, at) values ({}, 'a', '1', 0, 0, 0, now())",
            call: "millrace.step_forget({}, 'a')"),
        job("reschedule", "millrace.reschedule({}, millrace.now() + interval '1 h')"),
        job("job_priority", "millrace.job_priority({}, 0)"), job("job_delete", "millrace.job_delete({})"),
        job("jobs_do", "(select count(*) from millrace.jobs_do('cancel', array[{}, {}]))"),
        job("flow_cancel", "millrace.flow_cancel({})"),
        Acting(
            door: "flow_retry", made: "millrace.enqueue('test')", then: "select millrace.cancel_now({})",
            call: "millrace.flow_retry({})"),
        Acting(door: "pause", made: "millrace.queue_id('q')", call: "millrace.pause('q')"),
        Acting(door: "resume", call: "millrace.resume('q')"),
        Acting(door: "feed_restored", call: "millrace.feed_restored()"),
        Acting(door: "limit_set", call: #"millrace.limit_set('queue', 'q', '{"concurrency": 3}')"#),
        Acting(door: "retention_set", call: "millrace.retention_set('q', 'short')"),
        Acting(door: "queue_remove", made: "millrace.queue_id('empty')", call: "millrace.queue_remove('empty')"),
        Acting(
            door: "reseal", made: "millrace.enqueue('test', '\(sealed)')",
            call:
                "millrace.reseal(array[{}]::bigint[], array['\(sealed)'::jsonb], array['\(sealed.replacing("AAAA", with: "BBBB"))'::jsonb])"
        ),
        Acting(door: "schedule_set", call: "millrace.schedule_set('s', 'every 1h', 'test')"),
        Acting(door: "schedule_save", call: "millrace.schedule_save('made', 'every 1h', 'test', '[1]')"),
        Acting(door: "schedule_pause", call: "millrace.schedule_pause('s')"),
        Acting(door: "schedule_resume", call: "millrace.schedule_resume('s')"),
        Acting(door: "schedule_run", call: "millrace.schedule_run('s')"),
        Acting(door: "schedule_remove", call: "millrace.schedule_remove('s')"),
        Acting(
            door: "console_search_save", call: #"millrace.console_search_save('mine', '{"state": "dead"}')"#),
        Acting(door: "console_search_remove", call: "millrace.console_search_remove('mine')"),
        Acting(door: "provider_force", call: "millrace.provider_force('resend', 'open', 'why')"),
        Acting(door: "flag_set", call: "millrace.flag_set('f', 10)"),
        Acting(door: "chat_rules_set", call: #"millrace.chat_rules_set('{"day": 99}')"#),
        Acting(
            door: "chat_remove", made: "gen_random_uuid()",
            then: """
                select millrace.family_create('chatty', 'UTC'), millrace.family_join('chatty', 'ada', 'parent'), millrace.family_join('chatty', 'ben', 'teen');
                select millrace.chat_send(millrace.chat_thread_create(family => 'chatty', actor => 'ada'), 'hello', id => '{}', actor => 'ada')
                """,
            call: "millrace.chat_remove('{}')"),
        Acting(door: "subscription_plan_set", call: #"millrace.subscription_plan_set('pro', '{"pages": 7}')"#),
        Acting(
            door: "subscription_plan_remove", then: "select millrace.subscription_plan_set('old')",
            call: "millrace.subscription_plan_remove('old')"),
        Acting(door: "subscription_set", call: "millrace.subscription_set('pro', person => 'ada')"),
        Acting(door: "subscription_link", call: "millrace.subscription_link('stripe', 'sub_1', 'ada')"),
        Acting(door: "ai_switch", call: "millrace.ai_switch('tenant', 't', true)"),
        Acting(
            door: "ai_purpose_put",
            call:
                #"millrace.ai_purpose_put('menu', 'You cook.', 'Cook {{n}}', '{"n": {"type": "text"}}', '{"type": "object", "properties": {"a": {"type": "string"}}}', limits => '{"client_tokens": 0}')"#
        ),
        Acting(
            door: "template_publish",
            call: #"millrace.template_publish('bill', 'A bill', null, 'Pay {{n}}', '{"n": {"type": "text"}}')"#),
        Acting(
            door: "template_use",
            made: #"millrace.template_publish('bill', 'A new bill', null, 'Pay {{n}}', '{"n": {"type": "text"}}')"#,
            call: "millrace.template_use('bill', 1)"),
        Acting(
            door: "mail_reschedule", made: mail, call: "millrace.mail_reschedule('{}', millrace.now() + interval '1 h')"
        ),
        Acting(door: "mail_cancel", made: mail, call: "millrace.mail_cancel('{}')"),
        Acting(
            door: "mail_resolve", made: mail, then: "update millrace.mail set status = 'parked' where id = '{}'",
            call: "millrace.mail_resolve('{}', 'refused')"),
        Acting(door: "mail_content_shown", made: mail, call: "length(millrace.mail_content_shown('{}')::text)"),
        Acting(door: "mails_found", call: "count(*) from millrace.mails_found('a@b.example')"),
        Acting(door: "mail_suppress", call: "millrace.mail_suppress('a@b.example', 'asked')"),
        Acting(door: "mail_unsuppress", call: "millrace.mail_unsuppress('a@b.example', '*')"),
        Acting(door: "mail_erase", call: "millrace.mail_erase('a@b.example')"),
        Acting(door: "mail_events_set", call: "millrace.mail_events_set(true)"),
        Acting(door: "app_name_set", call: "millrace.app_name_set('Shop')"),
        Acting(
            door: "webhook_add",
            call:
                "(select id from millrace.webhook_add('https://h.example/x?key=hidden', array['*'], handshake => false))"
        ),
        Acting(
            door: "webhook_rotate", made: "(select id from millrace.webhook)", call: "millrace.webhook_rotate('{}')"),
        Acting(
            door: "webhook_redeliver", made: "millrace.event_publish('com.example.x', '/t', '1')",
            call: "millrace.webhook_redeliver('{}')"),
        Acting(
            door: "webhook_enable", made: "(select id from millrace.webhook)",
            then: "select millrace.webhook_disable('{}', 'gone')", call: "millrace.webhook_enable('{}')"),
        Acting(
            door: "webhook_remove", made: "(select id from millrace.webhook)", call: "millrace.webhook_remove('{}')"),
        Acting(door: "grant_backend", call: "millrace.grant_backend('ROLE')"),
        Acting(door: "trust_claims", call: "millrace.trust_claims('ROLE')"),
        Acting(door: "distrust_claims", call: "millrace.distrust_claims('ROLE')"),
        Acting(door: "revoke_backend", call: "millrace.revoke_backend('ROLE')"),
        Acting(door: "grant_enqueue", call: "millrace.grant_enqueue('ROLE', 'x')"),
        Acting(door: "revoke_enqueue", call: "millrace.revoke_enqueue('ROLE', 'x')"),
        Acting(door: "grant_publish", call: "millrace.grant_publish('ROLE', 'x')"),
        Acting(door: "revoke_publish", call: "millrace.revoke_publish('ROLE', 'x')"),
        Acting(door: "quota_set", call: "millrace.quota_set('t', 'pages', 5)"),
        Acting(
            door: "approval_answer", made: "millrace.approval_ask(1, 's', '{}', null, 'x', now())",
            call: "millrace.approval_answer('{}', true)"),
        Acting(
            door: "approval_link", made: "millrace.approval_ask(millrace.enqueue('test'), 's', '{}', null, 'x', now())",
            call: "millrace.approval_link('{}', 'a@b')"),
        Acting(door: "document_default_set", call: #"millrace.document_default_set('t', '{"mode": "redo"}')"#),
        Acting(door: "consent_block", call: "millrace.consent_block('mail', 'a@b.example')"),
        Acting(door: "consent_unblock", call: "millrace.consent_unblock('mail', 'a@b.example')"),
        Acting(door: "check_in_rules_set", call: #"millrace.check_in_rules_set('{"asker_day": 11}')"#),
        Acting(
            door: "check_in_resolve", made: "millrace.check_in_help('alice', 'help', 'alice') ->> 'alarm'",
            call: "millrace.check_in_resolve('{}')"),
        Acting(door: "quest_rules_set", call: #"millrace.quest_rules_set('{"hobby": 77}')"#),
        Acting(
            door: "quest_repair", made: "millrace.family_create('fam', 'UTC')",
            then: """
                select millrace.family_join('fam', 'p', 'parent'), millrace.quest_today('fam', 'p');
                update millrace.quest set state = 'done'
                """, call: "millrace.quest_repair('fam')"),
        job("operation_start", #"millrace.operation_start('cancel', '{"kind": "test"}')"#),
        Acting(door: "operation_pause", call: "millrace.operation_pause(1)"),
        Acting(door: "operation_resume", call: "millrace.operation_resume(1)"),
        Acting(door: "operation_stop", call: "millrace.operation_stop(1)"),
        Acting(door: "operation_undo", call: "millrace.operation_undo(1)"),
        Acting(door: "audit_keep", call: "millrace.audit_keep(500)"),
        Acting(
            door: "versions_promote",
            then: """
                select millrace.session_open(n, 'w', 'h', 1, '0', null, array[millrace.kind_id('test')], 10, false, null, 'b' || n)
                  from generate_series(901, 902) n
                """,
            call: "millrace.versions_promote('b901')"),
        Acting(
            door: "versions_rollback", then: "select millrace.versions_promote('b902')",
            call: "(select bad from millrace.versions_rollback())"),
        Acting(door: "versions_drain", call: "millrace.versions_drain('b901')"),
        Acting(door: "versions_release", call: "millrace.versions_release('b901')"),
        Acting(
            door: "person_export_link", then: "select millrace.link_key_set(sha256('k'), 'https://a.example')",
            call: "length(millrace.person_export_link('p'))"),
        Acting(door: "person_export", call: "count(*) from millrace.person_export('p')"),
    ]

    @Test func `every acting door writes one row: who, what, and nothing when there was nothing to do`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            let admin = try await database.connect(as: roles.admin)
            for one in Self.acting {
                let made = try await owner.value("select \(one.made)") ?? ""
                func filled(_ text: String) -> String {
                    text.replacing("{}", with: made).replacing("ROLE", with: roles.client)
                }
                if !one.then.isEmpty { try await owner.run(filled(one.then)) }
                let last = try await owner.int("select coalesce(max(id), 0) from millrace.audit")
                _ = try await admin.value("select \(filled(one.call))")
                let rows = try await owner.records(
                    "select who, said_by, detail::text ~ 'hidden|a@b' from millrace.audit where id > \(last)")
                #expect(
                    rows == ["(\(roles.admin),,f)"] || rows == ["(\(roles.admin),,)"],
                    "\(one.door): \(rows)")
            }
            // Again: already paused, already set, gone.
            let last = try await owner.int("select max(id) from millrace.audit")
            try await admin.run(
                """
                select millrace.pause('q'); select millrace.pause('q');
                select millrace.flag_set('f', 10), millrace.retention_set('q', 'short'), millrace.audit_keep(500),
                    millrace.grant_enqueue('\(roles.client)', 'x'), millrace.grant_enqueue('\(roles.client)', 'x')
                """)
            #expect(
                try await owner.column("select action from millrace.audit where id > \(last) order by id") == [
                    "queue.pause", "role.grant_enqueue",
                ])
        }
    }

    @Test func `the list of acting doors is complete`() async throws {
        try await withConnection { connection in
            let audited = try await Set(connection.column("select name from millrace.door where audited"))
            #expect(audited == Set(Self.acting.map(\.door)), "each has a call, and each call a door")
            let writing = try await connection.column(
                """
                select proname from pg_proc where pronamespace = 'millrace'::regnamespace
                   and prosrc like '%perform millrace.audited(%'
                """)
            #expect(audited == Set(writing), "what the lines say is what the functions do")
        }
    }

    @Test func `what clients and workers do is not written down`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let last = try await owner.int("select max(id) from millrace.audit")
            let client = try await database.connect(as: roles.client)
            let worker = try await database.connect(as: roles.worker)
            let id = try await client.enqueue()
            try await client.run("select millrace.cancel(\(id))")
            try await worker.run(
                "select millrace.cancel(millrace.enqueue('test')), millrace.retry(\(id)), millrace.schedule_set('w', 'every 1h', 'test')"
            )
            #expect(try await owner.int("select max(id) from millrace.audit") == last)
        }
    }

    @Test func `who it was, as the program said, stands beside the role, and takes no control signs`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.queue_id('q');
                set application_name = 'millrace ada@desk'; select millrace.pause('q');
                set millrace.actor = E'bob\\nroot'; select millrace.resume('q');
                set application_name = 'psql'; set millrace.actor = ''; select millrace.pause('q')
                """)
            #expect(
                try await connection.column("select coalesce(said_by, '-') from millrace.audit order by id") == [
                    "ada@desk", "bobroot", "-",
                ])
        }
    }

    /// 1. Two operators have one role. 2. One says that she is the other. 3. The audit has whose login it was.
    @Test func `the login that Postgres has verified stands beside what a program says`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            let office = try await TestCluster.office()
            let (ada, eve) = (TestCluster.name("ada"), TestCluster.name("eve"))
            for login in [ada, eve] {
                try await office.run("create role \(login) login noinherit in role \(roles.admin)")
            }
            try await owner.run("select millrace.queue_id('q')")
            for login in [ada, eve] {
                let question =
                    try await owner.value("millrace.approval_ask(1, '\(login)', '{}', null, 'x', now())") ?? ""
                let connection = try await database.connect(as: login)
                try await connection.run(
                    """
                    set role \(roles.admin); set millrace.actor = '\(ada)'; select millrace.pause('q'), millrace.resume('q');
                    select millrace.operation_undo(millrace.operation_start('cancel', '{"kind": "of-\(login)"}'));
                    select millrace.approval_answer('\(question)', true, by => '\(ada)')
                    """)
                await connection.close()
            }
            for action in [
                "queue.pause", "queue.resume", "operation.start", "operation.undo", "approval.answer",
            ] {
                #expect(
                    try await owner.records(
                        "select login, who, said_by from millrace.audit_list(page => 500) where action = '\(action)'")
                        == [eve, ada].map { "(\($0),\(roles.admin),\(ada))" }, "\(action)")
                #expect(
                    try await owner.column(
                        "select login from millrace.audit_list(page => 500, the_who => '\(eve)', the_action => '\(action)')"
                    ) == [eve], "\(action)")
            }
            #expect(
                try await owner.column("select login || ' ' || undo_login from millrace.operation_list()")
                    == ["\(eve) \(eve)", "\(ada) \(ada)"])
            for login in [ada, eve] { try await office.run("drop role \(login)") }
            await office.close()
        }
    }

    @Test func `nobody changes or deletes a row, not even the owner, before its time has passed`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.queue_id('q'), millrace.pause('q')")
            for attempt in [
                "update millrace.audit set who = 'nobody'", "delete from millrace.audit", "truncate millrace.audit",
                "insert into millrace.audit (at, who, action) values (now() - interval '500 days', 'x', 'y'); update millrace.audit set who = 'z' where who = 'x'",
            ] {
                #expect(try await connection.refusal(of: attempt)?.sqlState == "55000", "\(attempt)")
            }
            try await connection.run(
                """
                insert into millrace.audit (at, who, action)
                select now() - make_interval(days => d), 'x', 'y' from unnest(array[399, 401, 402]) d
                """)
            #expect(try await connection.int("select millrace.audit_expire()") == 2)
            #expect(try await connection.int("select millrace.audit_keep(30)") == 30)
            #expect(try await connection.int("select millrace.audit_expire()") == 1)
            #expect(
                try await connection.column("select action from millrace.audit order by id") == [
                    "queue.pause", "audit.keep",
                ])
            #expect(try await connection.refusal(of: "select millrace.audit_keep(29)")?.sqlState == "22023")
        }
    }

    @Test func `an action that is rolled back leaves no row`() async throws {
        try await withConnection { connection in
            try await connection.run(
                "begin; select millrace.queue_id('q'), millrace.pause('q'); rollback")
            #expect(try await connection.int("select count(*) from millrace.audit") == 0)
        }
    }

    @Test func `the list is filtered by time, action, object and who, page by page`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                insert into millrace.audit (at, who, said_by, action, object)
                select now() - make_interval(hours => 10 - n), 'role' || n % 2, case when n > 5 then 'ada@desk' end, 'a' || n % 3, 'o' || n
                  from generate_series(1, 9) n
                """)
            func objects(_ filter: String) async throws -> String {
                try await connection.column("select object from millrace.audit_list(\(filter))").joined(separator: " ")
            }
            #expect(try await objects("") == "o9 o8 o7 o6 o5 o4 o3 o2 o1")
            #expect(try await objects("page => 2") == "o9 o8")
            #expect(try await objects("after => 8, page => 2") == "o7 o6")
            #expect(try await objects("since => now() - interval '150 min'") == "o9 o8")
            #expect(try await objects("until => now() - interval '450 min'") == "o2 o1")
            #expect(try await objects("the_action => 'a1'") == "o7 o4 o1")
            #expect(try await objects("the_who => 'role1', the_action => 'a1'") == "o7 o1")
            #expect(try await objects("the_who => 'ada@desk'") == "o9 o8 o7 o6")
            #expect(try await objects("the_who => 'ada@desk', the_object => 'o7'") == "o7")
            #expect(try await objects("the_who => 'nobody'") == "")
            #expect(try await connection.refusal(of: "select millrace.audit_list(page => 501)")?.sqlState == "22023")
        }
    }
}
