import CheckIns
import Listeners
import PageKit
import Postgres
import Signatures
import Telemetry
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct CheckInCommandTests {
    @Test func `a link shows the alarm to everybody who opens it, and answers it only when it is posted`() async throws
    {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                #"select millrace.check_in_contact('<anna>', 'mum', 1, '{"mail": "mum@example.com"}', actor => '<anna>')"#
            )
            let ref = try #require(try await connection.value("select ref from millrace.watch_address"))
            let links = Links(publicURL: "https://x.example/", secrets: ["a secret of ours"])
            let routes = AlarmRoutes(
                pool: Pool(database.options, size: 2), log: .silent, links: links,
                host: PageHost(name: "Peachy", emergency: "112"))
            var options = Listener.Options(address: try #require(ListenAddress("127.0.0.1:0")), token: nil)
            options.grace = .seconds(1)
            let listener = try Listener(options, routes: routes.all, log: .silent)
            async let running: Void = listener.run()
            let base = "http://127.0.0.1:\(listener.address.port)"
            func curl(_ arguments: String) async throws -> String {
                try await Program.run("sh", ["-c", "curl -s -m 60 -w ' %{http_code}' \(arguments)"]).text
            }
            func path(_ link: String?) throws -> String {
                base + (try #require(link)).dropFirst("https://x.example".count)
            }
            let consent = try path(links.alarm(nil, contact: ref))
            #expect(try await curl(consent).hasSuffix(" 200"))
            #expect(
                try await connection.int("select count(*) from millrace.watch_address where verified_at is not null")
                    == 0)
            #expect(try await curl("-d answer=perhaps \(consent)").hasSuffix(" 400"))
            #expect(try await curl("-d answer=yes \(consent)").contains("You said yes"))
            #expect(
                try await connection.int("select count(*) from millrace.watch_address where verified_at is not null")
                    == 1)

            let alarm = try #require(
                try await connection.value("select millrace.check_in_alarm('<anna>', 'a & b', '<anna>')"))
            let link = try path(links.alarm(alarm, contact: ref))
            let page = try await curl(link)
            // The note stands by itself, what ends the alarm asks first, and never to be asked again can be taken back.
            #expect(page.contains("<p dir=\"auto\">a &amp; b</p></blockquote>") && !page.contains("Note: "))
            #expect(page.contains("<button class=\"first\" name=\"answer\" value=\"on_my_way\">"))
            #expect(page.contains("tel:112") && page.contains("<strong><bdi>Peachy</bdi></strong>"))
            let never = try await curl("-d answer=ask_never \(consent)")
            #expect(never.contains("class=\"grave\" name=\"answer\" value=\"never\""))
            #expect(try await connection.int("select count(*) from millrace.consent_never") == 0)
            #expect(page.contains("&lt;anna&gt; asks for help") && page.contains("a &amp; b") && page.hasSuffix(" 200"))
            #expect(!page.contains("src=") && !page.contains("http") && !page.contains("<script"))
            // Nothing comes from elsewhere, and what is tapped is as high as a finger is wide.
            let style = try await curl("\(base)/v1/alarms/page.css")
            #expect(style.contains("min-height: 52px") && style.contains("prefers-color-scheme: dark"))
            let question = try await curl("-d answer=ask_safe \(link)")
            #expect(question.contains("Are they really safe?") && question.contains("value=\"safe\""))
            #expect(try await connection.value("select state from millrace.alarms") == "open")
            #expect(try await curl("\(link)0").hasSuffix(" 404"))
            #expect(try await curl("-d answer=hm \(link)").hasSuffix(" 400"))
            #expect(try await curl("-d answer=on_my_way \(link)").contains("<bdi>mum</bdi>: I am on my way"))
            #expect(try await connection.value("select acknowledged_by from millrace.alarms") == "mum")
            #expect(try await curl("-d answer=safe \(link)").contains("is over"))
            #expect(try await connection.value("select state from millrace.alarms") == "resolved")
            #expect(try await curl("-d answer=never \(consent)").contains("value=\"again\""))
            #expect(try await connection.int("select count(*) from millrace.consent_never") == 1)
            #expect(try await curl("-d answer=again \(consent)").contains("value=\"yes\""))
            #expect(try await connection.int("select count(*) from millrace.consent_never") == 0)
            // A removed contact's link is dead; a link with another secret opens nothing, one with the previous secret does.
            try await connection.run("select millrace.check_in_contact_remove('<anna>', 'mum', '<anna>')")
            #expect(try await curl(link).hasSuffix(" 404"))
            let token = try #require(links.alarmToken(alarm, contact: ref))
            #expect(
                Links(publicURL: "https://y", secrets: ["a newer one", "a secret of ours"]).openedAlarm(token)?.alarm
                    == alarm)
            #expect(Links(publicURL: "https://y", secrets: ["a newer one"]).openedAlarm(token) == nil)
            #expect(links.opened(token) == nil)
            listener.stop()
            try await running
            await connection.close()
        }
    }

    @Test func `the page of an alarm is in its reader's language, with names and the reader's own time`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            try await connection.run(
                """
                select millrace.check_in_contact('u-1', 'u-2', 1, '{"mail": "mum@example.com"}', actor => 'u-1');
                select millrace.check_in_consent(ref, true) from millrace.watch_address;
                select millrace.person_profile('u-1', 'Anna', 'en', 'Europe/London', actor => 'u-1');
                select millrace.person_profile('u-2', 'Mutti', 'de-AT', 'Europe/Vienna', actor => 'u-2');
                select millrace.check_in_alarm('u-1', 'am See', 'u-1');
                """)
            let told =
                "select n.data ->> 'title' from millrace.notice n where n.kind like 'alarm.%' order by n.created_at desc limit 1"
            // Named by an id, with an address of anybody's: nothing of that person is shown.
            #expect(try await connection.value(told) == "Anna asks for help")
            #expect(
                try await connection.value(
                    "select millrace.alarm_words(a, 'resolved', 'u-2', 'u-2')::text from millrace.alarm a")?
                    .contains("Mutti") == false)
            try await connection.run(
                """
                select millrace.check_in_contact('u-1', 'u-2', 1, '{"push": true}', actor => 'u-1');
                select millrace.check_in_accept('u-1', true, actor => 'u-2');
                """)
            func facts() async throws -> JSONValue {
                let text = try await connection.value(
                    "select millrace.alarm_page(a.id, d.ref) from millrace.alarm a, millrace.watch_address d limit 1")
                return try JSONValue.read(Array((text ?? "").utf8))
            }
            func text(_ response: Response) -> String {
                guard case .bytes(let bytes) = response.body else { return "" }
                return String(decoding: bytes, as: UTF8.self)
            }
            let open = text(AlarmPage.alarm(try await facts()))
            #expect(open.contains("Anna bittet um Hilfe") && open.contains("lang=\"de\"") && !open.contains("u-1"))
            #expect(open.contains("(Europe/Vienna)") && open.contains("Ich bin unterwegs"))
            try await connection.run("select millrace.check_in_respond(id, 'u-2', 'safe') from millrace.alarm")
            let over = text(AlarmPage.alarm(try await facts()))
            #expect(
                over.contains("Mutti sagt, dass Anna in Sicherheit ist.")
                    && over.contains("<bdi>Mutti</bdi>: Alles in Ordnung"))
            // In the words that a person without a profile has, English.
            let link = try await connection.refusal(
                of: "select millrace.person_profile('u-1', 'see https://evil.example', actor => 'u-1')")
            #expect(link?.sqlState == "22023")
            try await connection.run("delete from millrace.profile")
            #expect(text(AlarmPage.alarm(try await facts())).contains("u-2 says that u-1 is safe."))
            await connection.close()
        }
    }

    @Test
    func `an open alarm without a watch is shown, with whom it reaches, and a call for help says when that is nobody`()
        async throws
    {
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            #expect(await millrace("checkins", "show", "carl", "--database-url", url).code == .notFound)
            let alarm = await millrace("checkins", "alarm", "carl", "--note", "at the lake", "--database-url", url)
            #expect(alarm.code == .degraded, "\(alarm.output)\(alarm.errors)")
            #expect(alarm.output.contains("nobody can be told: no contact has a confirmed address"))
            let shown = await millrace("checkins", "show", "carl", "--database-url", url)
            #expect(shown.code == .done && shown.output.hasPrefix("no watch is armed for carl\n"), "\(shown.output)")
            #expect(shown.output.contains("the alarm (help): nobody can be told"), "\(shown.output)")
            try await connection.run(
                #"""
                select millrace.check_in_contact('carl', 'mum', 1, '{"mail": "mum@example.com"}', actor => 'carl'), millrace.check_in_confirm('carl', 'mum');
                select millrace.check_in_contact('carl', 'dad', 2, '{"mail": "dad@example.com"}', actor => 'carl'), millrace.check_in_confirm('carl', 'dad');
                """#)
            let again = await millrace("checkins", "alarm", "carl", "--json", "--database-url", url)
            let json = try JSONValue.read(again.output)
            #expect(again.code == .done && json["reaches_nobody"] == .bool(false), "\(again.output)")
            #expect(json["told"]?.items == ["mum"] && json["to_tell"]?.items == ["dad"])
            let told = try JSONValue.read(
                await millrace("checkins", "show", "carl", "--json", "--database-url", url).output)
            #expect(told["state"] == .null && told["contacts"]?.items?.count == 2)
            #expect(told["alarms"]?.items?.first?["sentence"]?.text == "told: mum; next: dad")
            await connection.close()
        }
    }

    @Test func `a place goes with a check-in or an alarm, and no verb, no complaint and no audit shows it`()
        async throws
    {
        for place in ["91,0", "0,-181", "48.137", "48.137,11.575,3", "0x10,1", "north,east", "", "1e3,0"] {
            let refused = await millrace("checkins", "alarm", "anna", "--place=\(place)")
            #expect(refused.code == .misused && refused.errors.contains("--place"), "\(place): \(refused.errors)")
            #expect(place.count < 6 || !refused.errors.contains(place) || place == "48.137", "\(refused.errors)")
        }
        let alone = await millrace("checkins", "check-in", "anna", "--accuracy", "20")
        #expect(alone.code == .misused && alone.errors.contains("--accuracy needs --place"))
        try await withDatabase { database in
            let url = database.url
            let connection = try await database.connect()
            try await connection.run(
                #"""
                select millrace.check_in_contact('anna', 'mum', 1, '{"mail": "mum@example.com"}', actor => 'anna'), millrace.check_in_confirm('anna', 'mum');
                select millrace.check_in_arm('anna', actor => 'anna')
                """#)
            let kept = "select concat_ws(' ', latitude, longitude, accuracy) from millrace.place where"
            let checkIn = await millrace(
                "checkins", "check-in", "anna", "--place", "-33.856784,151.215297", "--accuracy", "20",
                "--database-url", url)
            #expect(checkIn.code == .done && checkIn.output.hasPrefix("anna is expected"), "\(checkIn.errors)")
            #expect(try await connection.value("\(kept) person = 'anna'") == "-33.856784 151.215297 20")
            let help = await millrace(
                "checkins", "alarm", "anna", "--place", "48.137,11.575", "--json", "--database-url", url)
            let answer = try JSONValue.read(help.output)
            #expect(help.code == .done && answer["place_used"] == .bool(true))
            #expect(try await connection.value("\(kept) alarm is not null") == "48.137 11.575")
            var told = checkIn.output + checkIn.errors + help.output + help.errors
            for verb in [
                ["checkins", "show", "anna"], ["checkins", "alarms"], ["checkins", "history", "anna"],
                ["audit", "list"],
                ["notices", "list"], ["events", "list"],
            ] {
                for more in [[], ["--json"]] {
                    let capture = Capture()
                    let code = await Application.run(
                        arguments: verb + more + ["--database-url", url], surroundings: .fake(),
                        console: capture.console)
                    #expect(code == .done, "\(verb): \(capture.errors)")
                    told += capture.output + capture.errors
                }
            }
            #expect(told.contains("anna") && !told.contains("48.137") && !told.contains("33.856"), "\(told)")
            await connection.close()
        }
    }

    @Test func `status and doctor say when nobody watches, when an alarm is late, and when it reaches nobody`()
        async throws
    {
        var state = CheckInAdmin.State()
        #expect(state.findings.isEmpty)
        state.watches = 3
        #expect(state.findings.map(\.alarm) == [.noWatchman])
        state.beat = 1
        #expect(state.findings.isEmpty)
        (state.overdue, state.oldest) = (2, 31)
        state.unreachable = 1
        state.broken = 1
        #expect(state.findings.map(\.alarm) == [.lateAlarm, .unreachableAlarm, .brokenWatch])
        #expect(state.findings.allSatisfy { $0.severity == .critical })
        #expect(state.findings[0].sentence == "2 alarms are late, the oldest by 31 s")
        #expect(Doctor.judge(state, links: nil, deadman: false).word == "problem")
        state = CheckInAdmin.State()
        #expect(Doctor.judge(state, links: nil, deadman: false).word == "ok")
        (state.watches, state.beat) = (1, 1)
        #expect(Doctor.judge(state, links: nil, deadman: true).word == "warning")
        let links = Links(publicURL: "https://x", secrets: ["s"])
        #expect(Doctor.judge(state, links: links, deadman: false).word == "warning")
        #expect(Doctor.judge(state, links: links, deadman: true).word == "ok")

        try await withDatabase { database in
            let connection = try await database.connect()
            let report = try await StatusReport.read(on: connection, cap: 10, patience: .seconds(30))
            #expect(StatusView(report, failIf: nil).json["check_ins"]?["open"]?.integer == 0)
            await connection.close()
        }
    }
}
