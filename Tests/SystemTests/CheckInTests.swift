import Foundation
import Glibc
import Postgres
import TestSupport
import Testing

@Suite struct CheckInProcessTests {
    private static func run(_ arguments: [String], on database: TestDatabase) async throws -> (
        code: Int32, output: String
    ) {
        let process = try MillraceProcess(arguments, database: database.url)
        return (try await process.ended(), process.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }

    @Test func `workers that are killed while check-ins are missed leave nobody untold, and tell nobody twice`()
        async throws
    {
        try await withDatabase { database in
            let owner = try await database.connect()
            try await owner.run(
                """
                insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
                select 'p' || g, '1 hour', '5 min', '{}', 'UTC', 'armed', now(), x.due, x.due, now()
                  from generate_series(1, 400) g, lateral (select now() + g * interval '10 ms' as due) x;
                insert into millrace.watch_contact (person, contact, step, wait, created_at)
                select w.person, w.person || c.suffix, 1, '1 hour', now() from millrace.watch w, (values ('-a'), ('-b')) c(suffix);
                insert into millrace.watch_address (ref, person, contact, channel, address, verified_at)
                select gen_random_uuid(), person, contact, 'mail', contact || '@example.com', now() from millrace.watch_contact
                """)
            let crew = (0..<2).map { number in
                Supervised { turn in
                    try await MillraceProcess.worker("w\(number)-\(turn)", database: database.url, ["--checkins"])
                }
            }
            for worker in crew { try await worker.begin() }
            for turn in 0..<4 {
                try await Task.sleep(for: .milliseconds(Int.random(in: 20...300)))
                await crew[turn % 2].kill()
            }
            try await eventually("all are told") {
                try await owner.int("select count(*) from millrace.alarms") == 400
            }
            for worker in crew { try await worker.stop() }
            // One alarm each, and one notice for each contact: interrupted work was rolled back as a whole.
            #expect(try await owner.int("select count(distinct person) from millrace.alarms") == 400)
            #expect(try await owner.int("select count(*) from millrace.notice") == 800)
            #expect(try await owner.int("select count(*) from millrace.alarms where expired_at > raised_at") == 0)
            await owner.close()
        }
    }

    @Test func `at the boundary the row decides, and both sides agree`() async throws {
        try await withDatabase { database in
            let tries = ProcessInfo.processInfo.environment["MILLRACE_TEST_RACES"] ?? "1500"
            let race = try MillraceProcess(
                ["load", "checkins", "--part", "race", "--tries", tries, "--json", "--quiet"], database: database.url)
            #expect(try await race.ended(within: .seconds(1200)) == 0)
            #expect(
                race.output.contains(#""disagreements": 0"#) && race.output.contains("\"tries\": \(tries)"),
                "\(race.output)")
        }
    }

    @Test func `a watch is armed, seen, missed, answered and ended from the command line`() async throws {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            #expect(try await Self.run(["checkins", "arm", "anna"], on: database).code == 4)
            #expect(try await Self.run(["checkins", "show", "anna"], on: database).code == 3)
            let added = try await Self.run(
                [
                    "checkins", "contacts", "anna", "--add", "mum", "--mail", "mum@example.com", "--sms",
                    "+4915112345678",
                ],
                on: database)
            #expect(added.code == 0 && added.output.contains("asked"), "\(added.output)")
            #expect(
                try await Self.run(["checkins", "contacts", "anna", "--add", "x", "--sms", "110"], on: database).code
                    == 2)
            #expect(
                try await Self.run(["checkins", "contacts", "anna", "--confirm", "mum"], on: database).output.contains(
                    "given"))
            let armed = try await Self.run(["checkins", "arm", "anna", "--every", "2h", "--warn", "15m"], on: database)
            #expect(armed.code == 0 && armed.output.hasPrefix("anna is watched over until 2"), "\(armed.output)")
            #expect(try await Self.run(["checkins", "check-in", "anna"], on: database).code == 0)
            #expect(try await Self.run(["checkins", "interval", "anna", "30m"], on: database).code == 0)
            #expect(try await Self.run(["checkins", "pause", "anna", "--for", "1h"], on: database).code == 0)
            let shown = try await Self.run(["checkins", "show", "anna", "--json"], on: database)
            #expect(shown.output.contains(#""state": "paused""#) && shown.output.contains(#""version": 1"#))
            #expect(try await Self.run(["checkins", "drill", "anna"], on: database).code == 0)
            // Nobody watches, and status says so.
            let late = try await Self.run(["status"], on: database)
            #expect(late.output.contains("nobody watches over the check-ins: no worker has ever looked"))
            try await owner.run("select millrace.test_clock_advance('3 hours')")
            // The setting is missing, but there is a watch.
            let worker = try await MillraceProcess.worker("w", database: database.url)
            try await eventually("the alarm is raised") {
                try await owner.int("select count(*) from millrace.alarms where cause = 'expired'") == 1
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            let id = try #require(try await owner.value("select id from millrace.alarms where cause = 'expired'"))
            #expect(try await Self.run(["checkins", "alarms"], on: database).output.contains(id))
            #expect(
                try await Self.run(["checkins", "acknowledge", id, "--by", "mum"], on: database).output
                    == "the alarm is acknowledged")
            #expect(try await Self.run(["checkins", "acknowledge", id, "--by", "eve"], on: database).code == 3)
            #expect(
                try await Self.run(["checkins", "resolve", id, "--reason", "found"], on: database).output
                    == "the alarm is over")
            #expect(try await Self.run(["checkins", "history", "anna"], on: database).output.contains("resolved"))
            #expect(
                try await Self.run(["checkins", "list", "--state", "expired"], on: database).output.contains("anna"))
            #expect(try await Self.run(["checkins", "disarm", "anna"], on: database).code == 0)
            let number = ["checkins", "block", "voice", "+4915112345678"]
            #expect(try await Self.run(number, on: database).output == "nobody asks there any more")
            #expect(try await Self.run(number + ["--lift"], on: database).output == "it may be asked again")
            #expect(try await Self.run(["checkins", "block", "fax", "1"], on: database).code == 2)
            await owner.close()
        }
    }
}
