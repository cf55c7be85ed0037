import MillraceQueues
import Postgres
import RoomSchemas

/// What the rooms of an older schema keep, before a migration and after it.
struct RoomRows {
    /// Tables that had rows, rows, and a sentence for each table whose rows are not the same.
    struct Comparison {
        var tables = 0
        var rows = 0
        var findings: [String] = []

        mutating func add(_ other: Comparison) {
            tables += other.tables
            rows += other.rows
            findings += other.findings
        }
    }

    /// The tables that the rooms have now; the core's change all the time, and are judged by what became of each job.
    private static let tables = RoomSchemas.all.flatMap(SchemaNames.tables(of:))
        .filter { $0 != "watchman" }  // workers write there each second that they watch

    /// Puts something into each room by the functions of the older program, and ends the jobs that came of it, so that its rows stay as they are.
    static func fill(on connection: Connection) async throws -> [String] {
        var refused: [String] = []
        for statement in statements {
            do throws(PostgresError) {
                try await connection.run(script: statement)
            } catch {
                guard case .server = error else { throw error }
                try await connection.execute("rollback")
                refused.append("a room could not be filled: \(error)")
            }
        }
        try await connection.execute("select millrace.cancel(id) from millrace.job")
        return refused
    }

    /// Keeps the rows beside the schema, once they stand still.
    static func keep(on connection: Connection) async throws {
        try await connection.run(script: functions)
        let tables: Parameter = .texts(Self.tables)
        let deadline = ContinuousClock.now + .seconds(60)
        repeat {
            try await connection.execute("select rehearsal.keep($1)", [tables])
            try await Task.sleep(for: .seconds(1))
        } while try await !compare(on: connection).findings.isEmpty && ContinuousClock.now < deadline
    }

    /// A person's tenant and a family's have had their prefix since, and a room may have columns that are new or gone; everything else is as it was.
    static func compare(on connection: Connection) async throws -> Comparison {
        let found = try await connection.query(
            "select name, count, gone, come from rehearsal.compare($1)", [.texts(tables)], deadline: .seconds(60)
        ) { row throws(PostgresError) in
            (name: try row.string(0), count: Int(try row.int(1)), gone: Int(try row.int(2)), come: Int(try row.int(3)))
        }
        var comparison = Comparison()
        for table in found where table.count > 0 || table.come > 0 {
            comparison.tables += 1
            comparison.rows += table.count
            guard table.gone > 0 || table.come > 0 else { continue }
            comparison.findings.append(
                "the rows of \(table.name) are not what they were: \(table.gone) gone, \(table.come) come")
        }
        return comparison
    }

    private static let functions: SQL = """
        create schema rehearsal;
        create function rehearsal.keep(tables text[]) returns void language plpgsql as $$
        declare
            one text;
        begin
            foreach one in array tables loop
                if to_regclass(format('millrace.%I', one)) is not null then
                    execute format('drop table if exists rehearsal.%1$I; create table rehearsal.%1$I as select * from millrace.%1$I', one);
                end if;
            end loop;
        end $$;
        create function rehearsal.compare(tables text[]) returns table (name text, count bigint, gone bigint, come bigint) language plpgsql as $$
        declare
            columns text;
        begin
            foreach name in array tables loop
                continue when to_regclass(format('rehearsal.%I', name)) is null;
                select string_agg(format('%L, x.%I', a.attname, a.attname), ', ') into columns
                  from pg_attribute a join pg_attribute b on b.attname = a.attname and b.attnum > 0 and not b.attisdropped
                 where a.attrelid = to_regclass(format('rehearsal.%I', name)) and a.attnum > 0
                   and b.attrelid = to_regclass(format('millrace.%I', name));
                execute format($rows$
                    with before as (select regexp_replace(jsonb_build_object(%1$s)::text, '"(person|family):', '"', 'g') from rehearsal.%2$I x),
                         after as (select regexp_replace(jsonb_build_object(%1$s)::text, '"(person|family):', '"', 'g') from millrace.%2$I x)
                    select (select count(*) from before), (select count(*) from (table before except all table after) g),
                           (select count(*) from (table after except all table before) c)$rows$, columns, name)
                   into count, gone, come;
                return next;
            end loop;
        end $$
        """

    /// Something that each room keeps, as a client, a back end or an operator brings it.
    private static let statements: [SQL] = [
        "select millrace.blob_put(sha256('x'), 'x')",
        "select millrace.event_publish('order.paid', '/shop', '1', tenant => 'acme')",
        "select millrace.family_create('fam', 'UTC')",
        "select millrace.family_join('fam', 'ada', 'parent')",
        "select millrace.family_join('fam', 'bob', 'teen')",
        "select millrace.person_profile('ada', 'Ada', actor => 'ada')",
        "select millrace.quota_set('acme', 'pages', 100)",
        "select millrace.template_publish('hello', 'Hello', '<p>Hello</p>', 'Hello', '{}')",
        "select millrace.webhook_add('https://127.0.0.1:1/hook', '{nothing.*}', handshake => false)",
        "select millrace.mail_suppress('eve@example.org', 'asked')",
        "select millrace.mail_send('{ada@example.org}', 'Hello', 'Hello Ada', scheduled_at => now() + interval '20 days')",
        "select millrace.notice_preferences('ada', 'UTC', '22:00', '07:00', '{\"push\": true}', 'en', 'ada')",
        "select millrace.device_add('ada', 'fcm', 'abcdefgh12345678', actor => 'ada')",
        "select millrace.own_notice_schedule('ada', 'water', 'k', now() + interval '1 year', actor => 'ada')",
        "select millrace.ai_providers_tell('[{\"name\": \"fake\", \"wire\": \"openai\", \"model\": \"m\"}]')",
        "select millrace.ai_switch('tenant', 'acme', true)",
        "select millrace.ai_ask('sentiment', '{\"text\": \"x\"}', tenant => 'acme')",
        "select millrace.document_register('https://127.0.0.1:1/a.pdf', actor => 'ada')",
        "select millrace.media_process(concat('blob:', encode(sha256('x'), 'hex')), '{\"strip\": true}', actor => 'ada')",
        "select millrace.lesson_put('l1', 'Sums', actor => 'ada')",
        "select millrace.subscription_plan_set('pro', '{\"pages\": 10}', 1)",
        "select millrace.subscription_set('pro', 'ada')",
        "select millrace.mood_log('bob', 'happy', actor => 'bob')",
        "select millrace.hobby_save('bob', 'chess', 'a fact', actor => 'bob')",
        "select millrace.quest_today('fam', 'ada')",
        "select millrace.quest_complete('fam', 'bob', actor => 'bob')",
        "select millrace.check_in_contact('ada', 'bob', 1, '{\"push\": true}', wait => '5 min', actor => 'ada')",
        "select millrace.check_in_confirm('ada', 'bob')",
        "select millrace.check_in_arm('ada', '24 hours', actor => 'ada')",
        "select millrace.chat_send(millrace.chat_thread_create(family => 'fam', actor => 'ada'), 'hello', actor => 'ada')",
        """
        begin;
        select set_config('request.jwt.claims', '{"sub": "ada"}', true);
        select millrace.sync_device_add('phone');
        select millrace.gateway_begin('k', 'x');
        select millrace.gateway_end('k', 200, '{}');
        commit
        """,
    ]
}
