import Postgres
import TestSupport
import Testing

@Suite(.enabled(if: Template.hasRooms)) struct EventTests {
    private static let id = "'0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e'"

    private func feed(_ connection: Connection, since: Int = 0) async throws -> [String] {
        try await connection.column(
            "select data -> 'data' ->> 'n' from millrace.events_changes(\(since), 500) order by seq")
    }

    private func publish(_ connection: Connection, _ number: Int) async throws {
        try await connection.run(#"select millrace.event_publish('a.b', '/t', '{"n": \#(number)}')"#)
    }

    @Test func `an event is there once its transaction is, as CloudEvents has it`() async throws {
        try await withDatabase { database in
            let writer = try await database.connect()
            let reader = try await database.connect()
            try await writer.run("begin")
            try await writer.run(
                "select millrace.event_publish('com.example.paid', '/shop', '{\"order\": 7}', 'order/7', 'acme', \(Self.id))"
            )
            #expect(try await feed(reader).isEmpty)
            try await writer.run("rollback")
            #expect(try await feed(reader).isEmpty)
            try await writer.run(
                "select millrace.event_publish('com.example.paid', '/shop', '{\"order\": 7}', 'order/7', 'acme', \(Self.id))"
            )
            let document = try await reader.value(
                "select (data - 'time')::text from millrace.events_changes(0, 1)")
            #expect(
                document
                    == #"{"id": "0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "data": {"order": 7}, "type": "com.example.paid", "source": "/shop", "tenant": "acme", "subject": "order/7", "specversion": "1.0", "datacontenttype": "application/json"}"#
            )
            #expect(
                try await reader.bool(
                    "select (data ->> 'time')::timestamptz = at and at = (select time from millrace.events) from millrace.events_changes(0, 1)"
                ))
            await writer.close()
            await reader.close()
        }
    }

    @Test func `the same id and content is the first answer again, other content a conflict`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            func call(
                type: String = "a.b", source: String = "/s", data: String = #"{"x": [1, 2.0], "y": 1}"#,
                subject: String = "'s'",
                tenant: String = "null"
            ) -> String {
                "select millrace.event_publish('\(type)', '\(source)', '\(data)', \(subject), \(tenant), \(Self.id))"
            }
            for data in [#"{"x": [1, 2.0], "y": 1}"#, #"{"y": 1, "x": [1, 2]}"#] {
                #expect(try await connection.value(call(data: data)) == String(Self.id.dropFirst().dropLast()))
            }
            for (field, other) in [
                ("type", call(type: "a.c")), ("source", call(source: "/t")), ("data", call(data: "{}")),
                ("subject", call(subject: "null")), ("tenant", call(tenant: "'t'")),
            ] {
                let refusal = try await connection.refusal(of: other)
                #expect(refusal?.sqlState == "23505")
                #expect(refusal?.detail?.contains(#""error" : "conflict", "field" : "\#(field)""#) == true)
            }
            #expect(try await connection.int("select count(*) from millrace.events_changes(0, 50)") == 1)
            await connection.close()
        }
    }

    @Test func `two who publish the same id at once make one event`() async throws {
        try await withDatabase { database in
            let first = try await database.connect()
            let second = try await database.connect()
            let watch = try await database.connect()
            for (data, state) in [("1", nil), ("2", "23505")] as [(String, String?)] {
                let id = "'0198c1f2-7a3e-7000-8000-00000000000\(data)'"
                func call(_ data: String) -> String {
                    "select millrace.event_publish('a.b', '/t', '\(data)', id => \(id))"
                }
                try await first.run("begin; \(call("1"))")
                let process = try await second.process()
                async let refusal = second.refusal(of: call(data))
                try await waitUntilBlocked(process, seenBy: watch)
                try await first.run("commit")
                #expect(try await refusal?.sqlState == state)
            }
            #expect(try await watch.int("select count(*) from millrace.events") == 2)
            for connection in [first, second, watch] { await connection.close() }
        }
    }

    @Test(arguments: [
        ("null, '/s', '1'", "22023", "type"), ("'', '/s', '1'", "22023", "type"), ("'a b', '/s', '1'", "22023", "type"),
        ("'a.b', null, '1'", "22023", "source"), ("'a.b', '', '1'", "22023", "source"),
        ("'a.b', 'a b', '1'", "22023", "source"), ("'a.b', '/%zz', '1'", "22023", "source"),
        ("'a.b', '/ü', '1'", "22023", "source"), ("'a.b', '/s', null", "22023", "data"),
        ("'a.b', '/s', '1', ''", "22023", "subject"), ("'a.b', '/s', '1', E'a\\nb'", "22023", "subject"),
        ("'a.b', '/s', '1', null, ''", "22023", "tenant"),
        ("'a.b', '/s', to_jsonb(repeat('x', 65535))", "53400", "data"),
    ]) func `what is malformed or too large is refused`(_ values: String, _ state: String, _ field: String) async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let refusal = try await connection.refusal(of: "select millrace.event_publish(\(values))")
            #expect(refusal?.sqlState == state)
            #expect(refusal?.detail?.contains("\"field\" : \"\(field)\"") == true, "\(refusal?.detail ?? "-")")
            #expect(refusal?.hint?.isEmpty == false)
            #expect(
                try await connection.refusal(
                    of: "select millrace.event_publish('a.b', '/s', to_jsonb(repeat('x', 65534)))") == nil)
            await connection.close()
        }
    }

    @Test func `what commits late is numbered late, and nobody who reads on misses it`() async throws {
        try await withDatabase { database in
            let early = try await database.connect()
            let late = try await database.connect()
            let reader = try await database.connect()
            try await early.run("begin")
            try await publish(early, 1)  // draws the first place, and commits last
            try await publish(late, 2)
            #expect(try await feed(reader) == ["2"])
            let seen = try await reader.int("select max(seq) from millrace.events")
            try await publish(late, 3)
            try await early.run("commit")
            #expect(try await feed(reader, since: seen) == ["1", "3"])
            #expect(try await feed(reader) == ["2", "1", "3"])
            for connection in [early, late, reader] { await connection.close() }
        }
    }

    @Test func `what a reader numbered and rolled back is numbered again, behind nothing that was seen`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let slow = try await database.connect()
            try await publish(connection, 1)
            try await slow.run("begin")
            #expect(try await feed(slow) == ["1"])  // numbered there, and not yet for others
            try await publish(connection, 2)
            #expect(try await feed(connection).isEmpty)
            try await slow.run("rollback")
            #expect(try await feed(connection) == ["1", "2"])
            for connection in [connection, slow] { await connection.close() }
        }
    }

    @Test func `readers beside many publishers see every event once, in one order`() async throws {
        try await withDatabase { database in
            let writers = 6
            let each = 60
            let orders = try await withThrowingTaskGroup(of: [String]?.self) { group in
                for writer in 0..<writers {
                    group.addTask {
                        let connection = try await database.connect()
                        for turn in 0..<each {
                            try await connection.run("begin")
                            try await publish(connection, writer * 1000 + turn)
                            if turn % 7 == 3 {
                                try await connection.run("rollback")
                                try await connection.run("begin")
                                try await publish(connection, writer * 1000 + turn)
                            }
                            if turn % 5 == 0 { try await Task.sleep(for: .milliseconds(3)) }
                            try await connection.run("commit")
                        }
                        await connection.close()
                        return nil
                    }
                }
                for _ in 0..<3 {
                    group.addTask {
                        let connection = try await database.connect()
                        var order: [String] = []
                        var since: Int64 = 0
                        try await eventually("all are read") {
                            let page = try await connection.column(
                                "select seq || ' ' || id from millrace.events_changes(\(since), 50)"
                            ).map { $0.split(separator: " ") }
                            order += page.map { String($0[1]) }
                            since = page.last.flatMap { Int64($0[0]) } ?? since
                            return order.count == writers * each
                        }
                        await connection.close()
                        return order
                    }
                }
                return try await group.reduce(into: [[String]]()) { if let order = $1 { $0.append(order) } }
            }
            #expect(orders.count == 3 && Set(orders[0]).count == writers * each)
            #expect(orders.allSatisfy { $0 == orders[0] })
        }
    }

    @Test func `a publisher notifies when somebody sleeps, once a transaction`() async throws {
        try await withDatabase { database in
            let publisher = try await database.connect()
            let sleeper = try await database.connect()
            let count =
                """
                select count(*) from pg_locks where locktype = 'advisory' and objid = 64 and mode = 'ShareLock'
                   and database = (select oid from pg_database where datname = current_database())
                """
            try await publisher.run("begin")
            try await publish(publisher, 1)
            #expect(
                try await publisher.int(count) == 1,
                "it shares the lock until its commit: who goes to sleep waits for it")
            try await publisher.run("commit")
            try await sleeper.run("listen millrace_events; select pg_advisory_lock(1297239619, 64)")
            try await publisher.run("begin")
            for number in 2...4 { try await publish(publisher, number) }
            #expect(try await publisher.int(count) == 0)
            try await publisher.run("commit")
            let heard = try await sleeper.notifications(until: .now + .seconds(10))
            #expect(heard.map(\.channel) == ["millrace_events"])
            for connection in [publisher, sleeper] { await connection.close() }
        }
    }

    @Test func `after a fortnight it is gone, and numbers are not used again`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            try await publish(connection, 1)
            try await connection.run("select millrace.test_clock_advance('10 days')")
            try await publish(connection, 2)
            #expect(try await feed(connection) == ["1", "2"])
            try await connection.run("select millrace.test_clock_advance('5 days'); select millrace.maintain()")
            #expect(try await feed(connection) == ["2"])
            try await connection.run("select millrace.test_clock_advance('15 days')")
            try await publish(connection, 3)
            try await connection.run("select millrace.maintain()")
            #expect(try await connection.column("select seq || ':' || (data ->> 'n') from millrace.events") == ["3:3"])
            await connection.close()
        }
    }

    @Test func `a client publishes what it was granted, and only for its tenant`() async throws {
        try await RoleTests.withRoles { database, owner, roles in
            let client = try await database.connect(as: roles.client)
            let call = "select millrace.event_publish('com.app.changed', '/app', '{}')"
            try await owner.run("select millrace.grant_enqueue('\(roles.client)')")
            let denied = try await client.refusal(of: call)
            #expect(denied?.sqlState == "42501" && denied?.hint?.contains("grant_publish") == true)
            try await owner.run("select millrace.grant_publish('\(roles.client)', 'com.app.changed')")
            #expect(try await client.refusal(of: call) == nil)
            #expect(
                try await client.refusal(of: "select millrace.event_publish('com.app.other', '/app', '{}')")?.sqlState
                    == "42501")
            try await client.run(#"select set_config('request.jwt.claims', '{"tenant": "acme"}', false)"#)
            #expect(try await client.refusal(of: call) == nil)
            #expect(
                try await client.refusal(
                    of: "select millrace.event_publish('com.app.changed', '/app', '{}', tenant => 'other')")?
                    .sqlState == "42501")
            #expect(try await owner.column("select tenant from millrace.events order by time") == ["null", "acme"])
            // About another role's event it learns only that the id is taken.
            try await owner.run("select millrace.event_publish('com.app.changed', '/app', '{}', id => \(Self.id))")
            let taken = try await client.refusal(
                of: "select millrace.event_publish('com.app.changed', '/app', '{}', id => \(Self.id))")
            #expect(taken?.sqlState == "23505" && taken?.detail?.contains(#""field" : "id""#) == true)
            #expect(try await client.refusal(of: "select * from millrace.events_changes()")?.sqlState == "42501")
            for connection in [client] { await connection.close() }
        }
    }
}
