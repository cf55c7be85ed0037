import Faults
import Mail
import Postgres
import Signatures
import Supervision
import Synchronization
import TestSupport
import Testing

@Suite struct PostTests {
    @Test func `a message is frozen, handed over under a key, and told with all its attempts`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend", batch: 100)
            let id =
                try await bench.connection.value(
                    "select millrace.mail_welcome('Ada <ada@example.org>', 'Ada', '{\"tags\": {\"a\": \"b\"}}')") ?? ""
            let post = bench.post([carrier]) { $0.appName = "Shop" }
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(post.tally.counts == ["resend": [.accepted: 1]])
            #expect(try await bench.status(id) == "accepted")
            #expect(try await bench.outcomes(id) == ["resend accepted"])
            let letter = try #require(carrier.seen.letters[id])
            #expect(letter.to == [Mailbox(name: "Ada", address: "ada@example.org")])
            #expect(letter.from.address == "shop@example.net" && letter.subject == "About welcome")
            #expect(letter.tags.map(\.name) == ["a"])
            #expect(
                try await bench.connection.value("select version from millrace.mail_messages") == "3")
            #expect(
                try await bench.connection.column("select type from millrace.mail_analytics order by type")
                    == ["emailSent", "templateLoaded"])
            #expect(try await post.run(try await bench.errands()).isEmpty)
        }
    }

    @Test func `a job that was enqueued by itself makes one message, however often it runs`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend")
            let post = bench.post([carrier])
            func errand(_ job: Int64, _ args: String) -> Errand {
                Errand(job: job, kind: "mail.welcome", args: Array(args.utf8), session: 7, isLast: false)
            }
            let good = errand(41, #"{"recipient": "ada@example.org", "user_name": "Ada"}"#)
            for _ in 0..<2 { #expect(try await post.run([good]) == [.done]) }
            #expect(carrier.seen.taken.count == 1)
            #expect(try await bench.connection.int("select count(*) from millrace.mail") == 1)
            let bad = errand(42, #"{"recipient": "ada@example.org\nBcc: eve@example.org", "user_name": "Ada"}"#)
            guard case .dead(let why) = try await post.run([bad])[0] else {
                Issue.record("it is not refused")
                return
            }
            #expect(why.contains("control characters"))
        }
    }

    @Test func `an alarm goes though every breaker is open, by the other way while there is one`() async throws {
        try await withMail { bench in
            let first = ScriptedCarrier("resend")
            let second = ScriptedCarrier("smtp")
            let supervisor = bench.supervisor()
            func open(_ provider: String) async throws {
                do {
                    try await supervisor.call(provider) { _ in throw Fault(.authentication, "a bad key") }
                } catch is Fault {}
                #expect(supervisor.isOpen(provider))
            }
            let post = bench.post([first, second], supervisor: supervisor)
            try await open("resend")
            let around = try await bench.send("purpose => 'alarm', on_unknown => 'again', priority => 'urgent'")
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(try await bench.outcomes(around).last == "smtp accepted")
            try await open("smtp")
            let anyway = try await bench.send("purpose => 'alarm', on_unknown => 'again', priority => 'urgent'")
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(try await bench.outcomes(anyway).last == "smtp accepted")
            let waits = try await bench.send()
            _ = try await post.run(try await bench.errands())
            #expect(try await bench.status(waits) != "accepted")
        }
    }

    @Test func `after a lost answer the very same request is made again, and nobody else is asked`() async throws {
        try await withMail { bench in
            let first = ScriptedCarrier("resend", batch: 100) { call, _ in call < 3 ? .acceptAndLose : .accept }
            let second = ScriptedCarrier("smtp")
            var ids: [String] = []
            for number in 0..<5 { ids.append(try await bench.send(to: "a\(number)@example.org")) }
            let post = bench.post([first, second])
            #expect(try await post.run(try await bench.errands()) == Array(repeating: .done, count: 5))
            #expect(Set(first.seen.calls.map(\.key)).count == 1 && first.seen.calls.count == 3)
            #expect(Set(first.seen.calls.map(\.messages)).count == 1)
            #expect(first.seen.taken.values.allSatisfy { $0 == 1 } && first.seen.taken.count == 5)
            #expect(second.seen.calls.isEmpty)
            #expect(try await bench.outcomes(ids[0]) == ["resend unknown", "resend unknown", "resend accepted"])
        }
    }

    @Test func `when the worker is lost in between, another goes on with the same request`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend", batch: 100) { call, _ in call == 1 ? .acceptAndLose : .accept }
            let id = try await bench.send()
            let gone = bench.post([carrier]) { $0.course.tries = 1 }
            // Its answer never comes back, and its books are not written: the row stands as it was opened.
            let errands = try await bench.errands(session: 7)
            guard case .later = try await gone.run(errands)[0] else {
                Issue.record("it is not in doubt")
                return
            }
            try await bench.connection.run(
                "update millrace.mail_batch set recorded = 0, held_until = now() + interval '1 hour', holder = 99")
            let next = bench.post([carrier])
            #expect(try await next.run(try await bench.errands(session: 8)) == [.done])
            #expect(carrier.seen.taken[id] == 1 && Set(carrier.seen.calls.map(\.key)).count == 1)
            #expect(try await bench.outcomes(id).last == "resend accepted")
        }
    }

    @Test func `a request that a living worker holds is left to it`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend") { _, _ in .lose }
            try await bench.send()
            _ = try await bench.post([carrier]) { $0.course.tries = 1 }.run(try await bench.errands(session: 7))
            try await bench.connection.run(
                "select millrace.session_open(7, 'w', 'h', 1, '0', null, array[1], 10, false)")
            try await bench.connection.run("update millrace.mail_batch set held_until = now() + interval '1 hour'")
            guard case .later = try await bench.post([carrier]).run(try await bench.errands(session: 8))[0] else {
                Issue.record("it was taken up")
                return
            }
            #expect(carrier.seen.calls.count == 1)
        }
    }

    @Test func `without a key that holds, an unknown outcome is parked, or sent again where a duplicate is acceptable`()
        async throws
    {
        try await withMail { bench in
            let carrier = ScriptedCarrier("smtp", keyHolds: nil) { call, letters in
                letters[0].subject == "alarm" && call > 1 ? .accept : .acceptAndLose
            }
            let other = ScriptedCarrier("supabase")
            let careful = try await bench.send(subject: "careful")
            let post = bench.post([carrier, other])
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(try await bench.status(careful) == "parked")
            let alarm = try await bench.send("purpose => 'alarm', on_unknown => 'again'", subject: "alarm")
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(try await bench.status(alarm) == "accepted")
            #expect(other.seen.calls.isEmpty)
            #expect(carrier.seen.calls.count == 2)
            #expect(try await bench.connection.bool("select millrace.mail_resolve('\(careful)', 'accepted')"))
            #expect(try await bench.status(careful) == "accepted")
            #expect(
                try await bench.connection.refusal(of: "select millrace.mail_resolve('\(careful)', 'again')")?.sqlState
                    == "55000")
        }
    }

    @Test func `a parked message that a human wants again goes as a new request`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("smtp", keyHolds: nil) { call, _ in call == 1 ? .lose : .accept }
            let id = try await bench.send()
            let post = bench.post([carrier])
            _ = try await post.run(try await bench.errands())
            #expect(try await bench.status(id) == "parked")
            #expect(try await bench.connection.bool("select millrace.mail_resolve('\(id)', 'again')"))
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(try await bench.status(id) == "accepted")
            #expect(Set(carrier.seen.calls.map(\.key)).count == 2)
        }
    }

    @Test
    func `a second provider is asked after a refusal that is the provider's, never after one that is the message's`()
        async throws
    {
        try await withMail { bench in
            let first = ScriptedCarrier("resend") { _, letters in
                .refuse(Fault(letters[0].subject == "bad" ? .invalid : .authentication, code: "x", "no"))
            }
            let second = ScriptedCarrier("smtp")
            // One after the other: what befalls the good one shuts the first provider for whoever comes then.
            let post = bench.post([first, second])
            let bad = try await bench.send(subject: "bad")
            #expect(try await post.run(try await bench.errands()) == [.dead("no")])
            let good = try await bench.send(subject: "good")
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(try await bench.status(bad) == "failed")
            #expect(try await bench.status(good) == "accepted")
            #expect(try await bench.outcomes(good) == ["resend refused", "smtp accepted"])
            #expect(second.seen.taken.keys.sorted() == [good])
        }
    }

    @Test func `a refused batch is taken apart, so that one bad message fails alone`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend", batch: 100) { _, letters in
                letters.contains { $0.subject == "bad" } ? .refuse(Fault(.invalid, "422")) : .accept
            }
            for subject in ["one", "bad", "two"] { try await bench.send(subject: subject) }
            let endings = try await bench.post([carrier]).run(try await bench.errands())
            #expect(endings == [.done, .dead("422"), .done])
            #expect(carrier.seen.calls.map(\.messages.count).sorted() == [1, 1, 1, 3])
            #expect(
                try await bench.connection.column("select state from millrace.mail_batch order by id") == [
                    "split", "settled", "settled", "settled",
                ])
        }
    }

    @Test func `the switch to the second provider is told once, and so is the way back`() async throws {
        try await withMail { bench in
            let isDown = Mutex(true)
            let first = ScriptedCarrier("resend") { _, _ in
                isDown.withLock { $0 } ? .refuse(Fault(.unavailable, "refused")) : .accept
            }
            let second = ScriptedCarrier("smtp")
            let post = bench.post([first, second])
            for number in 0..<6 {
                let id = try await bench.send(to: "a\(number)@example.org")
                #expect(try await post.run(try await bench.errands()) == [.done])
                #expect(try await bench.status(id) == "accepted")
            }
            #expect(first.seen.calls.count == 3 && second.seen.taken.count == 6)
            #expect(
                try await bench.connection.column(
                    "select type || ' ' || service from millrace.mail_analytics where type = 'serviceSwitched'")
                    == ["serviceSwitched smtp"])
            isDown.withLock { $0 = false }
            let other = bench.post([first, second])  // as a worker that has not seen it fail
            try await bench.send()
            #expect(try await other.run(try await bench.errands()) == [.done])
            #expect(
                try await bench.connection.column(
                    "select service from millrace.mail_analytics where type = 'serviceSwitched' order by at")
                    == ["smtp", "resend"])
        }
    }

    @Test func `who is suppressed gets nothing, by purpose, and it is looked up when the request is made`() async throws
    {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend", batch: 100)
            let post = bench.post([carrier]) { $0.links = Links(publicURL: "https://x.example", secrets: ["s"]) }
            let security = try await bench.send("purpose => 'security'")
            let marketing = try await bench.send("purpose => 'marketing'")
            let several = try await bench.connection.refusal(
                of: "select millrace.mail_send(array['a@b.example', 'c@d.example'], 's', 't', purpose => 'marketing')")
            #expect(several?.sqlState == "22023")
            let errands = try await bench.errands()
            try await bench.connection.run("select millrace.mail_suppress('Ada@Example.org', 'asked', 'marketing')")
            #expect(try await post.run(errands) == [.done, .done])
            #expect(try await bench.status(security) == "accepted")
            #expect(try await bench.status(marketing) == "suppressed")
            try await bench.connection.run("select millrace.mail_suppress('ada@example.org', 'asked')")
            let both =
                try await bench.connection.value(
                    "select millrace.mail_send(array['ADA@example.org', 'bob@example.org'], 's', 't')") ?? ""
            #expect(try await post.run(try await bench.errands()) == [.done])
            #expect(carrier.seen.letters[both]?.to.map(\.address) == ["bob@example.org"])
            #expect(try await bench.connection.bool("select millrace.mail_unsuppress('ada@example.org', '*')"))
        }
    }

    @Test func `marketing mail carries a link that unsubscribes with one click`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend")
            let links = Links(publicURL: "https://x.example/", secrets: ["new", "old"])
            let id = try await bench.send("purpose => 'marketing'")
            _ = try await bench.post([carrier]) { $0.links = links }.run(try await bench.errands())
            let headers = try #require(carrier.seen.letters[id]?.headers)
            let link = try #require(headers.first { $0.name == "List-Unsubscribe" }?.value)
            #expect(headers.contains(Letter.Header("List-Unsubscribe-Post", "List-Unsubscribe=One-Click")))
            let token = String(link.dropFirst("<https://x.example/v1/unsubscribe/".count).dropLast())
            let hash = try #require(links.opened(token))
            #expect(Links(publicURL: "https://x.example", secrets: ["newer", "new"]).opened(token) == hash)
            #expect(Links(publicURL: "https://x.example", secrets: ["other"]).opened(token) == nil)
            #expect(links.opened(String(token.dropLast()) + (token.hasSuffix("0") ? "1" : "0")) == nil)
            let unsubscribed = try await bench.connection.query("select millrace.mail_unsubscribe($1)", [.bytea(hash)])
            {
                row throws(PostgresError) in try row.bool(0)
            }
            #expect(unsubscribed == [true])
            let next = try await bench.send("purpose => 'marketing'")
            _ = try await bench.post([carrier]) { $0.links = links }.run(try await bench.errands())
            #expect(try await bench.status(next) == "suppressed")
            let without = try await bench.send("purpose => 'marketing'", to: "bob@example.org")
            _ = try await bench.post([carrier]).run(try await bench.errands())
            #expect(try await bench.status(without) == "failed")
        }
    }

    @Test func `what is late is not sent, and what is early waits`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend")
            let late = try await bench.send("expires_at => millrace.now() + interval '1 hour'")
            let early = try await bench.send("scheduled_at => millrace.now() + interval '1 hour'")
            try await bench.connection.run(
                "update millrace.mail set expires_at = now() - interval '1 s' where id = '\(late)'")
            let endings = try await bench.post([carrier]).run(try await bench.errands())
            #expect(endings[0] == .done)
            guard case .later(let wait) = endings[1] else {
                Issue.record("it does not wait")
                return
            }
            #expect(wait > .seconds(3500))
            #expect(try await bench.status(late) == "expired")
            #expect(try await bench.status(early) == "scheduled")
            #expect(carrier.seen.calls.isEmpty)
            #expect(try await bench.connection.bool("select millrace.mail_reschedule('\(early)', millrace.now())"))
            #expect(try await bench.connection.bool("select millrace.mail_cancel('\(early)')"))
            #expect(try await bench.connection.bool("select not millrace.mail_cancel('\(early)')"))
            #expect(
                try await bench.connection.value(
                    "select state from millrace.jobs where id = (select job from millrace.mail where id = '\(early)')")
                    == "cancelled")
        }
    }

    @Test func `a sender and a domain are held to their rates`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend", batch: 100)
            for number in 0..<5 { try await bench.send("sender => 'u1'", to: "a\(number)@d\(number).example") }
            for number in 0..<5 { try await bench.send(to: "b\(number)@same.example") }
            let post = bench.post([carrier]) {
                $0.senderRate = .init(count: 2, span: .seconds(60))
                $0.domainRate = .init(count: 3, span: .seconds(60))
            }
            let endings = try await post.run(try await bench.errands())
            #expect(endings.map { $0 == .done } == [true, true, false, false, false, true, true, true, false, false])
            #expect(carrier.seen.taken.count == 5)
        }
    }

    @Test func `the last tenth of a quota is for what somebody waits for`() async throws {
        try await withMail { bench in
            let first = ScriptedCarrier("resend")
            let second = ScriptedCarrier("smtp")
            let alone = bench.post([first]) { $0.quota = 10 }
            for _ in 0..<9 {
                try await bench.send()
                #expect(try await alone.run(try await bench.errands()) == [.done])
            }
            let late = try await bench.send()
            guard case .later = try await alone.run(try await bench.errands())[0] else {
                Issue.record("the tenth went")
                return
            }
            #expect(try await bench.status(late) == "sending", "a request was made ready, and not made")
            #expect(try await bench.outcomes(late).isEmpty)
            // Where there is another way it takes that, and nobody is told of a switch.
            let both = bench.post([first, second]) { $0.quota = 10 }
            let urgent = try await bench.send("priority => 'urgent'")
            #expect(try await both.run(Array(try await bench.errands().suffix(1))) == [.done])
            #expect(first.seen.taken[urgent] == 1)
            #expect(try await both.run(try await bench.errands()) == [.done])
            #expect(second.seen.taken[late] == 1)
            #expect(
                try await bench.connection.int(
                    "select count(*) from millrace.mail_analytics where type = 'serviceSwitched'") == 0)
        }
    }

    @Test func `a worker that begins with nothing but what is in doubt may ask again`() async throws {
        try await withMail { bench in
            let carrier = ScriptedCarrier("resend", batch: 100) { call, _ in call == 1 ? .acceptAndLose : .accept }
            let id = try await bench.send()
            _ = try await bench.post([carrier]) { $0.course.tries = 1 }.run(try await bench.errands(session: 7))
            #expect(try await bench.status(id) == "unknown")
            try await bench.connection.run("update millrace.mail_batch set held_until = now() - interval '1 s'")
            // With the budget that workers have, of which nothing was earned yet.
            let post = bench.post([carrier], retryShare: 0.2)
            try await eventually("it is asked again") {
                try await post.run(try await bench.errands(session: 8)) == [.done]
            }
            #expect(try await bench.outcomes(id) == ["resend unknown", "resend accepted"])
            #expect(carrier.seen.taken[id] == 1)
        }
    }

    @Test func `nothing that a provider lost is lost, whatever goes wrong`() async throws {
        try await withMail { bench in
            let chance = Mutex(SplitMix(seed: 3))
            let script: @Sendable (Int, [Letter]) -> ScriptedCarrier.Act = { _, _ in
                switch chance.withLock({ $0.next(12) }) {
                case 0: .acceptAndLose
                case 1: .lose
                case 2: .throttle(Fault(.throttled, "busy", wait: .milliseconds(1)))
                case 3: .refuse(Fault(.transient, "later"))
                default: .accept
                }
            }
            let first = ScriptedCarrier("resend", batch: 10, script)
            let second = ScriptedCarrier("smtp", script)
            try await bench.connection.run(
                "select millrace.mail_send(array['a' || n || '@example.org'], 's', 't') from generate_series(1, 150) n")
            for session in 1...60 {
                let errands = try await bench.errands(session: Int64(session))
                if errands.isEmpty { break }
                let post = bench.post([first, second])
                for start in stride(from: 0, to: errands.count, by: 40) {
                    _ = try await post.run(Array(errands[start..<min(start + 40, errands.count)]))
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
