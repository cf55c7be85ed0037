import Foundation
import Postgres
import TestSupport
import Testing

/// What is hidden from people who may look at jobs.
@Suite struct RedactionTests {
    private static let names = [
        "id", "card", "number", "people", "email", "secretNote", "password", "x", "note", "list",
    ]
    private static let rules = ["card.number", "people.*.email", "*.note", "list.*", "x.id"]

    /// Random JSON; every leaf is a text of its own. `paths` has the path of each, with positions in arrays marked.
    private static func tree(
        depth: Int, at path: [String], _ random: inout SeededRandom, _ leaves: inout [(path: [String], value: String)]
    ) -> String {
        if depth == 0 || Int.random(in: 0...9, using: &random) < 2 {
            let value = "v\(leaves.count)_"
            leaves.append((path, value))
            return "\"\(value)\""
        }
        if Int.random(in: 0...3, using: &random) == 0 {
            let items = (0..<Int.random(in: 0...3, using: &random)).map {
                tree(depth: depth - 1, at: path + ["[\($0)"], &random, &leaves)
            }
            return "[\(items.joined(separator: ","))]"
        }
        let members = names.shuffled(using: &random).prefix(Int.random(in: 0...4, using: &random)).map {
            "\"\($0)\": \(tree(depth: depth - 1, at: path + [$0], &random, &leaves))"
        }
        return "{\(members.joined(separator: ","))}"
    }

    /// The definition, tried at each place of the path: positions in arrays may be left out, and everything below a match is hidden.
    private static func covers(_ rule: [String], _ path: [String]) -> Bool {
        func matches(_ rule: ArraySlice<String>, _ path: ArraySlice<String>) -> Bool {
            guard let step = rule.first else { return true }
            guard let name = path.first else { return false }
            let isPlace = name.hasPrefix("[")
            if step == "*" || step == name, matches(rule.dropFirst(), path.dropFirst()) { return true }
            return isPlace && matches(rule, path.dropFirst())
        }
        return path.indices.contains { matches(rule[...], path[$0...]) }
    }

    private static func isHidden(_ path: [String]) -> Bool {
        // card, password and note.secret are on the list of the whole database.
        path.contains { ["card", "password"].contains($0) }
            || rules.contains { covers($0.split(separator: ".").map(String.init).drop { $0 == "*" }.map { $0 }, path) }
    }

    @Test(arguments: [11, 12, 13])
    func `of random nested arguments exactly what a rule covers is gone`(seed: UInt64) async throws {
        try await withConnection { connection in
            var random = SeededRandom(seed)
            try await connection.run(
                "select millrace.kind_redactions_set('k', '{\(Self.rules.joined(separator: ","))}')")
            var hidden = 0
            var shown = 0
            for _ in 1...60 {
                var leaves: [(path: [String], value: String)] = []
                let json = Self.tree(depth: 6, at: [], &random, &leaves)
                let text = try await connection.value("select millrace.redact('k', '\(json)')") ?? ""
                for leaf in leaves {
                    let isThere = text.contains("\"\(leaf.value)\"")
                    let path = leaf.path.joined(separator: ".")
                    #expect(isThere != Self.isHidden(leaf.path), "\(path) of \(json): \(text)")
                    if isThere { shown += 1 } else { hidden += 1 }
                }
            }
            #expect(hidden > 50 && shown > 50, "\(hidden) \(shown)")
        }
    }

    @Test(arguments: [
        "password", "PASSWORD", "userPassword", "access_token", "accessToken", "refresh-tokens", "XAPIKey", "apikey",
        "Authorization", "clientSecret", "creditCard", "card_number2", "cvv", "pin", "otp",
    ])
    func `names of the list are hidden in every spelling`(name: String) async throws {
        try await withConnection { connection in
            let shown = try await connection.value(
                "select millrace.redact('k', '{\"a\": [{\"\(name)\": {\"b\": 1}}]}')")
            #expect(shown == "{\"a\": [{\"\(name)\": \"[redacted]\"}]}")
        }
    }

    @Test func `other names stay, and the list can be replaced`() async throws {
        try await withConnection { connection in
            for name in ["discard", "postcard", "spinning", "tokenCount", "note", "passwordless", "pinned"] {
                let json = "{\"\(name)\": 1}"
                #expect(try await connection.value("select millrace.redact('k', '\(json)')") == json)
            }
            #expect(try await connection.bool("select millrace.redactions_set('{iban,a.b}')"))
            #expect(
                try await connection.value(#"select millrace.redact('k', '{"password": 1, "iban": 2, "a": {"b": 3}}')"#)
                    == #"{"a": {"b": "[redacted]"}, "iban": "[redacted]", "password": 1}"#)
            #expect(try await connection.bool("select millrace.redactions_set(null)"))
            #expect(try await connection.bool("select millrace.redactions_set(null)") == false)
            #expect(try await connection.refusal(of: "select millrace.redactions_set('{\"a(\"}')")?.sqlState == "22023")
            let usual = try await connection.value(#"select millrace.redact('k', '{"password": 1}')"#)
            #expect(usual == #"{"password": "[redacted]"}"#)
        }
    }

    @Test func `very large arguments are hidden without a walk over each of their members`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                create function pg_temp.rows(n int, name text) returns jsonb language sql as $$
                    select jsonb_agg(jsonb_build_object('id', i, name, 'hunter2', 'qty', 1)) from generate_series(1, n) i
                $$;
                create table pg_temp.large as
                select 'clean' as what, jsonb_build_object('n', 5, 'rows', pg_temp.rows(20000, 'pass')) as args
                union all select 'secret', jsonb_build_object('n', 5, 'token', 't', 'kept', '[{"a": 1}]'::jsonb, 'rows', pg_temp.rows(20000, 'password'))
                union all select 'list', pg_temp.rows(20000, 'password')
                union all select 'members', jsonb_build_object('n', 5) || (select jsonb_object_agg('k' || i, '{"password": 1}'::jsonb) from generate_series(1, 20000) i)
                union all select 'small', jsonb_build_object('rows', pg_temp.rows(1000, 'password'));
                """)
            func shown(_ what: String, _ expression: String) async throws -> String? {
                try await connection.value(
                    "select \(expression) from (select args, millrace.redact('k', args) as shown from pg_temp.large where what = '\(what)') x"
                )
            }
            #expect(try await shown("clean", "shown = args") == "true")
            #expect(
                try await shown("secret", "shown::text")
                    == #"{"n": 5, "kept": [{"a": 1}], "rows": "[redacted]", "token": "[redacted]"}"#)
            #expect(try await shown("list", "shown::text") == #""[redacted]""#)
            #expect(try await shown("members", "shown::text like '%hunter2%'") == "false")
            #expect(try await shown("members", "shown ->> 'n'") == "5")
            #expect(
                try await shown("small", "shown -> 'rows' -> 999")
                    == #"{"id": 1000, "qty": 1, "password": "[redacted]"}"#)
            for what in ["clean", "secret", "list", "members"] {
                try await connection.run(
                    """
                    begin;
                    set local track_functions = 'all';
                    select millrace.redact('k', args) from pg_temp.large where what = '\(what)'
                    """)
                // Before, one call for each member: 80,000.
                let calls = try await connection.int(
                    "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where schemaname = 'millrace' and funcname like 'redact%'"
                )
                try await connection.run("rollback")
                #expect(calls < 1000, "\(what): \(calls)")
            }
        }
    }

    @Test(arguments: [
        ("password=abc rest", "password=[redacted] rest"),
        ("{\"token\": \"a\\\\\"b\", \"n\": 1}", "{\"token\": [redacted], \"n\": 1}"),
        ("Authorization: Bearer abc.def-1, next", "Authorization: [redacted], next"),
        ("api-key=zz&x=1", "api-key=[redacted]&x=1"), ("pin: 1234; spin: 5", "pin: [redacted]; spin: 5"),
        ("postgres://bob:pw@h/db", "postgres://bob:[redacted]@h/db"), ("the token is gone", "the token is gone"),
        ("client_secret = 's 1' x", "client_secret = [redacted] x"), ("at 12:30 nothing", "at 12:30 nothing"),
    ])
    func `texts lose the values behind such names`(text: String, expected: String) async throws {
        try await withConnection { connection in
            let quoted = text.replacing("\\\\", with: "\\").replacing("'", with: "''")
            let shown = try await connection.value("select millrace.redact_text('\(quoted)')")
            #expect(shown == expected)
        }
    }

    @Test(.enabled(if: Template.hasRooms))
    func `a job is shown without its secrets, and not only to its owner, and nothing stored changes`()
        async throws
    {
        try await withConnection { connection in
            try await connection.run(
                "select millrace.register_kinds('{order}', '{null}', null, '[[\"card\", \"email\"]]')")
            let id = try await connection.enqueue(
                #"'order', '{"card": {"number": 1}, "n": 5}', metadata => '{"token": "t", "m": 1}'"#)
            try await connection.run(
                """
                delete from millrace.ready;
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
                select id, 1, 8, millrace.now(), millrace.now(), kind, queue, 1, 3, 1, 0, 'denied: password=hunter2' from millrace.job;
                insert into millrace.result values (\(id), '{"email": "a@b", "ok": true}');
                insert into millrace.progress (job, fraction, stage, note, at) values (\(id), 0.5, 'login secret=s3', null, millrace.now());
                insert into millrace.step values (\(id), 'password', '"hunter2"', 1, 8, 1, millrace.now()), (\(id), 'fetch', '{"email": "a@b", "n": 1}', 1, 8, 1, millrace.now());
                insert into millrace.output (job, state, state_attempt, state_at) values (\(id), '{"email": "a@b"}', 1, millrace.now());
                insert into millrace.published (job, n, value, session, number, attempt, at) values (\(id), 1, '[{"email": "a@b"}]', 1, 8, 1, millrace.now());
                insert into millrace.log_line values (\(id), 1, millrace.now(), 1, 1, 8, 1, 'token=abc')
                """)
            let row = try #require(await connection.records("select * from millrace.job_shown(\(id))").first)
            for secret in ["hunter2", "a@b", "s3", #""t""#, #""number""#] {
                #expect(!row.contains(secret), "\(secret): \(row)")
            }
            for kept in [#"""n"": 5"#, #"""m"": 1"#, #"""ok"": true"#, "denied: ", "order", "dead"] {
                #expect(row.contains(kept), "\(kept): \(row)")
            }
            #expect(
                try await connection.records("select * from millrace.jobs_shown(array[4242, \(id)]::bigint[])") == [row]
            )
            #expect(
                try await connection.column("select value from millrace.steps_shown(\(id)) order by name") == [
                    #"{"n": 1, "email": "[redacted]"}"#, #""[redacted]""#,
                ])
            #expect(
                try await connection.column("select value from millrace.published_shown(\(id))") == [
                    #"[{"email": "[redacted]"}]"#
                ])
            #expect(
                try await connection.column("select value from millrace.state_value_shown(\(id))") == [
                    #"{"email": "[redacted]"}"#
                ])
            #expect(try await connection.column("select line from millrace.logs_shown(\(id))") == ["token=[redacted]"])
            #expect(try await connection.value("select args -> 'card' ->> 'number' from millrace.job(\(id))") == "1")
            let sealed = #"{"$millrace": "sealed", "v": 1, "key": "k", "data": "aGk="}"#
            #expect(try await connection.value("select millrace.redact('order', '\(sealed)') = '\(sealed)'") == "true")
            let deep = String(repeating: #"{"a": ["#, count: 2000) + "1" + String(repeating: "]}", count: 2000)
            #expect(
                try await connection.value("select millrace.redact('order', '\(deep)')")?.contains("[redacted]") == true
            )
        }
    }
}
