import Faults
import Mail
import Postgres
import Synchronization
import TestSupport
import Testing

/// Requests whose arrival is unknown.
@Suite struct MailDoubtTests {
    @Test func `after a lost answer the very same request is made again, and nobody else is asked`() async throws {
        try await withMail { bench in
            let first = ScriptedMailProvider("resend", batch: 100) { call, _ in call < 3 ? .acceptAndLose : .accept }
            let second = ScriptedMailProvider("smtp")
            var ids: [String] = []
            for number in 0..<5 { ids.append(try await bench.send(to: "a\(number)@example.org")) }
            let service = bench.service([first, second])
            #expect(try await service.run(try await bench.jobs()) == Array(repeating: .done, count: 5))
            #expect(Set(first.seen.calls.map(\.key)).count == 1 && first.seen.calls.count == 3)
            #expect(Set(first.seen.calls.map(\.messages)).count == 1)
            #expect(first.seen.taken.values.allSatisfy { $0 == 1 } && first.seen.taken.count == 5)
            #expect(second.seen.calls.isEmpty)
            #expect(try await bench.outcomes(ids[0]) == ["resend unknown", "resend unknown", "resend accepted"])
        }
    }

    @Test func `when the worker is lost in between, another goes on with the same request`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend", batch: 100) { call, _ in call == 1 ? .acceptAndLose : .accept
            }
            let id = try await bench.send()
            let gone = bench.service([provider]) { $0.sendRules.tries = 1 }
            // Its answer never comes back, and no result is written: the row stays as it was opened.
            let jobs = try await bench.jobs(session: 7)
            guard case .later = try await gone.run(jobs)[0] else {
                Issue.record("it is not in doubt")
                return
            }
            try await bench.connection.run(
                "update millrace.mail_batch set recorded = 0, held_until = now() + interval '1 hour', holder = 99")
            let next = bench.service([provider])
            #expect(try await next.run(try await bench.jobs(session: 8)) == [.done])
            #expect(provider.seen.taken[id] == 1 && Set(provider.seen.calls.map(\.key)).count == 1)
            #expect(try await bench.outcomes(id).last == "resend accepted")
        }
    }

    @Test func `a request that a living worker holds is left to it`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend") { _, _ in .lose }
            try await bench.send()
            _ = try await bench.service([provider]) { $0.sendRules.tries = 1 }.run(try await bench.jobs(session: 7))
            try await bench.connection.run(
                "select millrace.session_open(7, 'w', 'h', 1, '0', null, array[1], 10, false)")
            try await bench.connection.run("update millrace.mail_batch set held_until = now() + interval '1 hour'")
            guard case .later = try await bench.service([provider]).run(try await bench.jobs(session: 8))[0] else {
                Issue.record("it was taken up")
                return
            }
            #expect(provider.seen.calls.count == 1)
        }
    }

    @Test func `without a key that holds, an unknown outcome is parked, or sent again where a duplicate is acceptable`()
        async throws
    {
        try await withMail { bench in
            let provider = ScriptedMailProvider("smtp", keyHolds: nil) { call, letters in
                letters[0].subject == "alarm" && call > 1 ? .accept : .acceptAndLose
            }
            let other = ScriptedMailProvider("supabase")
            let careful = try await bench.send(subject: "careful")
            let service = bench.service([provider, other])
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(try await bench.status(careful) == "parked")
            let alarm = try await bench.send("purpose => 'alarm', on_unknown => 'again'", subject: "alarm")
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(try await bench.status(alarm) == "accepted")
            #expect(other.seen.calls.isEmpty)
            #expect(provider.seen.calls.count == 2)
            #expect(try await bench.connection.bool("select millrace.mail_resolve('\(careful)', 'accepted')"))
            #expect(try await bench.status(careful) == "accepted")
            #expect(
                try await bench.connection.refusal(of: "select millrace.mail_resolve('\(careful)', 'again')")?.sqlState
                    == "55000")
        }
    }

    @Test func `what a lost worker leaves in doubt is sent again where a duplicate may be, and parked elsewhere`()
        async throws
    {
        try await withMail { bench in
            let provider = ScriptedMailProvider("smtp", keyHolds: nil)
            let careful = try await bench.send(subject: "careful")
            let alarm = try await bench.send("purpose => 'alarm', on_unknown => 'again'", subject: "alarm")
            let late = try await bench.send("on_unknown => 'again'", subject: "late")
            // Their worker is lost when it has opened the requests, and of the last one recorded a lost answer.
            for id in [careful, alarm, late] {
                try await bench.connection.run(
                    """
                    select millrace.mail_freeze(array['\(id)'], array['s'], array['t'], array[null], array[0], array[null],
                           array[null], 'shop@example.net', null);
                    select count(*) from millrace.mail_batch_open('smtp', array['\(id)'], true, 99, 3600, 0, 0, 0, 0)
                    """)
            }
            try await bench.connection.run(
                """
                select millrace.mail_batch_record(array[m.batch], array[1], array['settled'], array[-1], array[1],
                       array[m.id::text], array['unknown'], array['unknown'], array[null], array['lost'], array[null],
                       array['unknown'])
                  from millrace.mail m where m.id = '\(late)'
                """)
            #expect(try await bench.status(late) == "unknown")
            let service = bench.service([provider])
            #expect(try await service.run(try await bench.jobs(session: 8)) == [.done, .done, .done])
            #expect(try await bench.status(careful) == "parked")
            #expect(try await bench.status(alarm) == "accepted")
            #expect(try await bench.status(late) == "accepted")
            #expect(provider.seen.taken == [alarm: 1, late: 1])
        }
    }

    @Test func `a parked message that a human wants again goes as a new request`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("smtp", keyHolds: nil) { call, _ in call == 1 ? .lose : .accept }
            let id = try await bench.send()
            let service = bench.service([provider])
            _ = try await service.run(try await bench.jobs())
            #expect(try await bench.status(id) == "parked")
            #expect(try await bench.connection.bool("select millrace.mail_resolve('\(id)', 'again')"))
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(try await bench.status(id) == "accepted")
            #expect(Set(provider.seen.calls.map(\.key)).count == 2)
        }
    }

    @Test func `a worker that begins with nothing but what is in doubt may ask again`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend", batch: 100) { call, _ in call == 1 ? .acceptAndLose : .accept
            }
            let id = try await bench.send()
            _ = try await bench.service([provider]) { $0.sendRules.tries = 1 }.run(try await bench.jobs(session: 7))
            #expect(try await bench.status(id) == "unknown")
            try await bench.connection.run("update millrace.mail_batch set held_until = now() - interval '1 s'")
            // With the budget that workers have, of which nothing was earned yet.
            let service = bench.service([provider], retryShare: 0.2)
            try await eventually("it is asked again") {
                try await service.run(try await bench.jobs(session: 8)) == [.done]
            }
            #expect(try await bench.outcomes(id) == ["resend unknown", "resend accepted"])
            #expect(provider.seen.taken[id] == 1)
        }
    }

    @Test(arguments: [false, true])
    func `a lone message is taken within seconds of its next try after an outage, in doubt or not`(
        isInDoubt: Bool
    ) async throws {
        try await withMail(.movableClock) { bench in
            let provider = ScriptedMailProvider("resend") { call, _ in
                isInDoubt && call == 1 ? .acceptAndLose : .accept
            }
            let id = try await bench.send()
            if isInDoubt {
                _ = try await bench.service([provider]) { $0.sendRules.tries = 1 }.run(try await bench.jobs())
                #expect(try await bench.status(id) == "unknown")
                // Long ago: the pause before a repetition grows with a request's age.
                try await bench.connection.run("select millrace.test_clock_advance('1 hour')")
            }
            let outage = try await ProviderOutage(of: "resend", in: bench.database, on: bench.connection)
            let service = bench.service([provider], supervisor: outage.supervisor)
            let waits = try await outage.tries {
                switch try await service.run(try await bench.jobs())[0] {
                case .later(let wait): return wait
                case .done, .retry, .dead: return nil
                }
            }
            #expect(waits.count >= 1 && waits.dropFirst().reduce(.zero, +) <= .seconds(5), "\(waits)")
            #expect(try await bench.outcomes(id) == (isInDoubt ? ["resend unknown"] : []) + ["resend accepted"])
            #expect(provider.seen.taken[id] == 1)
        }
    }

    @Test func `nothing that a provider lost is lost, whatever goes wrong`() async throws {
        try await withMail { bench in
            let chance = Mutex(SeededRandom(3))
            let script: @Sendable (Int, [Letter]) -> ScriptedMailProvider.Act = { _, _ in
                switch chance.withLock({ $0.below(12) }) {
                case 0: .acceptAndLose
                case 1: .lose
                case 2: .throttle(Fault(.throttled, "busy", wait: .milliseconds(1)))
                case 3: .refuse(Fault(.transient, "later"))
                default: .accept
                }
            }
            let first = ScriptedMailProvider("resend", batch: 10, script)
            let second = ScriptedMailProvider("smtp", script)
            try await bench.connection.run(
                "select millrace.mail_send(array['a' || n || '@example.org'], 's', 't') from generate_series(1, 150) n")
            for session in 1...60 {
                let jobs = try await bench.jobs(session: Int64(session))
                if jobs.isEmpty { break }
                let service = bench.service([first, second])
                for start in stride(from: 0, to: jobs.count, by: 40) {
                    _ = try await service.run(Array(jobs[start..<min(start + 40, jobs.count)]))
                }
                try await bench.connection.run("update millrace.mail_batch set held_until = now() where state = 'open'")
            }
            #expect(
                try await bench.connection.int("select count(*) from millrace.mail where status = 'accepted'") == 150)
            #expect(first.seen.taken.count == 150 && first.seen.taken.values.allSatisfy { $0 == 1 })
            #expect(second.seen.calls.isEmpty)
            let keys = Dictionary(grouping: first.seen.calls, by: \.key)
            #expect(keys.values.allSatisfy { Set($0.map(\.messages)).count == 1 })
        }
    }
}
