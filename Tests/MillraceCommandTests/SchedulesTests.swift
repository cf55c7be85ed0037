import Calendars
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct SchedulesTests {
    @Test func `a schedule is added, changed, listed, shown, paused, run and removed`() async throws {
        try await withDatabase { database in
            let url = database.url
            let added = await millrace(
                "schedules", "add", "nightly", "0 2 * * *", "report.build", "{\"a\":1}", "--zone", "Europe/Berlin",
                "--catch-up", "all", "--catch-up-limit", "5", "--overlap", "skip", "--jitter", "5m", "--queue", "night",
                "--priority", "3", "--json", "--database-url", url)
            #expect(added.code == .done, "\(added.errors)")
            let json = try JSONValue.read(added.output)
            #expect(json["change"]?.text == "created" && json["version"]?.integer == 1)
            let schedule = try #require(json["schedule"])
            #expect(schedule["catch_up"]?.text == "all" && schedule["catch_up_limit"]?.integer == 5)
            #expect(schedule["overlap"]?.text == "skip" && schedule["queue"]?.text == "night")
            #expect(schedule["jitter_seconds"] == .number("300") || schedule["jitter_seconds"] == .number("300.0"))

            func add(_ more: String...) async -> Outcome {
                let capture = Capture()
                let code = await Application.run(
                    arguments: ["schedules", "add", "poll", "every 90s", "feed.poll", "--database-url", url] + more,
                    surroundings: .fake(), console: capture.console)
                return Outcome(code: code, output: capture.output, errors: capture.errors)
            }
            #expect(await add().output == "poll: created\n")
            #expect(await add().output == "poll: unchanged\n")
            #expect(await add("--paused").output == "poll: changed\n")
            #expect(await add().output == "poll: unchanged\n")
            #expect(await millrace("schedules", "resume", "poll", "--database-url", url).output == "poll: resumed\n")
            #expect(await millrace("schedules", "pause", "poll", "--database-url", url).output == "poll: paused\n")
            #expect(
                await millrace("schedules", "pause", "poll", "--database-url", url).output == "poll: paused already\n")

            let list = await millrace("schedules", "list", "--jsonl", "--database-url", url)
            #expect(
                try list.output.split(separator: "\n").map { try JSONValue.read(String($0))["name"]?.text }.sorted {
                    $0 ?? "" < $1 ?? ""
                } == ["nightly", "poll"])
            let ran = await millrace("schedules", "run", "poll", "--database-url", url)
            #expect(ran.code == .done && Int(ran.output.dropLast()) != nil, "\(ran.output)")
            let shown = await millrace("schedules", "show", "poll", "--database-url", url)
            #expect(shown.output.contains("manual, job \(ran.output.dropLast())"), "\(shown.output)")
            #expect(shown.output.contains("every 90s") && shown.output.contains("paused"))
            #expect(await millrace("schedules", "remove", "poll", "nightly", "--database-url", url).code == .done)
            #expect(await millrace("schedules", "list", "--database-url", url).output == "no schedules\n")
        }
    }

    @Test func `a mistake is 2 before anything is written, an unknown name 3`() async throws {
        try await withDatabase { database in
            let url = database.url
            for (words, sentence) in [
                (["s", "0 25 * * *", "k"], "hour: 25 is out of range; give 0 to 23"),
                (["s", "* * * *", "k"], "it has 4 fields"),
                (["s", "0 0 30 2 *", "k"], "never fires"),
                (["s", "@daily", "k", "--zone", "Europe/Berln"], "did you mean Europe/Berlin?"),
                (["s", "@daily", "k", "--zone", "berlin"], "did you mean Europe/Berlin?"),
                (["s", "@daily", "k", "--catch-up", "lates"], "did you mean latest?"),
                (["s", "@daily", "k", "{\"a\""], "malformed JSON"),
                (["s s", "@daily", "k"], "takes a schedule's name"),
                (["s", "@daily"], "kind"),
            ] {
                let capture = Capture()
                let code = await Application.run(
                    arguments: ["schedules", "add", "--database-url", url] + words, surroundings: .fake(),
                    console: capture.console)
                #expect(code == .misused && capture.errors.contains(sentence), "\(words): \(capture.errors)")
            }
            #expect(await millrace("schedules", "list", "--database-url", url).output == "no schedules\n")
            for verb in ["show", "pause", "resume", "remove", "run", "next"] {
                let outcome = await millrace("schedules", verb, "ghost", "--database-url", url)
                #expect(outcome.code == .notFound && outcome.errors.contains("there is no schedule"), "\(verb)")
            }
        }
    }

    @Test func `the coming times of any expression need no database`() async throws {
        let outcome = await millrace(
            "schedules", "next", "--cron", "30 2 * * *", "--zone", "Europe/Berlin", "--after", "2027-03-26T12:00:00Z",
            "--count", "3")
        #expect(outcome.code == .done, "\(outcome.errors)")
        #expect(
            outcome.output.split(separator: "\n").map { $0.prefix(25) } == [
                "2027-03-27T02:30:00+01:00", "2027-03-28T03:00:00+02:00", "2027-03-29T02:30:00+02:00",
            ])
        let json = await millrace("schedules", "next", "--cron", "every 1h", "--count", "2", "--json")
        guard case .array(let times)? = try JSONValue.read(json.output)["times"] else {
            Issue.record("\(json.output)")
            return
        }
        #expect(times.count == 2)
        #expect(await millrace("schedules", "next").code == .misused)
        #expect(await millrace("schedules", "next", "--cron", "@dayly").code == .misused)
        #expect(await millrace("schedules", "next", "a", "--cron", "@daily").code == .misused)
    }

    @Test func `status tells the schedules, and what is wrong with them`() async throws {
        try await withDatabase(.movableClock) { database in
            let url = database.url
            let empty = await millrace("status", "--database-url", url)
            #expect(!empty.output.contains("schedules"))
            #expect(
                await millrace("schedules", "add", "nightly", "0 2 * * *", "k", "--database-url", url).code == .done)
            let waiting = await millrace("status", "--database-url", url)
            #expect(
                waiting.output.contains("schedules") && waiting.output.contains("waits for a worker"),
                "\(waiting.output)")
            try await database.change(
                "update millrace.schedule set next_at = millrace.now() - interval '5 min', missed = 3, last_missed_at = millrace.now()"
            )
            let late = await millrace("status", "--json", "--database-url", url)
            #expect(late.code == .degraded)
            #expect(late.output.contains("schedule nightly is overdue: no worker fires it"), "\(late.output)")
            #expect(late.output.contains("schedule nightly missed times in the last hour"))
            guard case .array(let rows)? = try JSONValue.read(late.output)["schedules"] else {
                Issue.record("\(late.output)")
                return
            }
            #expect(rows.first?["missed"]?.integer == 3 && rows.first?["overdue"] == .bool(true))
            try await database.change(
                "update millrace.schedule set problem = 'there is no time zone \"X\"', problem_at = millrace.now()")
            let broken = await millrace("status", "--database-url", url)
            #expect(broken.output.contains("schedule nightly cannot fire: there is no time zone \"X\""))
        }
    }
}

@Suite struct ZoneCheckTests {
    @Test func `the doctor notices that this machine has no time zones`() {
        #expect(Doctor.judge(ZoneFiles(directory: "/usr/share/zoneinfo")).severity == .ok)
        let none = Doctor.judge(ZoneFiles(directory: "/nonexistent"))
        #expect(none.severity == .degraded && none.advice?.contains("tzdata") == true)
    }
}
