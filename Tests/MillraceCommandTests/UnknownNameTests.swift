import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

private func run(_ words: [String], _ url: String) async -> Outcome {
    let capture = Capture()
    let code = await Application.run(
        arguments: words + ["--database-url", url], surroundings: .fake(), console: capture.console)
    return Outcome(code: code, output: capture.output, errors: capture.errors)
}

@Suite struct UnknownNameTests {
    /// Every verb that acts on a named thing, with a mistyped name, and the name that was meant.
    static let acts: [(words: [String], meant: String)] = [
        (["queues", "pause", "mial"], "mail"), (["queues", "pause", "mail", "mial"], "mail"),
        (["queues", "resume", "mial"], "mail"), (["queues", "drain", "mial"], "mail"),
        (["queues", "wait", "mial"], "mail"), (["queues", "remove", "mial"], "mail"),
        (["queues", "retention", "mial", "short"], "mail"),
        (["queues", "limit", "mial", "--concurrency", "3"], "mail"),
        (["queues", "limit", "mial", "--remove"], "mail"),
        (["providers", "open", "resnd"], "resend"), (["providers", "close", "resnd"], "resend"),
        (["providers", "block", "resnd"], "resend"), (["providers", "allow", "resnd"], "resend"),
        (["providers", "observe", "resnd"], "resend"), (["providers", "reset", "resnd"], "resend"),
        (["flags", "set", "new-sendr", "10"], "new-sender"),
        (["schedules", "pause", "nightli"], "nightly"), (["schedules", "resume", "nightli"], "nightly"),
        (["schedules", "remove", "nightli"], "nightly"), (["schedules", "run", "nightli"], "nightly"),
        (["jobs", "retry", "--dead", "--queue", "mial", "--yes"], "mail"),
        (["jobs", "cancel", "--queue", "mial", "--yes"], "mail"),
        (["jobs", "delete", "--queue", "mial", "--yes"], "mail"),
        (["jobs", "cancel", "--kind", "mail.sned", "--yes"], "mail.send"),
        (["jobs", "delete", "--kind", "mail.sned", "--yes"], "mail.send"),
        (["jobs", "retry", "--dead", "--kind", "mail.sned", "--yes"], "mail.send"),
    ]

    @Test func `who takes a room for a queue is told what its pause does not reach`() async throws {
        try await withDatabase { database in
            let outcome = await millrace("queues", "pause", "check-ins", "--database-url", database.url)
            #expect(outcome.code == .notFound && outcome.errors.contains("no queue's pause reaches them"))
        }
    }

    @Test func `a mistyped name is exit 3 with what was probably meant, and changes nothing`() async throws {
        try await withDatabase { database in
            try await database.change(
                """
                select millrace.enqueue('mail.send', queue => 'mail');
                select millrace.provider_force('resend', 'observe', 'test');
                select millrace.flag_set('new-sender', 5);
                select millrace.schedule_set('nightly', '0 2 * * *', 'mail.send')
                """)
            let connection = try await database.connect()
            func all() async throws -> [String] {
                try await connection.column(
                    """
                    select row(q.name, q.paused_at, q.retention)::text from millrace.queue q union all
                    select c::text from millrace.provider_circuit c union all select f::text from millrace.flag f union all
                    select s::text from millrace.schedule s union all select l::text from millrace.limit_rule l union all
                    select j.id::text from millrace.job j union all select r.job::text from millrace.ready r order by 1
                    """)
            }
            let before = try await all()
            for (words, meant) in Self.acts {
                let outcome = await run(words, database.url)
                #expect(outcome.code == .notFound, "\(words): \(outcome.errors)")
                #expect(outcome.errors.contains("did you mean \(meant)?"), "\(words): \(outcome.errors)")
            }
            #expect(try await all() == before)
            await connection.close()
        }
    }

    @Test func `--create makes what is not known yet`() async throws {
        try await withDatabase { database in
            for words in [
                ["queues", "pause", "new"], ["queues", "limit", "newer", "--concurrency", "1"],
                ["queues", "retention", "newest", "short"], ["providers", "block", "smtp"],
                ["flags", "set", "f", "10"],
            ] {
                #expect(await run(words, database.url).code == .notFound)
                let made = await run(words + ["--create"], database.url)
                #expect(made.code == .done, "\(words): \(made.errors)")
            }
        }
    }

    @Test func `only a queue that nothing uses is removed`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(await run(["queues", "pause", "mial", "--create"], url).code == .done)
            let removed = await run(["queues", "remove", "mial", "--json"], url)
            #expect(removed.code == .done)
            #expect(try JSONValue.read(removed.output)["queues"] == [["queue": "mial", "removed": true]])
            #expect(await run(["queues", "remove", "mial"], url).code == .notFound)
            try await database.change(
                """
                select millrace.enqueue('a', queue => 'ready'), millrace.enqueue('a', queue => 'later', run_at => 'tomorrow'),
                       millrace.enqueue('a', queue => 'ended'), millrace.enqueue('a', queue => 'tenants', tenant => 't');
                select millrace.cancel(max(id)) from millrace.job where queue = (select id from millrace.queue where name = 'ended');
                select millrace.register_kinds(array['b'], array['kinds']);
                select millrace.pause('scheduled');
                select millrace.schedule_set('s', '0 2 * * *', 'a', queue => 'scheduled')
                """)
            for queue in ["default", "ready", "later", "ended", "tenants", "kinds", "scheduled"] {
                let refused = await run(["queues", "remove", queue], url)
                #expect(refused.code == .conflict, "\(queue): \(refused.errors)")
                #expect(refused.errors.contains("the queue \(queue) cannot be removed"), "\(refused.errors)")
            }
            // Jobs go into a removed queue again as into a new one.
            try await database.change("delete from millrace.schedule")
            #expect(await run(["queues", "remove", "scheduled"], url).code == .done)
            try await database.change("select millrace.enqueue('a', queue => 'scheduled')")
            #expect(await run(["jobs", "list", "--queue", "scheduled", "--jsonl"], url).output.contains("scheduled"))
        }
    }

    @Test func `a queue is not removed under a transaction that has enqueued and not committed`() async throws {
        try await withDatabase { database in
            #expect(await run(["queues", "pause", "mail", "--create"], database.url).code == .done)
            let caller = try await database.connect()
            try await caller.run("begin; select millrace.enqueue('a', queue => 'mail')")
            let refused = await run(["queues", "remove", "mail"], database.url)
            #expect(refused.code == .conflict && refused.errors.contains("still open"), "\(refused.errors)")
            try await caller.run("commit")
            let again = await run(["queues", "remove", "mail"], database.url)
            #expect(again.code == .conflict && again.errors.contains("it has jobs"), "\(again.errors)")
            await caller.close()
        }
    }
}
