import JSON
import TestSupport
import Testing

@testable import Gateway

/// Calls of functions: what they take and give, and who may.
@Suite(.timeLimit(.minutes(10))) struct CallTests {
    /// A function of each kind, which the apps may call in this test.
    static let kinds = """
        create function millrace.kind_void(t text default null) returns void language plpgsql as $$ begin perform 1; end $$;
        create function millrace.kind_scalar(a bigint, b numeric default 1.50, c text[] default '{}') returns text
            language sql as $$ select concat_ws('|', a, b, array_to_string(c, ',', 'NULL')) $$;
        create function millrace.kind_json(v jsonb, w jsonb default '{"left": "out"}') returns jsonb
            language sql as $$ select jsonb_build_object('v', v, 'w', w) $$;
        create function millrace.kind_row(x int, out one int, out two text) language sql as $$ select x, null::text $$;
        create function millrace.kind_rows(n int) returns table (zed int, at timestamptz, "odd 'name" boolean)
            language sql as $$ select i, 'epoch'::timestamptz, i > 1 from generate_series(1, n) i $$;
        create function millrace.kind_column(n int) returns table ("o'n\\e" uuid)
            language sql as $$ select '00000000-0000-0000-0000-000000000001'::uuid from generate_series(1, n) $$;
        create function millrace.kind_values(n int) returns setof bigint
            language sql as $$ select 9007199254740993 from generate_series(1, n) $$;
        create function millrace."kind ""quoted" (" p; drop table" int) returns int language sql as $$ select $1 $$;
        create function millrace.kind_types(b boolean, i int, l bigint, u uuid, d date, ts timestamptz, tm time, iv interval,
            ints int[], uuids uuid[], spans interval[], docs jsonb[]) returns text
            language sql as $$ select concat_ws('|', b, i, l, u, d, ts at time zone 'UTC', tm, iv, ints::text, uuids::text, spans::text, docs::text) $$;
        do $g$ declare one regprocedure; begin
            for one in select oid::regprocedure from pg_proc where proname like 'kind%' and pronamespace = 'millrace'::regnamespace loop
                execute format('grant execute on function %s to ROLE', one);
            end loop;
        end $g$;
        """

    @Test func `each kind of result is one JSON value`() async throws {
        try await GatewayWorld.with(.init(script: Self.kinds)) { world in
            func text(_ function: String, _ body: String? = nil) async throws -> String {
                let answer = try await world.call(function, body)
                #expect(answer.status == 200, "\(function): \(answer.text)")
                #expect(answer.header("content-type") == "application/json")
                return answer.text
            }
            #expect(try await text("kind_void") == "null\n")
            #expect(try await text("kind_scalar", #"{"a": 9007199254740993}"#) == "\"9007199254740993|1.50|\"\n")
            #expect(
                try await text("kind_scalar", #"{"a": "-5", "b": 0.10000000000000000000001, "c": ["x", null]}"#)
                    == "\"-5|0.10000000000000000000001|x,NULL\"\n")
            #expect(
                try await text("kind_json", #"{"v": {"n": 12345678901234567890.5}}"#)
                    == "{\"v\": {\"n\": 12345678901234567890.5}, \"w\": {\"left\": \"out\"}}\n")
            #expect(try await text("kind_json", #"{"v": null, "w": null}"#) == "{\"v\": null, \"w\": null}\n")
            #expect(try await text("kind_row", #"{"x": 3}"#) == "{\"one\":3,\"two\":null}\n")
            let rows = try JSONValue.read(try await text("kind_rows", #"{"n": 2}"#))
            #expect(rows.items?.count == 2 && rows.items?[1]["zed"]?.integer == 2)
            #expect(rows.items?[0]["odd 'name"] == .bool(false))
            #expect(rows.items?[0]["at"]?.text?.hasPrefix("1970-01-01T00:00:00") == true)
            #expect(try await text("kind_rows", #"{"n": 0}"#) == "[]\n")
            #expect(
                try JSONValue.read(try await text("kind_column", #"{"n": 1}"#)).items?[0]["o'n\\e"]?.text
                    == "00000000-0000-0000-0000-000000000001")
            #expect(try await text("kind_values", #"{"n": 2}"#) == "[9007199254740993,9007199254740993]\n")
            #expect(try await text("kind%20%22quoted", #"{" p; drop table": 7}"#) == "7\n")
            #expect(
                try await text(
                    "kind_types",
                    #"""
                    {"b": true, "i": -1, "l": 5, "u": "00000000-0000-0000-0000-00000000000A", "d": "2030-01-31",
                     "ts": "2030-01-31T12:00:00+02:00", "tm": "22:00", "iv": "90 minutes", "ints": [1, 2], "uuids": [],
                     "spans": ["1 hour", null], "docs": [{"a": [1]}, 2]}
                    """#)
                    == #""t|-1|5|00000000-0000-0000-0000-00000000000a|2030-01-31|2030-01-31 10:00:00|22:00:00|01:30:00|{1,2}|{}|{01:00:00,NULL}|{\"{\\\"a\\\": [1]}\",2}""#
                    + "\n")
        }
    }

    @Test func `a path that is not there, and a method that it does not take, are problems as well`() async throws {
        try await GatewayWorld.with { world in
            for (method, path, status) in [("GET", "/v1/nothing", 404), ("PATCH", "/v1/sync", 405)] {
                let answer = try await world.ask(method, path)
                #expect(answer.status == status && answer.header("Content-Type") == "application/problem+json")
                #expect(answer.word("request_id") == answer.header("X-Request-Id"), "\(answer.text)")
            }
        }
    }

    @Test func `what is not on the list is not there, and nobody names another caller`() async throws {
        try await GatewayWorld.with { world in
            for name in [
                "claim", "no_such", "now;", "gateway_doors", "right_staff", "pg_sleep", "millrace.now", "NOW",
                "%22now%22",
                "grant_backend", "enqueue'", "feed_new", "a%00b",
            ] {
                let answer = try await world.call(name)
                #expect([400, 404].contains(answer.status), "\(name): \(answer.status) \(answer.text)")
            }
            let answer = try await world.call("no_such")
            #expect(answer.word("class") == "not_found" && answer.word("field") == "function")
            let caller = try await world.call("own_jobs", #"{"caller": "millrace"}"#)
            #expect(caller.status == 400 && caller.word("field") == "caller", "\(caller.text)")
            let unknown = try await world.call("own_jobs", #"{"paeg": 5}"#)
            #expect(unknown.status == 400 && unknown.word("field") == "paeg")
            #expect(unknown.word("hint") == "it takes after, page")
            let missing = try await world.call("check_in")
            #expect(missing.status == 400 && missing.word("field") == "person")
        }
    }

    @Test func `a person calls with their own rights, and without a token nobody does`() async throws {
        try await GatewayWorld.with { world in
            let mood = #"{"person": "ada", "color": "happy"}"#
            let logged = try await world.call("mood_log", mood)
            #expect(logged.status == 200, "\(logged.text)")
            #expect(try await world.call("moods", #"{"person": "ada"}"#).json.items?.count == 1)
            let other = try await world.call("mood_log", mood, as: "bob")
            #expect([403, 404].contains(other.status), "\(other.text)")
            #expect(other.header("content-type") == "application/problem+json")
            // Its word is no class; what it says reaches the caller all the same.
            let state = try await world.call("check_in_arm", #"{"person": "ada"}"#)
            #expect(state.status == 409 && state.word("class") == "conflict" && state.word("field") == "person")
            #expect(state.word("detail") == "no contact of this person has a verified address", "\(state.text)")
            let nobody = try await world.call("mood_log", mood, as: nil)
            #expect(nobody.status == 401 && nobody.word("class") == "authentication")
            #expect(nobody.header("www-authenticate") == "Bearer error=\"invalid_token\"")
            let device = try await world.call("now", headers: ["Authorization": "Device ada"])
            #expect(device.status == 403, "\(device.text)")
            #expect(try await world.call("now").status == 200)
        }
    }
}
