import Postgres
import TestSupport
import Testing

/// A job that asks for nothing special takes a way of its own through `millrace.enqueue`.
@Suite struct PlainEnqueueTests {
    @Test(arguments: [
        "", ", queue => 'q'", ", queue => 'q', priority => 0", ", priority => 9, max_attempts => 7",
        ", tags => null, metadata => null, options => null", ", queue => null, priority => null",
    ])
    func `a plain job is written as by the long way`(more: String) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            // The kind and the queues must be known for the short way; the option leads another the long way.
            try await connection.run(
                """
                select millrace.enqueue('k', '{"n": 1}', queue => 'q'), millrace.enqueue('k', '{"n": 1}');
                select millrace.enqueue('other');
                update millrace.kind set queue = (select id from millrace.queue where name = 'q') where name = 'other'
                """)
            for kind in ["k", "other"] {
                let short = try await connection.int("select millrace.enqueue('\(kind)', '{\"n\": 2}'\(more))")
                let long = try await connection.int(
                    "select (millrace.enqueue_one('\(kind)', '{\"n\": 2}', e.queue, e.priority, null, null, 'skip', null, null, e.max_attempts, null, null, null)).id from (select \(Self.column("queue", more, "text")), \(Self.column("priority", more, "int")), \(Self.column("max_attempts", more, "int"))) e"
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

    /// What a test's arguments give for one of `enqueue`'s parameters.
    private static func column(_ name: String, _ arguments: String, _ type: String) -> String {
        let value = arguments.split(separator: ",").lazy.compactMap { part -> String? in
            let words = part.split(separator: "=>").map { $0.trimming(while: { $0 == " " }) }
            return words.count == 2 && words[0] == name ? words[1] : nil
        }.first
        return "\(value ?? "null")::\(type) as \(name)"
    }

    @Test(arguments: [
        "priority => 10", "priority => -1", "max_attempts => 0", "args => null", "args => '{\"$millrace\": 1}'",
        "on_conflict => 'often'", "on_conflict => null", "metadata => '[]'",
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
}

extension Substring {
    fileprivate func trimming(while condition: (Character) -> Bool) -> String {
        var text = drop(while: condition)
        while let last = text.last, condition(last) { text.removeLast() }
        return String(text)
    }
}
