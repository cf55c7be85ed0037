import MillraceQueues
import Postgres
import TestSupport
import Testing

@Suite struct RoleTests {
    struct Roles {
        let client = "role_tests_client"
        let neighbour = "role_tests_neighbour"
        let worker = "role_tests_worker"
        let admin = "role_tests_admin"
    }

    private static let roles = Roles()
    private static let template = Template.movableClock.adding("roles") { database in
        let owner = try await database.connect()
        for role in [roles.client, roles.neighbour, roles.worker, roles.admin] {
            try await owner.run("create role \(role) login")
        }
        try await owner.run("grant \(roles.client) to \(roles.neighbour)")
        _ = try await migrator.migrate(on: owner)
        await owner.close()
    }

    private static let migrator = Migrator.asTested(
        roles: [("client", roles.client), ("worker", roles.worker), ("admin", roles.admin)], testClock: true)

    /// The roles are those of all tests, so a test gives them nothing and takes nothing from them but in its database.
    static func withRoles(_ body: (TestDatabase, Connection, Roles) async throws -> Void) async throws {
        try await withDatabase(template) { database in
            let owner = try await database.connect()
            try await body(database, owner, roles)
            await owner.close()
        }
    }

    @Test func `a client enqueues where it may, sees and cancels its own, and nobody else's`() async throws {
        try await Self.withRoles { database, owner, roles in
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let denied = try await client.refusal(of: "select millrace.enqueue('mail')")
            #expect(denied?.sqlState == "42501" && denied?.hint?.contains("grant_enqueue") == true)
            try await owner.run("select millrace.grant_enqueue('\(roles.client)', 'mail', 'post')")
            let id = try await client.enqueue("'mail', queue => 'post'")
            for call in ["'mail'", "'other', queue => 'post'"] {
                #expect(try await client.refusal(of: "select millrace.enqueue(\(call))")?.sqlState == "42501")
            }
            #expect(
                try await client.refusal(of: #"select millrace.enqueue_many('[{"kind": "other"}]')"#)?.sqlState
                    == "42501")
            #expect(try await client.state(id) == "ready")
            #expect(try await client.column("select id from millrace.own_jobs()") == ["\(id)"])
            #expect(try await neighbour.state(id) == nil)
            #expect(try await neighbour.column("select id from millrace.own_jobs()").isEmpty)
            #expect(try await neighbour.refusal(of: "select millrace.cancel(\(id))")?.sqlState == "P0002")
            #expect(try await neighbour.refusal(of: "select millrace.flow_cancel(\(id))")?.sqlState == "P0002")
            #expect(try await neighbour.refusal(of: "select millrace.flow_tree(\(id))")?.sqlState == "P0002")
            #expect(try await client.bool("select millrace.cancel(\(id))"))
            #expect(try await owner.state(id) == "cancelled")
        }
    }

    /// Before `enqueue` had a function behind it, one grant was enough.
    @Test func `who was given enqueue by name enqueues after a migration too`() async throws {
        try await Self.withRoles { database, owner, roles in
            let earlier = TestCluster.name("client")
            try await owner.run("create role \(earlier) login")
            let enqueue =
                "millrace.enqueue(text, jsonb, text, int, timestamptz, text, text, text, text, int, text[], jsonb, jsonb)"
            try await owner.run(
                "grant usage on schema millrace to \(earlier); grant execute on function \(enqueue) to \(earlier)"
            )
            try await owner.run("select millrace.grant_enqueue('\(earlier)')")
            _ = try await Self.migrator.migrate(on: owner)
            let caller = try await database.connect(as: earlier)
            let id = try await caller.enqueue("'mail'")
            #expect(try await owner.state(id) == "ready")
            await caller.close()
            try await owner.run("drop owned by \(earlier); drop role \(earlier)")
        }
    }

    @Test func `a client replaces its own waiting job, and nobody else's`() async throws {
        try await Self.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let id = try await client.put("1")
            #expect(try await client.put("2") == id)
            #expect(try await neighbour.put("3") != id)
            #expect(try await owner.put("4") != id)
            #expect(try await owner.value("select args from millrace.job(\(id))") == "2")
        }
    }

    @Test func `with claims a client stays within its tenant`() async throws {
        try await Self.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            func claims(_ json: String) async throws {
                try await client.run("select set_config('request.jwt.claims', '\(json)', false)")
            }
            try await claims(#"{"tenant": "acme"}"#)
            let id = try await client.enqueue()
            #expect(try await owner.value("select tenant from millrace.job where id = \(id)") == "acme")
            #expect(
                try await client.refusal(of: "select millrace.enqueue('test', tenant => 'other')")?.sqlState == "42501")
            try await claims(#"{"sub": "someone"}"#)
            #expect(try await client.state(id) == nil)
            #expect(try await client.refusal(of: "select millrace.cancel(\(id))")?.sqlState == "P0002")
            #expect(try await client.column("select id from millrace.own_jobs()").isEmpty)
            try await claims(#"{"tenant": "acme", "sub": "someone"}"#)
            #expect(try await client.state(id) == "ready")
            #expect(try await client.bool("select millrace.cancel(\(id))"))
        }
    }

    /// Calls every function, and tries every table, view and sequence, including those that are added later.
    @Test func `a client can do nothing else`() async throws {
        try await Self.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            try await owner.run("set search_path = ''")  // so that the schema's own types are written in full
            let functions = try await owner.column(
                """
                select p.proname || '|' || format('select millrace.%I(%s)', p.proname,
                        (select string_agg('null::' || format_type(t, null), ', ' order by o) from unnest(p.proargtypes) with ordinality a(t, o)))
                  from pg_proc p where p.pronamespace = 'millrace'::regnamespace order by 1
                """)
            #expect(functions.count > 50)
            let doors = try await Set(
                owner.column("select name from millrace.door where 'client' = any (roles) and not is_view"))
            #expect(
                doors.contains("enqueue") && doors.contains("mail_send") == Template.hasRooms
                    && doors.count < functions.count / 4)
            for line in functions {
                let parts = line.split(separator: "|", maxSplits: 1)
                guard !doors.contains(String(parts[0])) else { continue }
                let error = try await client.refusal(of: String(parts[1]))
                #expect(error?.sqlState == "42501", "\(parts[1]): \(error?.message ?? "allowed")")
            }
            let relations = try await owner.column(
                "select relkind::text || relname::text from pg_class where relnamespace = 'millrace'::regnamespace and relkind in ('r', 'p', 'v', 'm', 'S')"
            )
            #expect(relations.count > 30)
            for relation in relations {
                let name = relation.dropFirst()
                let tries =
                    relation.first == "S"
                    ? ["select nextval('millrace.\(name)')", "select last_value from millrace.\(name)"]
                    : [
                        "select from millrace.\(name)", "insert into millrace.\(name) default values",
                        "delete from millrace.\(name)", "truncate millrace.\(name)",
                        "do $$ begin lock table millrace.\(name); end $$",
                    ]
                for attempt in tries {
                    let code = try await client.refusal(of: attempt)?.sqlState
                    #expect(["42501", "42809", "55000"].contains(code), "\(attempt): \(code ?? "allowed")")
                }
            }
            for attempt in [
                "create table millrace.mine (n int)",
                "create function millrace.mine() returns int language sql as 'select 1'",
                "alter table millrace.job add x int", "drop schema millrace cascade",
            ] {
                #expect(try await client.refusal(of: attempt)?.sqlState == "42501", "\(attempt)")
            }
        }
    }

    @Test(.enabled(if: Template.hasRooms)) func `a worker works through functions alone, an admin sees and steers`()
        async throws
    {
        try await Self.withRoles { database, owner, roles in
            let worker = try await database.connect(as: roles.worker)
            let id = try await worker.enqueue()
            let tables = try await owner.column(
                "select relname from pg_class where relnamespace = 'millrace'::regnamespace and relkind in ('r', 'p')")
            for table in tables {
                if table != "made" {
                    #expect(
                        try await worker.refusal(of: "select from millrace.\(table)")?.sqlState == "42501", "\(table)")
                }
                #expect(try await worker.refusal(of: "delete from millrace.\(table)")?.sqlState == "42501", "\(table)")
            }
            try await worker.run("select millrace.session_open(1, 'w', 'h', 1, '0', null, array[1], 10, false)")
            let taken = try await worker.column(
                "select id from millrace.claim(1, 8, array[1], array[1], array[17], array[0::bigint], array[9223372036854775807], array[9], 9, '{}', '{}')"
            )
            #expect(taken == ["\(id)"])
            #expect(
                try await worker.value(
                    "select millrace.finish(1, array[\(id)::bigint], array[9::bigint], array[1::smallint], array[1], array[1], array[1::smallint], array[0::smallint], array[1], '{}', array[9::bigint], array[1])"
                )
                    == "{9}")
            for call in [
                "select millrace.register_kinds(array['x'], array[null]::text[])", "select millrace.horizon()",
                "select millrace.lanes(array[1], null)", "select millrace.promote(null, 5)",
                "select millrace.lanes_above(array[1], array[1], array[17], array[0::bigint])",
                "select millrace.lanes_between(array[1], null, 0, 5)", "select millrace.is_due_between(null, now())",
                "select millrace.beat(1, 'working', 0, 0, 0)",
                "select millrace.watch(1)", "select millrace.rescue(5, 0)", "select millrace.leases_held(1)",
                "select millrace.leases_return(1, array[8::bigint])", "select millrace.cancels(1)",
                "select millrace.maintain()",
                "select millrace.flows_advance()", "select millrace.flows_check()", "select millrace.flow_ids(\(id))",
                "select millrace.flow_tree(\(id))", "select millrace.results_before(\(id))",
                "select millrace.gates_open()", "select millrace.slots_sweep()",
                "select millrace.slots_mend()", "select millrace.limit_list()",
                "select millrace.report('[]')", "select millrace.retry_fresh(\(id))", "select millrace.steps(\(id))",
                "select millrace.logs(\(id))",
                "select millrace.queue_list()", "select millrace.retentions()", "select millrace.schema_state()",
                "select millrace.depths()", "select millrace.room_lanes()", "select millrace.measures_fleet()",
                "select millrace.rates()",
                "select millrace.orphans()", "select * from millrace.workers", "select * from millrace.queues",
                "select millrace.session_close(1)", "select millrace.schedule_set('s', '@daily', 'test')",
                "select millrace.schedule_wait()", "select millrace.schedules_due()",
                "select * from millrace.schedules", "select * from millrace.providers",
                "select * from millrace.provider_events", "select millrace.provider_workers('mailer')",
                "select millrace.provider_flush(1, 'w', '[]', '{}', null)", "select millrace.provider_tidy()",
                "select millrace.flag_on('f', 'k')", "select millrace.flag_list()",
                "select * from millrace.templates", "select millrace.template_source('welcome', '{en}')",
                "select millrace.mail_take('{}', '{}', '{}', null, null, null)",
                "select millrace.mail_freeze('{}', '{}', '{}', '{}', '{}', '{}', '{}', 'a', 'b')",
                "select millrace.mail_batch_open('p', '{}', true, 1, 1, 0, 0, 0, 0)",
                "select millrace.mail_batch_again(1, null, 1, 1)",
                "select millrace.mail_batch_record('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
                "select millrace.mail_letters('{}')", "select millrace.mail_route_by('a', 'a', null)",
                "select millrace.mail_told('templateLoaded', null, 't', true, null)",
                "select millrace.mail_event('p', 'e', 'sent', null, null)", "select millrace.mail_silent(1, 5)",
                "select millrace.mail_asked('{}')", "select millrace.mail_forsaken()",
                "select millrace.mail_retire(86400)", "select millrace.mail_changes()", "select millrace.mail_state()",
                "select millrace.mail_list()", "select millrace.mail_story(gen_random_uuid())",
                "select millrace.mail_unsubscribe('x')", "select * from millrace.mail_messages",
                "select * from millrace.mail_attempts", "select * from millrace.mail_events",
                "select * from millrace.mail_analytics", "select millrace.mail_welcome('a@b.example', 'A')",
                "select millrace.family_create('f', 'UTC')", "select millrace.family_join('f', 'p', 'parent')",
                "select millrace.quest_complete('f', 'p', actor => 'p')", "select * from millrace.families",
                "select * from millrace.quests", "select millrace.points_award('p', 1, 'k', 'r')",
                "select * from millrace.quest_rollover()", "select * from millrace.quest_rollover_due()",
                "select millrace.quest_zones_check()", "select millrace.quest_state()",
                "select millrace.quest_rules_set('{}')", "select millrace.notice_send('p', 'k', key => 'n')",
                "select millrace.notice_move('p', 'n', now())", "select millrace.notice_cancel('p', 'n')",
                "select millrace.document_list()", "select millrace.document_story(gen_random_uuid())",
                "select millrace.document_progress(gen_random_uuid())", "select millrace.documents_changes()",
                "select millrace.document_output_of(gen_random_uuid(), 'pdf')", "select millrace.document_state()",
                "select millrace.document_take('1-1-1', gen_random_uuid(), 1)",
                "select millrace.document_stage('1-1-1', gen_random_uuid(), 1, 'inspect')",
                "select millrace.document_received('1-1-1', gen_random_uuid(), 1, 'x', 1)",
                "select millrace.document_inspected('1-1-1', gen_random_uuid(), 1, '{}', 'm', 1, false, false, '[]', 1)",
                "select millrace.document_waiting(gen_random_uuid())", "select millrace.document_cached(null, 'x')",
                "select millrace.document_pages_put('1-1-1', gen_random_uuid(), 1, '[]', 1, true)",
                "select millrace.document_spread('1-1-1', gen_random_uuid(), 1)",
                "select millrace.document_ended('1-1-1', gen_random_uuid(), 1, 'failed', 'internal', 's', '[]', 1)",
                "select millrace.document_contents(gen_random_uuid(), 1, 5, true)", "select millrace.documents_check()",
                "select millrace.document_codes(gen_random_uuid())",
                "select millrace.document_part('1-1-1', gen_random_uuid(), 1, 1, 1, 't')",
                "select * from millrace.documents", "select * from millrace.document_pages",
                "select * from millrace.quotas", "select millrace.document_search('word')",
                "select * from millrace.media_overview",
                "select millrace.device_add('p', 'fcm', 'token-0001')", "select millrace.device_list()",
                "select millrace.notice_preferences('p', 'UTC', '0:00', '0:00', '{}', null)",
                "select millrace.notice_take(true, 1, 1, 1)", "select millrace.notice_next(true)",
                "select millrace.notice_mail(1, '[]')", "select millrace.notice_record(1, '[]')",
                "select millrace.notice_state()", "select millrace.notice_list()", "select * from millrace.notices",
                "select millrace.notice_story(gen_random_uuid())", "select millrace.device_remove('token-0001')",
                "select millrace.provider_token_take('t', 1, 1)", "select millrace.provider_token_put('t', 1, '{}', 0)",
                "select millrace.link_key_set(sha256('k'), 'https://a.example')",
                "select millrace.document_upload('a.pdf', 'application/pdf', 1)", "select millrace.blob_sweep_turn()",
                "select millrace.webhook_fan_out()",
                "select millrace.webhook_claim(1, 1, 1, 1, '{}', 1, 'o')", "select millrace.webhook_wait()",
                "select millrace.webhook_record(1, gen_random_uuid(), '{}', 'delivered', '{}', 200, null, null)",
                "select millrace.webhook_consent(gen_random_uuid(), 'allowed', 'o', 1, null, null)",
                "select millrace.webhook_target(gen_random_uuid())", "select millrace.webhook_state()",
                "select millrace.webhook_secrets('k')", "select * from millrace.webhooks",
                "select * from millrace.webhook_deliveries",
                #"select millrace.check_in_contact('p', 'c', 1, '{"mail": "c@example.com"}', actor => 'p')"#,
                "select millrace.check_in_confirm('p', 'c')", "select millrace.check_in_arm('p', actor => 'p')",
                "select millrace.check_in('p', actor => 'p')", "select * from millrace.watch_step('w')",
                "select millrace.watch_wanted()",
                "select * from millrace.check_in_state()", "select millrace.check_in_drill('p', 'p')",
                "select millrace.check_in_resolve(id, 'r') from millrace.alarms",
                "select millrace.alarm_page(null, gen_random_uuid())", "select * from millrace.checkin_changes()",
                "select millrace.watch_contacts('p')", "select millrace.check_in_show('p', 'p')",
                "select * from millrace.check_ins", "select * from millrace.alarm_history",
                "select millrace.schedule_problem(1, 1, 'p')",
                "select millrace.schedule_advance(1, 1, null, array[clock_timestamp()], null, null, 0, clock_timestamp())",
            ] {
                let error = try await worker.refusal(of: call)
                #expect(error == nil, "\(call): \(error?.message ?? "")")
            }
            for verb in ["remove", "pause", "resume", "run", "fires"] {
                #expect(
                    try await worker.refusal(of: "select millrace.schedule_\(verb)('s')")?.sqlState == "42501",
                    "\(verb)")
            }
            for call in [
                "provider_force('mailer', 'open', 'why')", "flag_set('f', 1)", "template_use('welcome', 0)",
                "template_publish('welcome', 'S', null, 'T', '{}')", "template_history('welcome')",
                "mail_erase('a@b.example')", "mail_resolve(gen_random_uuid(), 'accepted')",
                "mail_unsuppress('a@b.example', '*')", "mail_audits()", "app_name_set('x')",
                "failure_groups()", "failure_group(1)", "failure_group_jobs(1)", "kind_list()", "job_shown(1)",
                "kind_fields_set('x', '{}')", "jobs_by_field('x', 'a', '1')", "redactions_set('{}')",
                "kind_redactions_set('x', '{}')", "quest_audit()", "quest_repair('f')", "quota_set('t', 'pages', 5)",
                "document_default_set('t', '{}')", "document_defaults()",
                "webhook_add('https://a.example/', '{*}')",
                "webhook_rotate(gen_random_uuid())", "webhook_remove(gen_random_uuid())",
                "webhook_enable(gen_random_uuid())", "webhook_redeliver(gen_random_uuid())",
            ] {
                #expect(try await worker.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            #expect(try await worker.refusal(of: "select millrace.job_delete(\(id))")?.sqlState == "42501")
            #expect(try await worker.refusal(of: "select millrace.sealed_page('k')")?.sqlState == "42501")
            let admin = try await database.connect(as: roles.admin)
            for call in [
                "select * from millrace.jobs", "select millrace.pause('default')", "select millrace.resume('default')",
                "select * from millrace.job_list('succeeded')", "select millrace.pins()", "select millrace.sizes()",
                "select millrace.dead_count()", "select millrace.dead_ids()", "select millrace.dead_summary()",
                "select millrace.jobs_find('dead')", "select * from millrace.failure_groups()",
                "select * from millrace.failure_group(1)", "select * from millrace.failure_group_jobs(1)",
                "select * from millrace.kind_list()", "select millrace.kind_fields_set('x', '{a.b}')",
                "select * from millrace.jobs_by_field('x', 'a.b', '1')", "select millrace.redactions()",
                "select millrace.redactions_set(null)", "select millrace.kind_redactions_set('x', '{a.*}')",
                "select millrace.redact('x', '{}')", "select millrace.redact_text('x=1')",
                "select * from millrace.job_shown(\(id))", "select * from millrace.jobs_shown('{}')",
                "select * from millrace.logs_shown(\(id))", "select * from millrace.steps_shown(\(id))",
                "select * from millrace.sample_take()",
                "select * from millrace.samples_queue(now() - interval '1 hour', now())",
                "select * from millrace.fleet_events(now() - interval '1 hour', now())",
                "select * from millrace.versions_seen()",
                "select millrace.job_errors('{}')", "select millrace.names_known('queue')",
                "select millrace.pause('spare')",
                "select millrace.queue_remove('spare')",
                "select millrace.retention_set('default', 'long', 'dead')", "select millrace.sealed_keys()",
                "select millrace.sealed_page('k')",
                "select millrace.reseal('{}', '{}', '{}')", "select millrace.job_delete(\(id))",
                "select millrace.grant_enqueue('x')",
                "select millrace.revoke_enqueue('x')",
                "select millrace.grant_publish('x', '*')", "select millrace.revoke_publish('x', '*')",
                "select millrace.event_publish('a.b', '/', '{}')", "select * from millrace.events_changes(0, 5)",
                "select * from millrace.events", "select millrace.event_list()",
                "select millrace.schedule_pause('s')", "select millrace.schedule_resume('s')",
                "select millrace.schedule_run('s')", "select millrace.schedule_fires('s')",
                "select * from millrace.schedules", "select millrace.schedule_remove('s')",
                "select millrace.provider_force('mailer', 'open', 'why')", "select millrace.flag_set('f', 1)",
                "select millrace.mail_suppress('a@b.example', 'why')", "select millrace.mail_suppressions()",
                "select millrace.mail_unsuppress('a@b.example', '*')", "select millrace.mail_erase('a@b.example')",
                "select * from millrace.mail_messages", "select * from millrace.mail_analytics",
                "select millrace.quest_audit()", "select millrace.quest_repair('f')", "select * from millrace.notices",
                "select millrace.quota_set('t', 'pages', 5)", "select * from millrace.quotas",
                "select * from millrace.media_overview",
                "select millrace.document_default_set('t', '{}')", "select millrace.document_defaults()",
                "select millrace.webhook_add('https://a.example/', '{*}', 'binary', null, true, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
                "select millrace.webhook_rotate('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
                "select millrace.webhook_enable('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
                "select * from millrace.webhooks",
                "select millrace.webhook_redeliver(id, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11') from millrace.events",
                "select millrace.webhook_remove('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11')",
                "select * from millrace.providers", "select * from millrace.provider_events",
                "select millrace.template_publish('welcome', 'S', null, 'T', '{}')", "select * from millrace.templates",
                "select millrace.template_use('welcome', 0)", "select millrace.template_history('welcome')",
            ] {
                #expect(try await admin.refusal(of: call) == nil, "\(call)")
            }
            #expect(try await admin.refusal(of: "delete from millrace.job")?.sqlState == "42501")
        }
    }
}
