import CommandKit
import Postgres

/// A client's login that calls every door of clients, with arguments that fit the parameters' types.
struct HostileCaller {
    struct Tally: Sendable {
        var calls = 0
        var answered = 0
        var timedOut = 0
        /// The connection was lost, or the server said that it ends.
        var crashes = 0
        /// By door and code: how often, and one example.
        var unclassified: [String: (count: Int, example: String)] = [:]

        mutating func addUnclassified(_ what: String, _ example: String) {
            unclassified[what] = ((unclassified[what]?.count ?? 0) + 1, example)
        }

        mutating func add(_ other: Tally) {
            calls += other.calls
            answered += other.answered
            timedOut += other.timedOut
            crashes += other.crashes
            for (what, fault) in other.unclassified {
                unclassified[what] = (fault.count + (unclassified[what]?.count ?? 0), fault.example)
            }
        }
    }

    let options: ConnectionOptions
    let role: String
    let seed: Double

    func call(until end: ContinuousClock.Instant) async throws -> Tally {
        var tally = Tally()
        var connection = try await open()
        while ContinuousClock.now < end, !Task.isCancelled {
            tally.calls += 1
            do throws(PostgresError) {
                let answer = try await connection.query("select * from pg_temp.hostile_call($1)", [.text(role)]) {
                    row throws(PostgresError) in
                    (door: try row.string(0), code: row.optionalString(1), said: row.optionalString(2) ?? "")
                }.first
                guard let answer else { continue }
                guard let code = answer.code else {
                    tally.answered += 1
                    continue
                }
                tally.addUnclassified("\(answer.door) \(code)", answer.said)
            } catch {
                switch error {
                case .timedOut, .server: tally.timedOut += 1  // 57014: the statement's own limit
                case .lost, .unreachable, .exhausted, .cancelled, .undecodable, .misconfigured:
                    tally.crashes += 1
                    await connection.close()
                    connection = try await open()
                }
            }
        }
        await connection.close()
        return tally
    }

    /// Calls each door once for each extreme value of each of its parameters: what chance may leave out.
    func callEach() async throws -> Tally {
        var tally = Tally()
        let connection = try await open()
        // The limit counts for all calls of a door together.
        try await connection.execute("set statement_timeout = '2min'")
        let doors = try await connection.query(
            """
            select d.oid::bigint from pg_temp.hostile_door d
             where has_function_privilege($1, d.oid, 'execute') order by d.door, d.oid
            """, [.text(role)]
        ) { row throws(PostgresError) in try row.int(0) }
        for door in doors {
            let answers = try await connection.query(
                "select * from pg_temp.hostile_each($1, $2::bigint::oid)", [.text(role), .int8(door)]
            ) { row throws(PostgresError) in
                (
                    calls: try row.int(0), door: try row.string(1), code: row.optionalString(2),
                    said: row.optionalString(3)
                )
            }
            for answer in answers {
                tally.calls += Int(answer.calls)
                if let code = answer.code { tally.addUnclassified("\(answer.door) \(code)", answer.said ?? "") }
            }
        }
        await connection.close()
        return tally
    }

    private func open() async throws(PostgresError) -> Connection {
        let connection = try await Connection.open(options, name: "load")
        try await connection.run(script: Self.functions)
        try await connection.execute("select setseed($1)", [.float8(seed)])
        try await connection.execute("set statement_timeout = '5s'")
        return connection
    }

    /// hostile_mild: what a door may take, by the parameter's name or its type. hostile_extremes: expressions of a type that it may not.
    /// hostile_value: one of both. hostile_try: one call as that role, of which what it did is kept or not. A code comes back only for an
    /// error that says nothing of its class: our refusals have JSON in their detail, and 42501 is Postgres' own.
    /// hostile_call: a door by chance, with claims or without. hostile_each: each extreme of each parameter of a door, the others mild.
    private static let functions: SQL = #"""
        create or replace function pg_temp.hostile_mild(parameter text, type text) returns text language sql immutable as $f$
            select '(' || coalesce(case parameter
                when 'kind' then quote_literal('hostile.kind') when 'person' then quote_literal('alice') when 'family' then quote_literal('fam')
                when 'recipients' then 'array[''a@b.example'']' when 'zone' then quote_literal('Europe/Berlin') when 'channels' then quote_literal(case when type = 'jsonb' then '{"push": true}' else '{push}' end)
                when 'storage_url' then quote_literal('https://a.example/x') when 'color' then quote_literal('happy') when 'page' then '5'
                when 'role' then quote_literal('teen') when 'platform' then quote_literal('fcm') when 'token' then quote_literal('abcdefgh1234')
                when 'jobs' then quote_literal('[{"kind": "hostile.kind"}]') when 'args' then quote_literal('{}') when 'recipient' then quote_literal('a@b.example')
                when 'subject' then quote_literal('s') when 'body_text' then quote_literal('t') when 'type' then quote_literal('com.example.hostile')
                when 'source' then quote_literal('/x') when 'contact' then quote_literal('bob') when 'mime_type' then quote_literal('application/pdf') end,
                case
                    when type = 'millrace.caller_name' then 'current_user'
                    when type in ('text', 'name') then quote_literal('x')
                    when type = 'jsonb' then quote_literal('{}')
                    when type in ('integer', 'bigint', 'smallint', 'numeric', 'double precision', 'real') then '1'
                    when type like 'timestamp%' then 'now()' when type = 'date' then 'current_date' when type = 'interval' then quote_literal('1 hour')
                    when type = 'uuid' then 'gen_random_uuid()' when type = 'boolean' then 'true' when type like 'time %' then quote_literal('12:00')
                    else 'null' end) || ')::' || type
        $f$;
        create or replace function pg_temp.hostile_extremes(type text, size int) returns text[] language sql immutable as $f$
            select array(select '(' || one || ')::' || type from unnest(array['null'] || case
                when type in ('text', 'name') then array[
                    $$''$$, format('repeat(''x'', %s)', size), format('repeat(''ü漢'', %s)', size / 4), $$'; drop table millrace.job; --'$$, $$E'\x01\x1b[31m'$$,
                    $$'%s %I %L'$$, $$'٣٤'$$, $$E'\u202etxt.exe'$$, $$'null'$$, $$'../../etc/passwd'$$]
                when type = 'jsonb' then array[
                    $$'{}'$$, $$'[]'$$, $$'null'$$, $$'"x"'$$, $$'1e300'$$, format('to_jsonb(repeat(''x'', %s))', size),
                    format('(repeat(''['', %1$s) || repeat('']'', %1$s))', least(size, 3000)),
                    format('(select jsonb_object_agg(g, g) from generate_series(1, %s) g)', least(size, 100000)),
                    format('(select jsonb_agg(jsonb_build_object(''kind'', ''hostile.kind'', ''person'', ''alice'')) from generate_series(1, %s) g)', least(size, 20000)),
                    $$'{"id": {"a": [1, {"b": null}]}, "options": {"after": [-1]}, "sms": "+1", "mail": {}}'$$]
                when type like '%[]' then array[$$'{}'$$, 'array[null]'] || array(
                    select format('array_fill(%s, array[%s])', e.item, d.dimensions)
                      from unnest(pg_temp.hostile_extremes(left(type, -2), least(size, 5000))) e(item), unnest(array[least(size, 5000)::text, '3, 3']) d(dimensions)
                     where octet_length(e.item) < 200 or d.dimensions = '3, 3')
                when type = 'smallint' then array['0', '-1', '32767', '-32768']
                when type = 'integer' then array['0', '-1', '1', '500', '501', '32767', '2147483647', '-2147483648']
                when type = 'bigint' then array['0', '-1', '2147483647', '9223372036854775807', '-9223372036854775808']
                when type in ('numeric', 'double precision', 'real') then array['0', '-1', $$'NaN'$$, $$'Infinity'$$, $$'-Infinity'$$, '1e30']
                when type like 'timestamp%' then array[$$'infinity'$$, $$'-infinity'$$, $$'4713-01-01 BC'$$, $$'294276-12-31'$$, $$'epoch'$$]
                when type = 'date' then array[$$'infinity'$$, $$'-infinity'$$, $$'5874897-12-31'$$, $$'4713-01-01 BC'$$]
                when type = 'interval' then array[$$'0'$$, $$'-5 years'$$, $$'178000000 years'$$, $$'-178000000 years'$$, $$'0.000001 s'$$]
                when type = 'uuid' then array[$$'00000000-0000-0000-0000-000000000000'$$]
                when type = 'boolean' then array['true', 'false']
                when type like 'time %' then array[$$'24:00'$$, $$'00:00'$$, $$'23:59:59.999999'$$]
                else array[]::text[] end) one)
        $f$;
        create or replace function pg_temp.hostile_value(parameter text, type text) returns text language plpgsql volatile as $f$
        declare
            size int := (array[1, 60, 300, 5000, 100000, 2000000, 60000000])[1 + floor(random() * 7)::int];
            of text[];
        begin
            if random() < 0.5 or type = 'millrace.caller_name' then
                return pg_temp.hostile_mild(parameter, type);
            end if;
            of := pg_temp.hostile_extremes(type, size);
            return of[1 + floor(random() * cardinality(of))::int];
        end $f$;
        create or replace function pg_temp.hostile_try(the_role text, door text, arguments text, claims text, is_kept boolean, out code text, out said text) language plpgsql as $f$
        declare
            detail text;
            answer text;
        begin
            perform set_config('request.jwt.claims', claims, true);
            perform set_config('role', the_role, true);
            execute format('select count(*) from (select millrace.%I(%s)) x', door, arguments) into answer;
            perform set_config('role', 'none', true);
            if not is_kept then
                raise exception using errcode = 'MR000';
            end if;
        exception when others then
            get stacked diagnostics detail = pg_exception_detail;
            -- 54000 is what Postgres cannot hold; 40xxx and 55P03 are to be tried again.
            if sqlstate <> all (array['MR000', '42501', '54000', '57014', '40001', '40P01', '55P03']) and left(detail, 1) is distinct from '{' then
                code := sqlstate;
                said := left(sqlerrm, 200) || ': ' || left(arguments, 300);
            end if;
        end $f$;
        -- The input parameters come first in each of our functions.
        create or replace view pg_temp.hostile_door as
            select p.oid, p.proname as door, p.pronargs as takes, p.pronargs - p.pronargdefaults as needs, p.proargnames as names,
                   array(select format_type(t.type, null) from unnest(p.proargtypes::oid[]) with ordinality t(type, n) order by t.n) as types
              from pg_proc p where p.pronamespace = 'millrace'::regnamespace;
        create or replace function pg_temp.hostile_call(the_role text, out door text, out code text, out said text) language plpgsql as $f$
        declare
            one record;
            arguments text[] := '{}';
        begin
            select d.* into one from pg_temp.hostile_door d where has_function_privilege(the_role, d.oid, 'execute') order by random() limit 1;
            door := one.door;
            for i in 1 .. one.takes loop
                continue when i > one.needs and (random() < 0.5 or one.types[i] = 'millrace.caller_name');
                arguments := arguments || format('%I => %s', one.names[i], pg_temp.hostile_value(one.names[i], one.types[i]));
            end loop;
            select t.code, t.said into code, said from pg_temp.hostile_try(the_role, door, array_to_string(arguments, ', '),
                (array['', '{"sub": "alice"}', '{"role": "anon"}', '{', '[]', '{"sub": 5, "tenant": {}}'])[1 + floor(random() * 6)::int], random() < 0.5) t;
        end $f$;
        create or replace function pg_temp.hostile_each(the_role text, the_door oid) returns table (calls bigint, door text, code text, said text) language plpgsql as $f$
        declare
            one record;
            called bigint := 0;
            extreme text;
            found record;
        begin
            select d.* into one from pg_temp.hostile_door d where d.oid = the_door;
            for i in 1 .. one.takes loop
                foreach extreme in array case when one.types[i] = 'millrace.caller_name' then '{}' else pg_temp.hostile_extremes(one.types[i], 5000) end loop
                    called := called + 1;
                    select t.* into found from pg_temp.hostile_try(the_role, one.door, array_to_string(array(
                        select format('%I => %s', one.names[n], case when n = i then extreme else pg_temp.hostile_mild(one.names[n], one.types[n]) end)
                          from generate_series(1, one.takes) n where n = i or n <= one.needs), ', '), '{"sub": "alice"}', false) t;
                    if found.code is not null then
                        return query select 0::bigint, one.door::text, found.code, found.said;
                    end if;
                end loop;
            end loop;
            return query select called, one.door::text, null::text, null::text;
        end $f$;
        """#
}
