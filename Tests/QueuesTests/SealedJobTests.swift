import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Encrypted arguments as the database sees them: it has no key.
@Suite struct SealedJobTests {
    static func sealed(_ key: String, _ data: String = "AAAA") -> String {
        #"{"$millrace": "sealed", "v": 1, "key": "\#(key)", "data": "\#(data)"}"#
    }

    @Test func `the name $millrace is kept: nothing plain can look encrypted, by any door`() async throws {
        try await withConnection { connection in
            for bad in [
                #"{"$millrace": 1}"#, #"{"$millrace": "sealed"}"#, Self.sealed("no space"), Self.sealed("k", "?"),
                #"{"$millrace": "sealed", "v": 1, "key": "k", "data": "AAAA", "more": 1}"#,
                #"{"$millrace": "sealed", "v": 2, "key": "k", "data": "AAAA"}"#,
            ] {
                for call in [
                    "select millrace.enqueue('test', '\(bad)')",
                    "select millrace.enqueue_many('[{\"kind\": \"test\", \"args\": \(bad)}]')",
                    "select millrace.enqueue_bulk('test', array['\(bad)'])",
                    "select millrace.enqueue_bulk('test', array['{}', '\(bad)'])",
                ] {
                    let error = try await connection.refusal(of: call)
                    #expect(error?.sqlState == "22023", "\(call)")
                    #expect(error?.message.contains("$millrace") == true && error?.hint?.isEmpty == false)
                }
            }
            for good in ["[\"$millrace\"]", "\"$millrace\"", #"{"a": {"$millrace": 1}}"#, Self.sealed("k_1-A")] {
                #expect(
                    try await connection.refusal(of: "select millrace.enqueue('test', '\(good)')") == nil, "\(good)")
            }
        }
    }

    @Test func `jobs are counted by the key they need, ended ones apart`() async throws {
        try await withConnection { connection in
            let one = Self.sealed("one")
            let two = Self.sealed("two")
            try await connection.openSession()
            let ended = try await connection.enqueue("'test', '\(one)'")
            try await connection.claim()
            _ = try await connection.finish([.init(id: ended, outcome: 1)], complete: [9: 1])
            let running = try await connection.enqueue("'test', '\(two)'")
            #expect(try await connection.claim(number: 16) == [running])
            try await connection.enqueue("'test', '\(two)', run_at => now() + interval '1 day'")
            try await connection.enqueue("'test', '\(two)'")
            try await connection.enqueue("'test', '{}'")
            let dead = try await connection.enqueue("'test', '\(one)'")
            #expect(try await connection.bool("select millrace.cancel(\(dead))"))
            #expect(
                try await Queue.sealedKeys(cap: nil, on: connection) == [
                    SealedKey(id: "one", living: 0, ended: 2), SealedKey(id: "two", living: 3, ended: 0),
                ])
            #expect(try await Queue.sealedKeys(cap: 2, on: connection).map { $0.living + $0.ended } == [2, 2])
        }
    }

    @Test func `pages of jobs under other keys go on where they ended`() async throws {
        try await withConnection { connection in
            var ids: [String: [Int64]] = [:]
            for index in 0..<9 {
                let key = ["c", "a", "b"][index % 3]
                ids[key, default: []].append(
                    Int64(try await connection.enqueue("'test', '\(Self.sealed(key))'")))
            }
            var found: [Int64] = []
            var place = ("", Int64(0))
            while true {
                let page = try await Queue.sealedPage(
                    notBy: "b", afterKey: place.0, afterID: place.1, limit: 2, on: connection)
                guard let last = page.last else { break }
                found += page.map(\.id)
                place = (ids["a"]?.contains(last.id) == true ? "a" : "c", last.id)
            }
            #expect(found == (ids["a"] ?? []) + (ids["c"] ?? []))
            #expect(
                try await connection.refusal(of: "select millrace.sealed_page('b', page => 501)")?.sqlState == "22023")
        }
    }

    @Test func `arguments are replaced only where they still are what was read, and nobody is waited for`() async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let other = try await database.connect()
            var jobs: [SealedJob] = []
            for data in ["AAAA", "BBBB", "CCCC"] {
                let args = Self.sealed("old", data)
                let id = Int64(try await connection.enqueue("'test', '\(args)', unique_key => '\(data)'"))
                jobs.append(SealedJob(id: id, kind: "test", args: Array(args.utf8)))
            }
            // The first has taken new work meanwhile, and a caller's open transaction is about to give the second new work.
            try await connection.run(
                "select millrace.enqueue('test', '{\"n\": 1}', unique_key => 'AAAA', on_conflict => 'replace')")
            try await other.run(
                "begin; select millrace.enqueue('test', '{\"n\": 2}', unique_key => 'BBBB', on_conflict => 'replace')")
            let new = Array(Self.sealed("new", "DDDD").utf8)
            let done = try await Queue.reseal(jobs.map { ($0, new) }, on: connection)
            #expect(done == [jobs[2].id])
            try await other.run("commit")
            #expect(
                try await connection.column("select args from millrace.job order by id")
                    == [#"{"n": 1}"#, #"{"n": 2}"#, #"{"v": 1, "key": "new", "data": "DDDD", "$millrace": "sealed"}"#])
            await connection.close()
            await other.close()
        }
    }

    @Test func `encrypting again neither adds nor removes plain arguments`() async throws {
        try await withConnection { connection in
            let plain = try await connection.enqueue("'test', '{\"a\": 1}'")
            let sealed = try await connection.enqueue("'test', '\(Self.sealed("k"))'")
            for call in [
                "array[\(plain)::bigint], array['{\"a\": 1}'::jsonb], array['\(Self.sealed("k"))'::jsonb]",
                "array[\(sealed)::bigint], array['\(Self.sealed("k"))'::jsonb], array['{\"a\": 1}'::jsonb]",
                "array[\(sealed)::bigint], array[]::jsonb[], array[]::jsonb[]",
            ] {
                #expect(try await connection.refusal(of: "select millrace.reseal(\(call))")?.sqlState == "22023")
            }
            #expect(try await connection.int("select count(*) from millrace.job where args = '{\"a\": 1}'") == 1)
        }
    }

    @Test func `the keys that jobs need are found by an index, among any number of plain jobs`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.enqueue_bulk('test', array(select '{}' from generate_series(1, 3000)));
                select millrace.enqueue('test', '\(Self.sealed("k"))')
                """)
            #expect(try await Queue.sealedKeys(cap: 10, on: connection).map(\.id) == ["k"])
            try await connection.run(
                """
                set enable_seqscan = off;
                create function pg_temp.plan() returns setof text language plpgsql as $$ begin return query execute
                    'explain select left(j.args ->> ''key'', 32) from millrace.job j where j.args ->> ''$millrace'' = ''sealed''
                        and left(j.args ->> ''key'', 32) > '''' order by left(j.args ->> ''key'', 32) limit 1'; end $$
                """)
            let lines = try await connection.column("select * from pg_temp.plan()")
            #expect(lines.contains { $0.contains("Index") }, "\(lines)")
            #expect(!lines.contains { $0.contains("Seq Scan") || $0.contains("->  Sort") }, "\(lines)")
        }
    }
}
