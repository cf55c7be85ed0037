import MillraceQueues
import Postgres
import Telemetry
import TestSupport
import Testing
import Workers

@testable import MillraceCommand

/// `millrace why`, and the same answer in `status`.
@Suite struct WhyVerbTests {
    @Test func `a job and a queue say what holds them up, step by step, with a command`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change("select millrace.enqueue('test', queue => 'mail'), millrace.pause('mail')")
            let outcome = await millrace("why", "1", "--database-url", url)
            #expect(outcome.code == .done && outcome.errors.isEmpty, "\(outcome.errors)")
            let lines = outcome.output.split(separator: "\n")
            #expect(lines.count == 5, "\(outcome.output)")
            #expect(lines[0].hasPrefix("its queue mail has been paused since "), "\(outcome.output)")
            #expect(lines[1].hasPrefix("  1. job 1 (test) is ready in the queue mail"), "\(outcome.output)")
            #expect(lines.last == "run: millrace queues resume mail", "\(outcome.output)")
            let quiet = await millrace("why", "--queue", "mail", "--quiet", "--database-url", url)
            #expect(
                quiet.output.hasPrefix("the queue mail has been paused since ")
                    && quiet.output.split(separator: "\n").count == 1)
            let json = try JSONValue.read(
                await millrace("why", "--queue", "mail", "--json", "--database-url", url).output)
            #expect(json["why"]?["reason"]?.text == "queue_paused" && json["queue"]?.text == "mail")
            #expect(json["job"] == .null && json["why"]?["oldest_job"]?.integer == 1)
        }
    }

    @Test func `what is not there, and what asks for both or neither, is refused`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change("select millrace.register_queues(array['mail'])")
            let unknown = await millrace("why", "404", "--database-url", url)
            #expect(unknown.code == .notFound && unknown.errors.contains("there is no job 404"), "\(unknown.errors)")
            let queue = await millrace("why", "--queue", "mial", "--database-url", url)
            #expect(
                queue.code == .notFound && queue.errors.contains("there is no queue mial; did you mean mail?"),
                "\(queue.errors)")
            #expect(await millrace("why", "--database-url", url).code == .misused)
            #expect(await millrace("why", "1", "--queue", "mail", "--database-url", url).code == .misused)
            #expect(await millrace("why", "--queue", "check-ins", "--database-url", url).code == .done)
        }
    }

    @Test func `a job that has succeeded has nothing to explain`() async throws {
        try await withDatabase { database in
            try await database.change(
                """
                select millrace.enqueue('test');
                delete from millrace.ready;
                insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes)
                select id, 0, id, now(), now(), kind, queue, 1, 1, 1, 0 from millrace.job
                """)
            let outcome = await millrace("why", "1", "--database-url", database.url)
            #expect(outcome.code == .done && outcome.output == "job 1 succeeded: nothing holds it\n")
        }
    }

    @Test func `status says why a late queue does not move, and the command, and is silent about one that does`()
        async throws
    {
        try await withDatabase { database in
            let url = database.url
            try await database.change(
                """
                select millrace.enqueue('test', queue => 'mail'), millrace.enqueue('test', queue => 'other'), millrace.enqueue('test', queue => 'fresh');
                update millrace.job set enqueued_at = enqueued_at - interval '1 hour' where queue <> (select id from millrace.queue where name = 'fresh');
                select millrace.pause('other');
                select millrace.session_open(1, 'w', 'h', 1, '0', '{default}', array(select id from millrace.kind), 10, false)
                """)
            let outcome = await millrace("status", "--database-url", url, columns: 200)
            #expect(
                outcome.output.contains(
                    "mail: the oldest job waits for 1h; job 1: "
                        + "no running worker that knows the kind test takes from the queue mail"
                ), "\(outcome.output)")
            #expect(outcome.output.contains("run: millrace workers list"), "\(outcome.output)")
            #expect(outcome.output.contains("run: millrace queues resume other"), "\(outcome.output)")
            let json = try JSONValue.read(await millrace("status", "--json", "--database-url", url).output)
            let whys = Dictionary(
                (json["queues"]?.items ?? []).map { ($0["queue"]?.text ?? "", $0["why"]?["reason"]?.text) },
                uniquingKeysWith: { first, _ in first })
            #expect(whys["mail"] == "queue_unserved" && whys["other"] == "queue_paused")
            #expect(whys["fresh"] == .some(nil), "\(whys)")
        }
    }

    @Test func `a worker that is too old for the schema says so before it ends, and why tells it`() async throws {
        try await withDatabase { database in
            try await database.change(
                """
                select millrace.enqueue('practice.nothing');
                update millrace.setting set value = '9999' where name = 'oldest_worker'
                """)
            let worker = JobWorker(
                options: JobWorker.Options(database: database.options, name: "test"), handlers: Practice.handlers,
                log: .standardError(threshold: .error, format: .text))
            await #expect(throws: JobWorker.Failure.self) { _ = try await worker.run() }
            let connection = try await database.connect()
            let kinds = try await connection.value("select array_to_string(kinds, ' ') from millrace.refused_worker")
            #expect(kinds?.contains("practice.nothing") == true, "\(kinds ?? "nothing was noted")")
            let said = try await connection.value(
                "select y ->> 'reason' || ': ' || (y ->> 'sentence') from millrace.why(1) y")
            #expect(said?.hasPrefix("worker_too_old: worker test on ") == true, "\(said ?? "")")
            await connection.close()
        }
    }
}
