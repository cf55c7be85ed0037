import Postgres
import TestSupport
import Testing

/// What a form may change in arguments, of which it shows only what no rule hides.
@Suite struct EditTests {
    private static let rules = """
        select millrace.kind_id('report'), millrace.kind_id('open');
        select millrace.kind_redactions_set('report', array['buyer.town', 'people.*.born'])
        """
    private static let old =
        #"{"buyer": {"name": "ann", "town": "Graz"}, "people": [{"n": 1, "born": 1990}, {"n": 2, "born": 1980}], "password": "p", "page": 1.50}"#

    /// The given arguments, and what becomes of them; nil: they are refused with the sentence.
    private static let edits: [(given: String, new: String?, sentence: String)] = [
        (
            #"{"buyer": {"name": "eve", "town": "[redacted]"}, "people": [{"n": 9, "born": "[redacted]"}, {"n": 2, "born": "[redacted]"}, {"n": 3}], "password": "[redacted]", "more": [null]}"#,
            #"{"buyer": {"name": "eve", "town": "Graz"}, "people": [{"n": 9, "born": 1990}, {"n": 2, "born": 1980}, {"n": 3}], "password": "p", "more": [null]}"#,
            ""
        ),
        (
            #"{"buyer": {"town": "Linz"}, "people": [{"born": "[redacted]"}, {"born": "[redacted]"}], "password": "[redacted]"}"#,
            nil, "the value at buyer.town is hidden"
        ),
        (
            #"{"buyer": {"town": "[redacted]"}, "people": [{"born": "[redacted]"}], "password": "[redacted]"}"#, nil,
            "people has hidden values"
        ),
        (
            #"{"buyer": {"town": "[redacted]"}, "people": [{"born": 1}, {"born": "[redacted]"}], "password": "[redacted]"}"#,
            nil, "the value at people.0.born is hidden"
        ),
        (
            #"{"buyer": "[redacted]", "people": [{"born": "[redacted]"}, {"born": "[redacted]"}], "password": "[redacted]"}"#,
            nil, "buyer has hidden values"
        ),
        (
            #"{"buyer": {"town": "[redacted]"}, "people": [{"born": "[redacted]"}, {"born": "[redacted]"}], "passwort": "[redacted]"}"#,
            nil, "the value at password is hidden"
        ),
        (
            #"{"buyer": {"town": "[redacted]"}, "people": [{"born": "[redacted]"}, {"born": "[redacted]"}, {"born": 1970}], "password": "[redacted]"}"#,
            nil, "a rule hides a value"
        ),
        (
            #"{"buyer": {"town": "[redacted]", "name": "[redacted]"}, "people": [{"born": "[redacted]"}, {"born": "[redacted]"}], "password": "[redacted]"}"#,
            nil, "is given where nothing was hidden"
        ),
        ("null", nil, "the object has hidden values"), ("[]", nil, "the object has hidden values"),
    ]

    @Test func `what is hidden stays where it is, and is neither set nor shown nor dropped`() async throws {
        try await withConnection { connection in
            try await connection.run(Self.rules)
            for one in Self.edits {
                let call = "millrace.args_edited('report', 'report', '\(Self.old)', '\(one.given)')"
                if let new = one.new {
                    #expect(try await connection.bool("select \(call) = '\(new)'"), "\(one.given)")
                } else {
                    let refusal = try await connection.refusal(of: "select \(call)")
                    #expect(refusal?.sqlState == "22023", "\(one.given): \(refusal?.message ?? "done")")
                    #expect(refusal?.message.contains(one.sentence) == true, "\(refusal?.message ?? "")")
                    #expect(refusal?.message.contains("Graz") == false)
                }
            }
            // Where nothing is hidden, all may change, and a text of that name is a text.
            for given in ["[1, 2]", "7", "null", #"{"a": "[redacted]"}"#, "{}"] {
                let call = #"millrace.args_edited('open', 'open', '{"a": "[redacted]", "b": 1}', '\#(given)')"#
                #expect(try await connection.bool("select \(call) = '\(given)'"), "\(given)")
            }
        }
    }

    @Test func `a schedule takes no kind under which its hidden arguments would be shown`() async throws {
        try await withConnection { connection in
            try await connection.run(Self.rules)
            try await connection.run(
                "select millrace.schedule_set('s', 'every 1h', 'report', '{\"buyer\": {\"town\": \"Graz\"}}')")
            for args in ["null", #"'{"buyer": {"town": "[redacted]"}}'"#] {
                let refusal = try await connection.refusal(
                    of:
                        "select millrace.schedule_save('s', 'every 2h', 'open', \(args), was => changed_at) from millrace.schedule"
                )
                #expect(refusal?.message.contains("would show") == true, "\(refusal?.message ?? "done")")
            }
            try await connection.run(
                "select millrace.schedule_save('s', 'every 2h', 'report', null, was => changed_at) from millrace.schedule"
            )
            #expect(
                try await connection.value("select args from millrace.schedule") == #"{"buyer": {"town": "Graz"}}"#)
        }
    }

    @Test func `only a job that is dead or cancelled gets other arguments, and a refusal changes nothing`() async throws
    {
        try await withConnection { connection in
            let states = [
                "ready": "select millrace.enqueue('report', '{\"n\": 1}')",
                "scheduled": "select millrace.enqueue('report', '{\"n\": 1}', run_at => now() + interval '1 h')",
            ]
            for (state, sql) in states {
                let id = try await connection.int(sql)
                let refusal = try await connection.refusal(of: "select millrace.retry_with(\(id), '{\"n\": 2}')")
                #expect(refusal?.sqlState == "55000" && refusal?.message.contains("neither dead") == true, "\(state)")
                try await connection.run("select millrace.cancel(\(id))")
                let bad = try await connection.refusal(of: "select millrace.retry_with(\(id), null)")
                #expect(bad?.message.contains("args is null") == true)
                #expect(try await connection.value("select state from millrace.jobs where id = \(id)") == "cancelled")
                #expect(try await connection.bool("select millrace.retry_with(\(id), '{\"n\": 2}')"))
                #expect(
                    try await connection.records("select state, args from millrace.jobs where id = \(id)")
                        == [#"(ready,"{""n"": 2}")"#])
            }
        }
    }

    @Test func `encrypted arguments are replaced by encrypted ones only, and the audit says no more`() async throws {
        let sealed = #"{"$millrace": "sealed", "v": 1, "key": "k", "data": "AAAA"}"#
        try await withConnection { connection in
            let id = try await connection.int("select millrace.enqueue('report', '\(sealed)')")
            try await connection.run("select millrace.cancel(\(id))")
            let refusal = try await connection.refusal(of: "select millrace.retry_with(\(id), '{\"n\": 2}')")
            #expect(refusal?.message == "the arguments are encrypted, and these are not")
            try await connection.run("select millrace.retry_with(\(id), '\(sealed.replacing("AAAA", with: "BBBB"))')")
            #expect(
                try await connection.value("select detail::text from millrace.audit where action = 'job.edit'")
                    == #"{"changes": [{"args": "encrypted again"}]}"#)
        }
    }

    @Test func `a job that somebody's open transaction holds is told nothing, and nobody waits for that transaction`()
        async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            let id = try await connection.int("select millrace.enqueue('report')")
            try await connection.run(
                """
                with waiting as (delete from millrace.ready r where r.job = \(id) returning r.*), timed as (
                    insert into millrace.timer (job, due, queue, kind, lane, attempt, crashes)
                    select w.job, now() + interval '1 day', w.queue, w.kind, w.lane, w.attempt, w.crashes from waiting w returning job, due)
                insert into millrace.wait (job, step, what, name, key, since, due, place, attempt, crashes)
                select t.job, 'ask', 2, 'paid', '', now(), t.due, t.due, 0, 0 from timed t
                """)
            let holder = try await database.connect()
            for table in ["wait", "timer"] {
                try await holder.run("begin; select from millrace.\(table) where job = \(id) for update")
                let refusal = try await connection.refusal(of: "select millrace.signal_waiting(\(id), 'paid', '7')")
                #expect(refusal?.message.contains("somebody else is acting") == true, "\(refusal?.message ?? "done")")
                try await holder.run("rollback")
            }
            #expect(try await connection.bool("select millrace.signal_waiting(\(id), 'paid', '7')"))
            #expect(try await connection.value("select state from millrace.jobs where id = \(id)") == "ready")
            await holder.close()
            await connection.close()
        }
    }
}
