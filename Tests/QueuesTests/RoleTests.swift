import Postgres
import Queues
import TestSupport
import Testing

@Suite struct RoleTests {
    struct Roles {
        let client = TestCluster.name("client")
        let neighbour = TestCluster.name("client")
        let worker = TestCluster.name("worker")
        let admin = TestCluster.name("admin")
        var all: [String] { [client, neighbour, worker, admin] }
    }

    static func withRoles(_ body: (TestDatabase, Connection, Roles) async throws -> Void) async throws {
        let office = try await TestCluster.office()
        let roles = Roles()
        for role in roles.all { try await office.run("create role \(role) login") }
        try await office.run("grant \(roles.client) to \(roles.neighbour)")
        try await withDatabase(.empty) { database in
            let owner = try await database.connect()
            _ = try await Migrator(
                roles: [("client", roles.client), ("worker", roles.worker), ("admin", roles.admin)], testClock: true
            ).migrate(on: owner)
            try await body(database, owner, roles)
        }
        for role in roles.all.reversed() { try await office.run("drop role \(role)") }
        await office.close()
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

    @Test func `a client replaces its own waiting job, and nobody else's`() async throws {
        try await Self.withRoles { database, owner, roles in
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let client = try await database.connect(as: roles.client)
            let neighbour = try await database.connect(as: roles.neighbour)
            let id = try await client.put("1")
            #expect(try await client.put("2") == id)
            #expect(
                try await neighbour.refusal(
                    of: "select millrace.enqueue('test', '3', unique_key => 'k', on_conflict => 'replace')")?.sqlState
                    == "42501")
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

    static let doors: Set<String> = [
        "enqueue", "enqueue_many", "enqueue_copied", "enqueue_numbered", "cancel", "flow_cancel", "flow_tree",
        "job", "own_jobs", "now", "event_publish", "flag_on",
    ]

    /// Every function is called, every table, view and sequence is tried: whatever is added to the schema is tried as well.
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
            for line in functions {
                let parts = line.split(separator: "|", maxSplits: 1)
                guard !Self.doors.contains(String(parts[0])) else { continue }
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

    @Test func `a worker works through functions alone, an admin sees and steers`() async throws {
        try await Self.withRoles { database, owner, roles in
            let worker = try await database.connect(as: roles.worker)
            let id = try await worker.enqueue()
            let tables = try await owner.column(
                "select relname from pg_class where relnamespace = 'millrace'::regnamespace and relkind in ('r', 'p')")
            for table in tables {
                #expect(try await worker.refusal(of: "select from millrace.\(table)")?.sqlState == "42501", "\(table)")
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
                "select millrace.beat(1, 'working', 0, 0, 0)",
                "select millrace.watch(1)", "select millrace.rescue(5, 0)", "select millrace.leases_held(1)",
                "select millrace.leases_return(1, array[8::bigint])", "select millrace.cancels(1)",
                "select millrace.maintain()",
                "select millrace.flows_advance()", "select millrace.flows_check()", "select millrace.flow_ids(\(id))",
                "select millrace.flow_tree(\(id))", "select millrace.results_before(\(id))",
                "select millrace.gates_open()", "select millrace.slots_sweep()", "select millrace.limit_list()",
                "select millrace.report('[]')", "select millrace.retry_fresh(\(id))", "select millrace.steps(\(id))",
                "select millrace.logs(\(id))",
                "select millrace.queue_list()", "select millrace.retentions()", "select millrace.schema_state()",
                "select millrace.depths()",
                "select millrace.rates()",
                "select millrace.orphans()", "select * from millrace.workers", "select * from millrace.queues",
                "select millrace.session_close(1)", "select millrace.schedule_set('s', '@daily', 'test')",
                "select millrace.schedule_wait()", "select millrace.schedules_due()",
                "select * from millrace.schedules", "select * from millrace.providers",
                "select * from millrace.provider_events", "select millrace.provider_workers('mailer')",
                "select millrace.provider_flush(1, 'w', '[]', '{}', null)", "select millrace.provider_tidy()",
                "select millrace.flag_on('f', 'k')", "select millrace.flag_list()",
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
            for call in ["provider_force('mailer', 'open', 'why')", "flag_set('f', 1)"] {
                #expect(try await worker.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            #expect(try await worker.refusal(of: "select millrace.job_delete(\(id))")?.sqlState == "42501")
            #expect(try await worker.refusal(of: "select millrace.sealed_page('k')")?.sqlState == "42501")
            let admin = try await database.connect(as: roles.admin)
            for call in [
                "select * from millrace.jobs", "select millrace.pause('default')", "select millrace.resume('default')",
                "select * from millrace.job_list('succeeded')", "select millrace.pins()", "select millrace.sizes()",
                "select millrace.dead_count()", "select millrace.dead_ids()", "select millrace.dead_summary()",
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
                "select * from millrace.providers", "select * from millrace.provider_events",
            ] {
                #expect(try await admin.refusal(of: call) == nil, "\(call)")
            }
            #expect(try await admin.refusal(of: "delete from millrace.job")?.sqlState == "42501")
        }
    }
}
