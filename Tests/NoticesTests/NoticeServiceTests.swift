import Faults
import FoundationEssentials
import Postgres
import Supervision
import Telemetry
import TestSupport
import Testing

@testable import Notices

/// The lanes at work.
@Suite struct NoticeServiceTests {
    /// Only this database's sessions: other databases of the same server have notice services, too.
    private let locks = """
        select count(*) from pg_locks where locktype = 'advisory' and classid = 1297239640 and granted
            and database = (select oid from pg_database where datname = current_database())
        """

    @Test func `an alarm is taken when it is committed, not when somebody looks`() async throws {
        try await withNotices { bench in
            let provider = ScriptedNoticeProvider("sms")
            try await bench.withService([provider]) { options in
                options.floor = .seconds(86_400)
            } _: { _ in
                try await eventually("the lanes sleep, and the doorman is at his door") {
                    try await bench.connection.int(locks) == 2
                }
                let alarm = try await bench.put("sms", "+4930123456", key: "a")
                try await bench.settled(alarm, as: "accepted")
                let plain = try await bench.put("sms", "+4930123456", key: "b", alarm: false, kind: "note")
                try await bench.settled(plain, as: "accepted")
                // Ten at once, of one transaction.
                try await bench.connection.run(
                    "select millrace.notice_put('ada', 'alarm.raised', 'sms', '+4930' || n, '{}', 'n' || n, millrace.now(), null, true) from generate_series(100001, 100300) n"
                )
                try await eventually("all are taken") { provider.sendings.count == 302 }
            }
            #expect(Set(provider.sendings.map(\.id)).count == 302)
        }
    }

    @Test func `what is committed while the lanes fall asleep is found all the same`() async throws {
        try await withNotices { bench in
            let other = try await bench.database.connect()
            // It shares the lock before anybody could see it, and commits after everybody has looked.
            try await other.run("begin")
            try await other.run(
                "select millrace.notice_put('ada', 'alarm.raised', 'sms', '+4930123456', '{}', 'early', millrace.now(), null, true)"
            )
            let provider = ScriptedNoticeProvider("sms")
            try await bench.withService([provider]) { options in
                options.floor = .seconds(86_400)
            } _: { _ in
                try await eventually("the doorman waits for who writes") {
                    try await bench.connection.int(locks + " and objid = 0") == 1
                }
                #expect(provider.sendings.isEmpty)
                try await other.run("commit")
                try await eventually("it is found") { provider.sendings.count == 1 }
            }
            await other.close()
        }
    }

    @Test func `an alarm waits for no reminder, no breaker, no pace and no operator`() async throws {
        try await withNotices { bench in
            let gate = Gate()
            let provider = ScriptedNoticeProvider("sms") { sending, _ in
                if !sending.isAlarm { try? await gate.pass() }
                return .accepted(id: "1")
            }
            let supervisor = NoticeBench.supervisor { options in
                options.providers["sms"] = .init(slots: 2, rate: 0.01)
                options.breaker.failures = 1
            }
            try await bench.withService([provider], supervisor: supervisor) { _ in
                // All slots of the lane are taken by what does not come back.
                try await bench.connection.run(
                    "select millrace.notice_put('ada', 'note', 'sms', '+4930' || n, '{}', 'n' || n, millrace.now(), null, false) from generate_series(100001, 100100) n"
                )
                try await eventually("the plain lane is stuck") { !provider.sendings.isEmpty }
                let held = try await bench.put("sms", "+4930123456", key: "a")
                try await bench.settled(held, as: "accepted")
                // The breaker opens.
                _ = try await failure {
                    do {
                        try await supervisor.call("sms", isVital: true) { _ in throw Fault(.authentication, "no") }
                    } catch is Fault {}
                }
                await #expect(throws: CallRefusal.self) { try await supervisor.call("sms") { _ in } }
                let open = try await bench.put("sms", "+4930123456", key: "b")
                try await bench.settled(open, as: "accepted")
                gate.open()
            }
            #expect(provider.sendings.filter(\.isAlarm).count == 2)
        }
    }

    @Test func `what fails is tried again, and the error is told`() async throws {
        try await withNotices { bench in
            let provider = ScriptedNoticeProvider("sms") { _, number in
                number < 3 ? .failed(unavailable) : .accepted(id: "ok")
            }
            try await bench.withService([provider]) { service in
                let id = try await bench.put("sms", "+4930123456", key: "a")
                try await eventually("the third try is taken") {
                    try await bench.connection.run("select millrace.test_clock_advance('1 second')")
                    return try await bench.look(id) == "accepted"
                }
                #expect(
                    try await bench.look(id, "provider || attempts || coalesce(error, '-')") == "sms3-")
                let nobody = try await bench.put("voice", "+4930123456", key: "b")
                try await eventually("it says that there is nobody to call") {
                    try await bench.look(nobody, "error") == "voice is not configured"
                }
                try await eventually("the service counts") {
                    let standing = await service.standing
                    return standing.alarms.accepted == 1 && standing.alarms.failed >= 3 && standing.state != nil
                }
            }
        }
    }

    @Test func `a service that stops brings home what is under way`() async throws {
        try await withNotices { bench in
            let gate = Gate()
            let provider = ScriptedNoticeProvider("sms") { _, _ in
                try? await gate.pass()
                return .accepted(id: "1")
            }
            let opening = try await bench.withService([provider]) { _ in
                try await bench.put("sms", "+4930123456", key: "a")
                try await eventually("it is under way") { provider.sendings.count == 1 }
                return Task {
                    try await Task.sleep(for: .milliseconds(50))
                    gate.open()
                }
            }
            try await opening.value
            #expect(try await bench.connection.column("select status from millrace.notices") == ["accepted"])
        }
    }

    @Test func `two workers and a lost one send each notice, and count what was sent twice`() async throws {
        try await withNotices { bench in
            let gate = Gate()
            let first = ScriptedNoticeProvider("sms") { _, _ in
                try? await gate.pass()  // as if the process were gone: it does not come back with these
                return .accepted(id: "1")
            }
            let second = ScriptedNoticeProvider("sms")
            var options = NoticeService.Options(database: bench.database.options)
            options.alarmLease = .seconds(86_400 * 4)
            options.floor = .seconds(86_400 * 4)
            let lost = NoticeService(options, providers: [first], supervisor: NoticeBench.supervisor(), log: .silent)
            let losing = Task { await lost.run() }
            try await bench.connection.run(
                "select millrace.notice_put('ada', 'alarm.raised', 'sms', '+4930' || n, '{}', 'n' || n, millrace.now(), null, true) from generate_series(100001, 100005) n"
            )
            try await eventually("the first has them") { first.sendings.count == 5 }
            // A look that is under way when the clock is moved would take them again, for another four days.
            try await eventually("the first has nothing more to look for") {
                try await bench.connection.value(
                    """
                    select (\(locks)) = 2 and count(*) = 2
                       and bool_and(state = 'idle' and state_change < clock_timestamp() - interval '0.5 s')
                      from pg_stat_activity
                     where datname = current_database() and query ~ 'notice_(take|next)' and pid <> pg_backend_pid()
                    """) == "true"
            }
            losing.cancel()
            try await bench.connection.run("select millrace.test_clock_advance('5 days')")
            try await bench.withService([second]) { _ in
                try await eventually("all are told") {
                    try await bench.connection.int(
                        "select count(*) from millrace.notices where status = 'accepted'") == 5
                }
            }
            #expect(try await bench.connection.int("select sum(duplicates) from millrace.notices") == 5)
            gate.open()
            await losing.value
        }
    }
}
