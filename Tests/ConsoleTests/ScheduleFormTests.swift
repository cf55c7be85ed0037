import Calendars
import Foundation
import TestSupport
import Testing

@testable import Console

/// A schedule that is made and changed in the console.
@Suite(.timeLimit(.minutes(10))) struct ScheduleFormTests {
    private func press(_ form: [String: String], _ world: ConsoleWorld) async throws -> RawAnswer {
        try await world.post(
            "/console/act/schedule.save",
            form.sorted { $0.key < $1.key }.map { ($0, $1) } + [("form_token", try await world.formToken())])
    }

    private static let made = [
        "name": "made", "kind": "image.resize", "expression": "30 2 * * *", "zone": "Europe/Vienna", "queue": "",
        "args": "{\"width\": 9}",
    ]

    @Test func `the next times are said in words and by the clocks of the zone, also when these change`() throws {
        let plan = try ScheduleForm.Plan(Self.made)
        // On 2026-03-29 there is no 02:30 in Vienna; on 2026-10-25 there are two.
        let spring = try Date("2026-03-28T12:00:00Z", strategy: .iso8601)
        #expect(
            plan.times(2, after: spring).map { ScheduleForm.words($0, in: plan.zone) } == [
                "Sunday 29 March 2026, 03:00 in Europe/Vienna", "Monday 30 March 2026, 02:30 in Europe/Vienna",
            ])
        var other = Self.made
        other["expression"] = "every 90s"
        #expect(
            try ScheduleForm.Plan(other).times(2, after: spring).map { ScheduleForm.words($0, in: .utc) } == [
                "Saturday 28 March 2026, 12:01:30 in UTC", "Saturday 28 March 2026, 12:03 in UTC",
            ])
        // An interval that stays counts on from where it began.
        other["had"] = "every 90s"
        other["anchor"] = "2026-03-28T11:59:40+00:00"
        #expect(
            try ScheduleForm.Plan(other).times(1, after: spring).map { ScheduleForm.words($0, in: .utc) } == [
                "Saturday 28 March 2026, 12:01:10 in UTC"
            ])
    }

    @Test func `a schedule is shown before it is saved, and a name that is taken is refused`() async throws {
        try await ConsoleWorld.with { world in
            #expect(try await world.get("/console/schedules").body.contains("href=\"/console/schedules/new\""))
            let empty = try await world.get("/console/schedules/new").body
            #expect(empty.contains("Show the next times") && !empty.contains("Save the schedule"))
            let shown = try await press(Self.made.merging(["press": "preview"]) { $1 }, world)
            #expect(shown.status == 200 && shown.body.contains("Save the schedule"), "\(shown.body.suffix(2000))")
            #expect(shown.body.components(separatedBy: " in Europe/Vienna · in ").count == 6, "\(shown.body)")
            #expect(!shown.body.contains("Is it spelled correctly?"))
            let names = "select count(*) from millrace.schedule where name = 'made'"
            #expect(try await world.connection.int(names) == 0, "a look saves nothing")
            let saved = try await press(Self.made.merging(["press": "save"]) { $1 }, world)
            #expect(saved.header("Location") == "/console/schedule?name=made&said=done", "\(saved.body.suffix(900))")
            #expect(try await world.connection.int(names) == 1)
            let taken = try await press(Self.made, world)
            #expect(
                taken.status == 409 && taken.body.contains("there is already a schedule"), "\(taken.body.suffix(900))")
            #expect(taken.body.contains("value=\"30 2 * * *\""), "what was written stays")
        }
    }

    @Test func `what is wrong with a schedule is said in a sentence`() async throws {
        try await ConsoleWorld.with { world in
            for (field, value, sentence) in [
                ("expression", "61 * * * *", "when it fires cannot be read: minute"),
                ("expression", "every now and then", "is not an interval"), ("zone", "Mars/Olympus", "Mars/Olympus"),
                ("args", "{", "cannot be read as JSON"), ("name", "a b", "name"), ("kind", "a b", "kind"),
                ("queue", "a b", "queue"), ("name", "", "name is missing"), ("kind", "", "kind is missing"),
            ] {
                let answer = try await press(Self.made.merging([field: value]) { $1 }, world)
                #expect(answer.status == 400 && answer.body.contains(sentence), "\(field): \(answer.body.suffix(1500))")
                #expect(answer.body.contains("id=\"schedule\""), "\(field)")
            }
            var form = Self.made
            form["press"] = "preview"
            form["kind"] = "image.resiz"
            #expect(try await press(form, world).body.contains("Is it spelled correctly?"))
            form["expression"] = "0 0 30 2 *"
            let answer = try await press(form, world)
            #expect(answer.status == 400 && answer.body.contains("it never fires"), "\(answer.body.suffix(1500))")
            #expect(try await world.connection.int("select count(*) from millrace.schedule where name = 'made'") == 0)
        }
    }

    /// 1. Somebody opens the form. 2. Another pauses the schedule. 3. What the first one saves is refused, until the form is opened again.
    @Test func `a change keeps what the form has not, what is hidden, and what another has done meanwhile`()
        async throws
    {
        try await ConsoleWorld.with { world in
            try await world.connection.run(
                """
                select millrace.schedule_set('nightly', '0 3 * * *', 'report.build', '{"customer": "c-1", "password": "hunter2"}',
                    zone => 'Europe/Vienna', priority => 2, catch_up => 'all', overlap => 'skip', jitter => '5 minutes')
                """)
            func was() async throws -> String {
                try #require(
                    try await world.connection.value(
                        "select to_jsonb(changed_at) #>> '{}' from millrace.schedule where name = 'nightly'"))
            }
            let page = try await world.get("/console/schedule/edit?name=nightly").body
            #expect(page.contains("value=\"0 3 * * *\"") && page.contains(", 03:00 in Europe/Vienna"))
            #expect(page.contains("[redacted]") && !page.contains("hunter2"))
            let mark = "name=\"was\" value=\""
            let start = try #require(page.range(of: mark)?.upperBound)
            let shown = String(page[start...].prefix { $0 != "\"" })
            #expect(shown == (try await was()))
            var form = [
                "name": "nightly", "kind": "report.build", "expression": "0 4 * * *", "zone": "UTC", "queue": "reports",
                "args": #"{"customer": "c-2", "password": "[redacted]"}"#, "was": shown,
            ]
            try await world.connection.run("select millrace.schedule_pause('nightly')")
            let stale = try await press(form, world)
            #expect(stale.status == 409 && stale.body.contains("has been changed since"), "\(stale.body.suffix(900))")
            form["was"] = try await was()
            #expect(try await press(form, world).status == 303)
            #expect(
                try await world.connection.bool(
                    """
                    select (expression, zone, queue, priority, catch_up, overlap, jitter, paused_at is not null)
                               = ('0 4 * * *', 'UTC', 'reports', 2, 'all', 'skip', interval '5 minutes', true)
                           and args = '{"customer": "c-2", "password": "hunter2"}' from millrace.schedule where name = 'nightly'
                    """))
            let detail = try await world.connection.value(
                "select detail::text from millrace.audit where action = 'schedule.set' and said_by like 'console: local%' order by id desc limit 1"
            )
            #expect(detail?.contains(#""expression": "0 3 * * *""#) == true, "\(detail ?? "")")
            #expect(detail?.contains("c-1") == true && detail?.contains("hunter2") == false)
            // Nor can it be dropped.
            form["was"] = try await was()
            form["args"] = #"{"customer": "c-2"}"#
            let less = try await press(form, world)
            #expect(less.status == 400 && less.body.contains("the value at password is hidden"))
        }
    }

    @Test func `who is no admin sees no form, and the database refuses one that is sent`() async throws {
        try await ConsoleWorld.with({ $0.access.localRole = .operator }) { world in
            for address in ["/schedules/new", "/schedule/edit?name=nightly"] {
                let page = try await world.get("/console\(address)").body
                #expect(page.contains("Only an admin may make schedules") && !page.contains("<textarea"))
            }
            let token = world.service.options.access.formToken(of: Visitor(name: "local", role: .operator))
            let answer = try await world.post(
                "/console/act/schedule.save", Self.made.map { ($0, $1) } + [("form_token", token)])
            #expect(answer.status == 403 && answer.body.contains("your role may not do this"), "\(answer.body)")
        }
    }
}
