import Postgres
import TestSupport
import Testing

/// Jobs found by fields of their arguments.
@Suite struct FieldTests {
    @Test func `every way to enqueue indexes a kind's fields, and other kinds have nothing there`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.register_kinds('{order,plain}', '{null,null}', '[["order.id","vip"],null]');
                select millrace.session_open(1, 'w', 'h', 1, '0', null, array(select id from millrace.kind), 10, false)
                """)
            let args = #"{"order": {"id": 7}, "vip": true}"#
            func put(_ call: String, sourceLocation: SourceLocation = #_sourceLocation) async throws {
                let before = try await connection.found("order.id", "7")
                let ids = try await connection.column(call)
                let after = try await connection.found("order.id", "7")
                #expect(
                    !ids.isEmpty && Set(after).subtracting(before) == Set(ids), "\(call)",
                    sourceLocation: sourceLocation)
                #expect(try await connection.found("vip", "true") == after, sourceLocation: sourceLocation)
            }
            try await put("select millrace.enqueue('order', '\(args)')")
            try await put("select millrace.enqueue('order', '\(args)', 'q')")
            try await put("select millrace.enqueue('order', '\(args)', 'q')")
            try await put("select millrace.enqueue('order', '\(args)', unique_key => 'a')")
            try await put("select millrace.enqueue('order', '\(args)', run_at => now() + interval '1 h')")
            try await put("select millrace.enqueue('order', '\(args)', limit_key => 'l', tenant => 't')")
            let one = #"{"kind": "order", "args": \#(args)}"#
            try await put("select id from millrace.enqueue_many('[\(one), \(one)]')")
            try await put("select unnest(ids) from millrace.enqueue_numbered('[\(one), \(one)]', null, 'job')")
            try await put(
                "select generate_series(first, last) from millrace.enqueue_bulk('order', array['\(args)', '\(args)', '\(args)'])"
            )
            try await connection.run(
                "create temporary table millrace_batch (line bigint, job jsonb); insert into millrace_batch select n, '\(one)' from generate_series(1, 3) n"
            )
            let before = try await connection.found("order.id", "7").count
            #expect(try await connection.int("select millrace.enqueue_copied(2)") == 3)
            #expect(try await connection.found("order.id", "7").count == before + 3)
            let parent = try await connection.enqueue("'plain', priority => 0")
            #expect(try await connection.claim(kinds: ["plain"]) == [parent])
            try await put(
                "select generate_series(first, last) from millrace.spawn(format('%s-%s-%s', to_hex(1), 9, \(parent)), 'order', array['\(args)', '\(args)'])"
            )
            try await connection.run("select millrace.schedule_set('s', '@daily', 'order', '\(args)')")
            try await put("select millrace.schedule_run('s')")
            try await connection.run(
                "select millrace.enqueue('plain', '\(args)'), millrace.enqueue('plain', '\(args)')")
            #expect(
                try await connection.int(
                    "select count(*) from millrace.job_field f join millrace.job j on j.id = f.job join millrace.kind k on k.id = j.kind where k.name <> 'order'"
                ) == 0)
            #expect(
                try await connection.column("select kind_name from millrace.route") == ["plain"],
                "the short way is for kinds without fields")
            try await connection.expectOnePlaceEach()
        }
    }

    @Test func `texts, numbers and booleans are found, and nothing else is indexed`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.kind_fields_set('k', '{a.b}')")
            func put(_ value: String) async throws -> String {
                "\(try await connection.enqueue(#"'k', '{"a": {"b": \#(value)}}'"#))"
            }
            let number = try await put("5.00")
            let text = try await put(#""5""#)
            let long = try await put(#""\#(String(repeating: "ä", count: 250))1""#)
            let other = try await put(#""\#(String(repeating: "ä", count: 250))2""#)
            let no = try await put("false")
            let empty = try await put(#""""#)
            for nothing in ["null", "[5]", #"{"c": 5}"#] { _ = try await put(nothing) }
            try await connection.run(#"select millrace.enqueue('k', '[5]'), millrace.enqueue('k', '"5"')"#)
            func found(_ value: String) async throws -> [String] {
                try await connection.column("select unnest(ids) from millrace.jobs_by_field('k', 'a.b', '\(value)')")
            }
            #expect(try await found("5") == [text, number])
            #expect(try await found("5.0") == [number])
            #expect(try await found(String(repeating: "ä", count: 250) + "1") == [long])
            #expect(try await found(String(repeating: "ä", count: 250) + "2") == [other])
            #expect(try await found("false") == [no])
            #expect(try await found("") == [empty])
            #expect(try await found("c").isEmpty)
            #expect(try await connection.int("select count(*) from millrace.job_field") == 6)
            let sealed = #"{"$millrace": "sealed", "v": 1, "key": "k", "data": "aGk=", "a": {"b": 1}}"#
            #expect(try await connection.refusal(of: "select millrace.enqueue('k', '\(sealed)')")?.sqlState == "22023")
            try await connection.run("select millrace.kind_fields_set('k', '{data}')")
            try await connection.run(
                #"select millrace.enqueue('k', '{"$millrace": "sealed", "v": 1, "key": "k", "data": "aGk="}')"#)
            #expect(
                try await connection.column("select unnest(ids) from millrace.jobs_by_field('k', 'data', 'aGk=')")
                    .isEmpty)
        }
    }

    @Test func `a replaced job is found by its new arguments, and a deleted one not at all`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.kind_fields_set('order', '{id,note}')")
            let id = try await connection.enqueue(#"'order', '{"id": 1, "note": "x"}', unique_key => 'u'"#)
            #expect(
                try await connection.enqueue(#"'order', '{"id": 2}', unique_key => 'u', on_conflict => 'replace'"#)
                    == id)
            #expect(try await connection.found("id", "1").isEmpty)
            #expect(try await connection.found("note", "x").isEmpty)
            #expect(try await connection.found("id", "2") == ["\(id)"])
            try await connection.run("select millrace.job_delete(\(id))")
            #expect(try await connection.int("select count(*) from millrace.job_field") == 0)
            // One that went with its partition, or with its history: the sweep takes what is left.
            let gone = try await connection.enqueue(#"'order', '{"id": 3}'"#)
            let stays = try await connection.enqueue(#"'order', '{"id": 3}'"#)
            try await connection.run(
                "delete from millrace.ready where job = \(gone); delete from millrace.job where id = \(gone)")
            #expect(try await connection.found("id", "3") == ["\(stays)"])
            try await connection.run("select millrace.trace_sweep()")
            #expect(try await connection.column("select job from millrace.job_field") == ["\(stays)"])
        }
    }

    @Test func `older jobs are indexed in chunks once nobody enqueues without the field any more`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let slow = try await database.connect()
            for n in 1...7 { try await connection.enqueue(#"'order', '{"id": \#(n % 2), "b": 1}'"#) }
            try await slow.run(#"begin; select millrace.enqueue('order', '{"id": 1}')"#)
            #expect(try await connection.bool("select millrace.kind_fields_set('order', '{id}')"))
            #expect(try await connection.bool("select millrace.kind_fields_set('order', '{id}')") == false)
            #expect(try await connection.bool("select millrace.fields_fill(most => 2)"), "the other is still open")
            try await connection.enqueue(#"'order', '{"id": 1}'"#)
            #expect(try await connection.found("id", "1").count == 1)
            #expect(
                try await connection.value("select complete from millrace.jobs_by_field('order', 'id', '1')") == "false"
            )
            // This one takes the short way with what it knew; its job is older than the field, for all that it commits later.
            try await slow.run(#"select millrace.enqueue('order', '{"id": 1}'); commit"#)
            #expect(try await connection.bool("select millrace.fields_fill(most => 2)") == false)
            #expect(try await connection.found("id", "1").count == 7)
            #expect(try await connection.found("id", "0").count == 3)
            #expect(
                try await connection.value("select complete from millrace.jobs_by_field('order', 'id', '1')") == "true")
            // A second field while the first is complete; then both go.
            try await connection.run("select millrace.kind_fields_set('order', '{id,b}')")
            #expect(try await connection.bool("select millrace.fields_fill(most => 3)") == false)
            #expect(try await connection.found("b", "1").count == 7)
            try await connection.run("select millrace.kind_fields_set('order', '{}')")
            #expect(
                try await connection.refusal(of: "select millrace.jobs_by_field('order', 'id', '1')")?.message
                    == "the kind order has no searchable field id")
            #expect(try await connection.bool("select millrace.fields_fill(most => 3)") == false)
            #expect(try await connection.int("select count(*) from millrace.job_field") == 0)
            #expect(try await connection.int("select count(*) from millrace.kind_field") == 0)
            try await connection.enqueue(#"'order', '{"id": 1}', 'q'"#)
            #expect(
                try await connection.int("select count(*) from millrace.route") == 1,
                "plain jobs go the short way again")
            await slow.close()
            await connection.close()
        }
    }

    @Test func `programs add fields, an operator's replace them, and one start of an old program takes nothing away`()
        async throws
    {
        try await withConnection { connection in
            func declare(_ fields: String) async throws {
                try await connection.run(
                    "select millrace.register_kinds('{order}', '{null}', '[\(fields)]', '[[\"card.number\"]]')")
            }
            func listed() async throws -> String? {
                try await connection.value(
                    "select concat_ws(' ', fields, fields_from, redactions) from millrace.kind_list() where kind = 'order'"
                )
            }
            try await declare(#"["id"]"#)
            try await declare(#"["id", "total"]"#)
            try await declare(#"["id"]"#)
            try await declare("[]")
            try await connection.run("select millrace.register_kinds('{order}', '{null}')")
            #expect(try await listed() == "{id,total} program {card.number}")
            try await connection.run(
                "select millrace.kind_fields_set('order', '{x}'), millrace.kind_redactions_set('order', '{y.*}')")
            try await declare(#"["id"]"#)
            #expect(try await listed() == "{x} operator {card.number,y.*}")
            try await connection.run(
                "select millrace.kind_fields_set('order', null), millrace.kind_redactions_set('order', null)")
            #expect(try await listed() == "{} {}")
            try await declare(#"["id"]"#)
            #expect(try await listed() == "{id} program {card.number}")
            for wrong in ["a..b", "*.a", "", "a.b.c.d.e.f.g.h.i", String(repeating: "x", count: 129)] {
                #expect(
                    try await connection.refusal(of: "select millrace.kind_fields_set('order', array['\(wrong)'])")?
                        .sqlState
                        == "22023", "\(wrong)")
            }
            #expect(
                try await connection.refusal(of: "select millrace.kind_fields_set('order', '{a,b,c,d,e,f,g,h,i}')")
                    != nil)
            #expect(try await connection.refusal(of: "select millrace.kind_redactions_set('order', '{a*}')") != nil)
        }
    }

    @Test func `a search by field takes a state too, and pages through what it finds`() async throws {
        try await withConnection { connection in
            try await connection.run("select millrace.kind_fields_set('order', '{id}')")
            var ids: [String] = []
            for _ in 1...5 { ids.append("\(try await connection.enqueue(#"'order', '{"id": 1}'"#))") }
            try await connection.run("select millrace.cancel(\(ids[2]))")
            func search(_ state: String, _ after: String = "null") async throws -> [String] {
                try await connection.column(
                    "select unnest(ids) from millrace.jobs_find('\(state)', the_kind => 'order', after => \(after), the_field => 'id', the_value => '1')"
                )
            }
            #expect(try await search("ready") == [ids[4], ids[3], ids[1], ids[0]])
            #expect(try await search("ready", ids[3]) == [ids[1], ids[0]])
            #expect(try await search("cancelled") == [ids[2]])
            #expect(
                try await connection.records(
                    "select ids, next from millrace.jobs_by_field('order', 'id', '1', page => 2)") == [
                        "(\"{\(ids[4]),\(ids[3])}\",\(ids[3]))"
                    ])
            #expect(
                try await connection.refusal(
                    of: "select millrace.jobs_find('ready', the_field => 'id', the_value => '1')")?.sqlState == "22023")
        }
    }
}

extension Connection {
    fileprivate func found(_ field: String, _ value: String) async throws -> [String] {
        try await column("select unnest(ids) from millrace.jobs_by_field('order', '\(field)', '\(value)', page => 500)")
    }
}
