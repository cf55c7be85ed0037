import Notices
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand

@Suite struct NoticeCommandTests {
    @Test func `notices are sent, listed, shown and called off`() async throws {
        try await withDatabase { database in
            let url = database.url
            #expect(
                await millrace("notices", "list", "--database-url", url).output == "there is no such notice\n")
            let sent = await millrace(
                "notices", "send", "ada", "note", "--data", #"{"title": "T"}"#, "--channel", "sms", "--key", "k",
                "--at", "2099-01-01T00:00:00Z", "--database-url", url)
            #expect(sent.code == .done)
            let id = String(sent.output.dropLast())
            let listed = await millrace("notices", "list", "--person", "ada", "--jsonl", "--database-url", url)
            let row = try JSONValue.read(listed.output)
            #expect(row["id"]?.text == id && row["status"]?.text == "pending" && row["alarm"] == .bool(false))
            #expect(row["due_at"]?.text == "2099-01-01T00:00:00Z")
            let shown = try JSONValue.read(
                await millrace("notices", "show", id, "--json", "--database-url", url).output)
            #expect(shown["version"]?.integer == 1 && shown["key"]?.text == "k" && shown["sendings"] == .array([]))
            #expect(
                await millrace("notices", "show", id, "--database-url", url).output.hasPrefix("note for ada: pending"))
            #expect(await millrace("notices", "cancel", "ada", "k", "--database-url", url).code == .done)
            #expect(await millrace("notices", "cancel", "ada", "k", "--database-url", url).code == .conflict)
            #expect(
                await millrace(
                    "notices", "show", "00000000-0000-4000-8000-000000000000", "--database-url", url
                ).code == .notFound)
            #expect(await millrace("notices", "send", "ada", "a b", "--database-url", url).code == .misused)
            #expect(
                await millrace("notices", "send", "ada", "note", "--data", "[]", "--database-url", url).code == .misused
            )
        }
    }

    @Test func `devices are listed and forgotten`() async throws {
        try await withDatabase { database in
            let url = database.url
            try await database.change("select millrace.device_add('ada', 'apns', 'token-0001', 'com.example.app')")
            let row = try JSONValue.read(await millrace("devices", "list", "--jsonl", "--database-url", url).output)
            #expect(row["token"]?.text == "token-0001" && row["app"]?.text == "com.example.app")
            #expect(
                await millrace("devices", "list", "--person", "ben", "--database-url", url).output
                    == "there is no device yet\n")
            #expect(await millrace("devices", "remove", "token-0001", "--database-url", url).code == .done)
            #expect(await millrace("devices", "remove", "token-0001", "--database-url", url).code == .notFound)
        }
    }

    @Test func `status is critical while an alarm waits, and when nobody could be told`() async throws {
        try await withDatabase(.movableClock) { database in
            let url = database.url
            #expect(await millrace("status", "--database-url", url).code == .degraded)  // the test clock
            try await database.change(
                "select millrace.notice_put('ada', 'alarm.raised', 'sms', '+4930123456', '{}', 'a', millrace.now(), null, true)"
            )
            try await database.change("select millrace.test_clock_advance('11 seconds')")
            let waiting = await millrace("status", "--database-url", url)
            #expect(
                waiting.code == .critical && waiting.output.contains("1 alarm waits to be handed over"),
                "\(waiting.output)")
            try await database.change("update millrace.notice set status = 'failed'")
            let lost = await millrace("status", "--database-url", url)
            #expect(
                lost.code == .critical && lost.output.contains("1 alarm of the last hour could not be handed over"),
                "\(lost.output)")
            try await database.change("select millrace.test_clock_advance('2 hours')")
            #expect(await millrace("status", "--database-url", url).code == .degraded)
        }
    }

    @Test func `metrics say what was told and what waits`() {
        var standing = NoticeStanding()
        standing.alarms.accepted = 3
        var state = NoticeAdmin.State()
        state.alarms = 2
        state.alarmAge = 1.5
        standing.state = state
        let page = standing.gauges.map(\.text).joined()
        #expect(page.contains("millrace_notices_total{lane=\"alarm\",outcome=\"accepted\"} 3\n"))
        #expect(page.contains("millrace_notices_oldest_seconds{lane=\"alarm\"} 1.5\n"))
    }

    @Test func `what is missing or wrong in the settings is said before anything starts`() async throws {
        try await withDatabase { database in
            func start(_ environment: [String: String], files: [String: String] = [:]) async -> Outcome {
                await millrace(
                    "worker", "--listen", "off",
                    environment: environment.merging(["DATABASE_URL": database.url]) { $1 }, files: files)
            }
            let alone = await start(["MILLRACE_APNS_TEAM": "ABC1234567"])
            #expect(alone.code == .misused && alone.errors.contains("MILLRACE_APNS_KEY_FILE"), "\(alone)")
            let named = [
                "MILLRACE_APNS_TEAM": "ABC1234567", "MILLRACE_APNS_KEY_ID": "ABC1234567",
                "MILLRACE_APNS_TOPIC": "com.example.app", "MILLRACE_APNS_KEY_FILE": "/run/key",
            ]
            #expect(await start(named).errors.contains("cannot be read"))
            let broken = await start(named, files: ["/run/key": "secret"])
            #expect(broken.code == .misused && broken.errors.contains("it is not a private key"), "\(broken)")
            #expect(!broken.errors.contains("secret"))
            let google = await start(
                ["MILLRACE_FCM_CREDENTIALS_FILE": "/run/fcm"], files: ["/run/fcm": #"{"private_key": "secret"}"#])
            #expect(google.code == .misused && google.errors.contains("not a service account"), "\(google)")
            let headers = await start(
                ["MILLRACE_SMS_URL": "https://sms.example", "MILLRACE_SMS_HEADERS_FILE": "/run/h"],
                files: ["/run/h": "Authorization: x\nsecret\n"])
            #expect(headers.code == .misused && headers.errors.contains("line 2"), "\(headers)")
        }
    }
}
