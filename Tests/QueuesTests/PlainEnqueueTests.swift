import MillraceQueues
import Postgres
import Schema
import TestSupport
import Testing

/// A job that asks for nothing special takes a short way through `millrace.enqueue`.
@Suite struct PlainEnqueueTests {
    @Test(arguments: [
        "", ", queue => 'q'", ", queue => 'q', priority => 0", ", priority => 9, max_attempts => 7",
        ", tags => null, metadata => null, options => null", ", queue => null, priority => null",
    ])
    func `a plain job is written as by the long way`(more: String) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            // The short way is for what workers or callers have noted.
            try await connection.run("select millrace.register_kinds('{k, other}', '{null, q}')")
            try await connection.run(
                "select millrace.enqueue('k', queue => 'q'), millrace.enqueue('other', queue => 'q')")
            let routes = try await connection.column(
                "select kind_name || ' ' || queue_name from millrace.route order by 1")
            try #require(routes == ["k ", "k q", "other ", "other q"])
            for kind in ["k", "other"] {
                let short = try await connection.int("select millrace.enqueue('\(kind)', '{\"n\": 2}'\(more))")
                let long = try await connection.int(
                    "select (millrace.enqueue_one('\(kind)', '{\"n\": 2}', e.queue, e.priority, null, null, 'skip', null, null, e.max_attempts, null, null, null, caller => current_user)).id from (select \(Self.column("queue", more, "text")), \(Self.column("priority", more, "int")), \(Self.column("max_attempts", more, "int"))) e"
                )
                for table in ["job", "ready"] {
                    let column = table == "job" ? "id" : "job"
                    let differing = try await connection.int(
                        """
                        select count(*) from (
                            select to_jsonb(a) - array['id', 'seq', 'job', 'enqueued_at'] as row from millrace.\(table) a where \(column) = \(short)
                            except
                            select to_jsonb(b) - array['id', 'seq', 'job', 'enqueued_at'] from millrace.\(table) b where \(column) = \(long)) d
                        """)
                    #expect(differing == 0, "\(kind)\(more) in \(table)")
                    #expect(
                        try await connection.int("select count(*) from millrace.\(table) where \(column) = \(short)")
                            == 1
                    )
                }
            }
            await connection.close()
        }
    }

    /// The value of a test's arguments for one of `enqueue`'s parameters.
    private static func column(_ name: String, _ arguments: String, _ type: String) -> String {
        let value = arguments.split(separator: ",").lazy.compactMap { part -> String? in
            let words = part.split(separator: "=>").map { $0.trimming(while: { $0 == " " }) }
            return words.count == 2 && words[0] == name ? words[1] : nil
        }.first
        return "\(value ?? "null")::\(type) as \(name)"
    }

    @Test(arguments: [
        "priority => 10", "priority => -1", "max_attempts => 0", "args => null", "args => '{\"$millrace\": 1}'",
        "on_conflict => 'often'", "on_conflict => null", "metadata => '[]'", "queue => ''",
    ])
    func `what is refused is refused for a known kind and queue too`(argument: String) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.enqueue('k')")
            await #expect(throws: PostgresError.self) {
                try await connection.run("select millrace.enqueue('k', \(argument))")
            }
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
            await connection.close()
        }
    }

    private static let plan = """
        create function public.plan(sql text) returns text language plpgsql as $$
        declare line text; lines text := '';
        begin
            for line in execute 'explain verbose ' || sql loop lines := lines || line; end loop;
            return lines;
        end $$
        """

    /// Parameters that a caller leaves out should cost nothing.
    @Test func `the planner puts what enqueue does in the caller's statement, and judges there what is left out`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(Self.plan)
            func plan(_ call: String) async throws -> String {
                try await connection.value("public.plan($$select millrace.enqueue(\(call))$$)") ?? ""
            }
            #expect(try await plan("'k', '{}', 'q'").contains("NULL::jsonb, 17,"))
            #expect(try await plan("'k', priority => 9, max_attempts => 2").contains("NULL::jsonb, 37,"))
            #expect(try await plan("'k', options => '{\"timeout\": 1}'").contains("NULL::integer,"))
            // A volatile expression may be there once: in the arguments.
            #expect(try await plan("'k', to_jsonb(gen_random_uuid())").contains("enqueue_as"))
            #expect(try await !plan("'k', tenant => gen_random_uuid()::text").contains("enqueue_as"))
            let keyed = try await connection.int("select millrace.enqueue('k', tenant => gen_random_uuid()::text)")
            #expect(try await connection.int("select length(tenant) from millrace.job where id = \(keyed)") == 36)
            await connection.close()
        }
    }

    @Test func `few routes are read through, and many are found by their key`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(Self.plan)
            let lookUp = "select queue from millrace.route where kind_name = 'k' and queue_name = 'q'"
            func plan() async throws -> String {
                try await connection.value("select public.plan($$\(lookUp)$$)") ?? ""
            }
            try await connection.run("select millrace.enqueue('k', queue => 'q')")
            #expect(try await plan().contains("Seq Scan"))
            try await connection.run(
                "select millrace.register_kinds(array_agg('k' || n), array_agg(null::text)) from generate_series(1, 200) n"
            )
            #expect(try await plan().contains("Index Scan using route_pkey"))
            await connection.close()
        }
    }

    @Test func `a caller's search_path changes nothing`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(Self.plan)
            try await connection.run("select millrace.enqueue('k', queue => 'q')")
            try await connection.run(
                """
                create schema trap;
                create function trap.nullif(text[], text[]) returns text[] language sql as $$ select array['trapped'] $$;
                create function trap.never(jsonb, jsonb) returns boolean language sql as $$ select false $$;
                create operator trap.= (leftarg = jsonb, rightarg = jsonb, function = trap.never);
                set search_path = trap, pg_catalog
                """)
            let id = try await connection.int("select millrace.enqueue('k', '{}', 'q', tags => '{}', options => '{}')")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.job where id = \(id) and tags is null and options is null") == 1)
            #expect(
                try await connection.bool(
                    "select public.plan($$select millrace.enqueue('k', '{}', 'q')$$) like '%NULL::jsonb, 17,%'"))
            await connection.close()
        }
    }

    @Test func `nothing of a caller's search_path runs with the owner's rights`() async throws {
        try await withDatabase(.planted) { database in
            let connection = try await database.connect()
            let rights = try await SchemaRights.look(configured: [], on: connection)
            #expect(rights.unfixed == [])  // but for enqueue_as, which names everything in full: the traps tell
            #expect(Schema.callersPathFunctions == ["enqueue_as"])
            try await connection.run("select millrace.enqueue('k', queue => 'q')")
            try await connection.run(TrapSchema.script)
            // Somebody sleeps, and is to be told.
            try await connection.run("select pg_advisory_lock(1297239619, b) from generate_series(0, 63) b")
            let caller = try await database.connect()
            try await caller.run("set search_path = trap, public, pg_catalog")
            for sprung in ["select 1 + 1", "select lower('a'::pg_catalog.text)", "select '{}'::jsonb ? 'a'"] {
                #expect(try await caller.refusal(of: sprung) != nil, "\(sprung)")
            }
            for call in [
                "'k'", "'k', '{}', 'q'", "'k', '{}', 'another'", "'k', unique_key => 'a'",
                "'k', unique_key => 'a', on_conflict => 'replace'",
                "'k', limit_key => 'a', tenant => 't', tags => array['a'::pg_catalog.text]",
                "'k', '{\"$millrace\": 1}'",
            ] {
                do {
                    try await caller.run("select millrace.enqueue(\(call))")
                } catch let error as PostgresError {
                    #expect(!"\(error)".contains("trapped"), "\(call): \(error)")
                    #expect(call.contains("$millrace"), "\(call): \(error)")
                }
            }
            await caller.close()
            #expect(try await PlantedOverloads.sprung(in: database) == [])
            #expect(try await connection.int("select count(*) from millrace.job") == 6)
            await connection.close()
        }
    }

    @Test func `a kind that is given another queue is followed at once`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            func place(_ enqueue: String) async throws -> String? {
                let job = try await connection.int(enqueue)
                return try await connection.value(
                    "select q.name from millrace.ready r join millrace.queue q on q.id = r.queue where r.job = \(job)")
            }
            #expect(try await place("select millrace.enqueue('k')") == "default")
            try await connection.run("select millrace.register_kinds('{k}', '{null}')")
            #expect(try await place("select millrace.enqueue('k')") == "default")
            for queue in ["first", "second"] {
                try await connection.run("select millrace.register_kinds('{k}', '{\(queue)}')")
                #expect(try await place("select millrace.enqueue('k')") == queue)
                #expect(try await place("select millrace.enqueue('k', queue => 'default')") == "default")
            }
            await connection.close()
        }
    }

    @Test func `a worker that gives a kind another queue waits for one that notes the old`() async throws {
        try await withDatabase { database in
            let first = try await database.connect()
            let second = try await database.connect()
            let process = try await second.process()
            let register = "select millrace.register_kinds"
            try await first.run(
                "\(register)('{k}', '{null}'); delete from millrace.route; begin; \(register)('{k}', '{null}')")
            async let moves: Void = second.run("\(register)('{k}', '{q}')")
            try await eventually("it waits") {
                try await first.bool("select wait_event_type = 'Lock' from pg_stat_activity where pid = \(process)")
            }
            try await first.run("commit")
            try await moves
            let routes =
                "select r.queue_name || '>' || q.name from millrace.route r join millrace.queue q on q.id = r.queue"
            #expect(try await first.column(routes) == [">q"])
            try await first.run("select millrace.enqueue('k')")
            #expect(
                try await first.value("select q.name from millrace.ready r join millrace.queue q on q.id = r.queue")
                    == "q")
            for connection in [first, second] { await connection.close() }
        }
    }

    @Test func `callers do not wait for each other to note where a kind goes`() async throws {
        try await withDatabase { database in
            let first = try await database.connect()
            let second = try await database.connect()
            try await first.run("select millrace.enqueue('k', queue => 'q')")
            try await first.run("delete from millrace.route; begin; select millrace.enqueue('k', queue => 'q')")
            try await second.run("set statement_timeout = '10s'; select millrace.enqueue('k', queue => 'q')")
            try await second.run("select millrace.register_kinds('{k}', '{q}')")
            try await first.run("commit")
            #expect(try await second.column("select queue_name from millrace.route order by 1") == ["", "q"])
            #expect(try await second.int("select count(*) from millrace.job") == 3)
            for connection in [first, second] { await connection.close() }
        }
    }

    @Test func `a kind is not moved out of sight of who notes where it goes`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run("select millrace.register_kinds('{k}', '{q}')")
            await #expect(throws: PostgresError.self) {
                try await connection.run(
                    "begin isolation level repeatable read; select millrace.register_kinds('{k}', '{other}')")
            }
            try await connection.run(
                "rollback; begin isolation level repeatable read; select millrace.enqueue('k', queue => 'new'); commit")
            #expect(try await connection.int("select count(*) from millrace.job") == 1)
            #expect(try await connection.int("select count(*) from millrace.route where queue_name = 'new'") == 0)
            await connection.close()
        }
    }
}

extension Substring {
    fileprivate func trimming(while condition: (Character) -> Bool) -> String {
        var text = drop(while: condition)
        while let last = text.last, condition(last) { text.removeLast() }
        return String(text)
    }
}
