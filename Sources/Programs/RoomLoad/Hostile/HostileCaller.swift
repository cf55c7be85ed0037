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
                let what = "\(answer.door) \(code)"
                tally.unclassified[what] = ((tally.unclassified[what]?.count ?? 0) + 1, answer.said)
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

    private func open() async throws(PostgresError) -> Connection {
        let connection = try await Connection.open(options, name: "load")
        try await connection.run(script: Self.functions)
        try await connection.execute("select setseed($1)", [.float8(seed)])
        try await connection.execute("set statement_timeout = '5s'")
        return connection
    }

    /// hostile_value: an expression of a type, as its text; half of the time one that a door may take, by the parameter's name.
    /// hostile_call: one call as that role, with claims or without, and nothing of it kept half of the time. A code comes back only for an
    /// error that says nothing of its class: our refusals have JSON in their detail, and 42501 is Postgres' own.
    private static let functions: SQL = #"""
        create or replace function pg_temp.hostile_value(parameter text, type text) returns text language plpgsql volatile as $f$
        declare
            found text := case when random() < 0.6 then case parameter
                when 'kind' then quote_literal('hostile.kind') when 'person' then quote_literal('alice') when 'family' then quote_literal('fam')
                when 'recipients' then 'array[''a@b.example'']' when 'zone' then quote_literal('Europe/Berlin') when 'channels' then quote_literal(case when type = 'jsonb' then '{"push": true}' else '{push}' end)
                when 'storage_url' then quote_literal('https://a.example/x') when 'color' then quote_literal('happy') when 'page' then '5'
                when 'role' then quote_literal('teen') when 'platform' then quote_literal('fcm') when 'token' then quote_literal('abcdefgh1234')
                when 'jobs' then quote_literal('[{"kind": "hostile.kind"}]') when 'args' then quote_literal('{}') when 'recipient' then quote_literal('a@b.example')
                when 'subject' then quote_literal('s') when 'body_text' then quote_literal('t') when 'type' then quote_literal('com.example.hostile')
                when 'source' then quote_literal('/x') when 'contact' then quote_literal('bob') when 'mime_type' then quote_literal('application/pdf') end end;
            n int := (random() * 11)::int;
            size int := (array[1, 60, 300, 5000, 100000, 2000000, 60000000])[1 + (random() * 6)::int];
        begin
            if found is not null then
                return found || '::' || type;
            end if;
            found := case
                when n = 0 then 'null'
                when type in ('text', 'name') then (array[
                    $$''$$, format('repeat(''x'', %s)', size), format('repeat(''ü漢'', %s)', size / 4), $$'; drop table millrace.job; --'$$, $$E'\x01\x1b[31m'$$,
                    $$'%s %I %L'$$, $$'٣٤'$$, $$E'\u202etxt.exe'$$, $$'null'$$, $$'../../etc/passwd'$$])[1 + (random() * 9)::int]
                when type = 'jsonb' then (array[
                    $$'{}'$$, $$'[]'$$, $$'null'$$, $$'"x"'$$, $$'1e300'$$, format('to_jsonb(repeat(''x'', %s))', size),
                    format('(repeat(''['', %1$s) || repeat('']'', %1$s))', least(size, 3000)),
                    format('(select jsonb_object_agg(g, g) from generate_series(1, %s) g)', least(size, 100000)),
                    format('(select jsonb_agg(jsonb_build_object(''kind'', ''hostile.kind'', ''person'', ''alice'')) from generate_series(1, %s) g)', least(size, 20000)),
                    $$'{"id": {"a": [1, {"b": null}]}, "options": {"after": [-1]}, "sms": "+1", "mail": {}}'$$])[1 + (random() * 9)::int]
                when type like '%[]' then (array[
                    $$'{}'$$, 'array[null]', format('array_fill(%s, array[%s])', pg_temp.hostile_value('', left(type, -2)), least(size, 5000)),
                    format('array_fill(%s, array[3, 3])', pg_temp.hostile_value('', left(type, -2)))])[1 + (random() * 3)::int]
                when type in ('integer', 'bigint', 'smallint') then (array['0', '-1', '1', '500', '501', '32767', '-32768', '2147483647'])[1 + (random() * 7)::int]
                when type like 'timestamp%' then (array[$$'infinity'$$, $$'-infinity'$$, $$'4713-01-01 BC'$$, $$'294276-12-31'$$, 'now()', $$'epoch'$$])[1 + (random() * 5)::int]
                when type = 'date' then (array[$$'infinity'$$, $$'-infinity'$$, $$'5874897-12-31'$$, 'current_date'])[1 + (random() * 3)::int]
                when type = 'interval' then (array[$$'0'$$, $$'-5 years'$$, $$'178000000 years'$$, $$'1 hour'$$, $$'0.000001 s'$$])[1 + (random() * 4)::int]
                when type = 'uuid' then (array['gen_random_uuid()', $$'00000000-0000-0000-0000-000000000000'$$])[1 + (random())::int]
                when type = 'boolean' then (array['true', 'false'])[1 + (random())::int]
                when type like 'time %' then (array[$$'24:00'$$, $$'00:00'$$, $$'23:59:59.999999'$$])[1 + (random() * 2)::int]
                else 'null' end;
            return '(' || found || ')::' || type;
        end $f$;
        create or replace function pg_temp.hostile_call(the_role text, out door text, out code text, out said text) language plpgsql as $f$
        declare
            one record;
            arguments text := '';
            detail text;
            answer text;
        begin
            select p.oid, p.proname, p.pronargs, p.pronargdefaults, p.proargnames, p.proargtypes into one from pg_proc p
             where p.pronamespace = 'millrace'::regnamespace and has_function_privilege(the_role, p.oid, 'execute') order by random() limit 1;
            door := one.proname;
            for i in 1 .. one.pronargs loop
                continue when i > one.pronargs - one.pronargdefaults and (random() < 0.5 or one.proargtypes[i - 1] = 'millrace.caller_name'::regtype);
                -- The input parameters come first in each of our functions.
                arguments := concat_ws(', ', nullif(arguments, ''), format('%I => %s', one.proargnames[i],
                    case when one.proargtypes[i - 1] = 'millrace.caller_name'::regtype then 'current_user'
                         else pg_temp.hostile_value(one.proargnames[i], format_type(one.proargtypes[i - 1], null)) end));
            end loop;
            begin
                perform set_config('request.jwt.claims', (array['', '{"sub": "alice"}', '{"role": "anon"}', '{', '[]', '{"sub": 5, "tenant": {}}'])[1 + (random() * 5)::int], true);
                perform set_config('role', the_role, true);
                execute format('select count(*) from (select millrace.%I(%s)) x', door, arguments) into answer;
                perform set_config('role', 'none', true);
                if random() < 0.5 then
                    raise exception using errcode = 'MR000';
                end if;
            exception when others then
                get stacked diagnostics detail = pg_exception_detail;
                -- 54000 is what Postgres cannot hold; 40xxx and 55P03 are to be tried again.
                if sqlstate <> all (array['MR000', '42501', '54000', '57014', '40001', '40P01', '55P03']) and left(detail, 1) is distinct from '{' then
                    code := sqlstate;
                    said := left(sqlerrm, 200) || ': ' || left(arguments, 300);
                end if;
            end;
        end $f$;
        """#
}
