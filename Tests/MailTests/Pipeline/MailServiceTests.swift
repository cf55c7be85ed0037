import Faults
import Mail
import Postgres
import Supervision
import Synchronization
import TestSupport
import Testing

@Suite struct MailServiceTests {
    @Test func `a message is frozen, handed over under a key, and told with all its attempts`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend", batch: 100)
            let id =
                try await bench.connection.value(
                    "select millrace.mail_welcome('Ada <ada@example.org>', 'Ada', '{\"tags\": {\"a\": \"b\"}}')") ?? ""
            let service = bench.service([provider]) { $0.appName = "Shop" }
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(await service.tally.counts == ["resend": [.accepted: 1]])
            #expect(try await bench.status(id) == "accepted")
            #expect(try await bench.outcomes(id) == ["resend accepted"])
            let letter = try #require(provider.seen.letters[id])
            #expect(letter.to == [Mailbox(name: "Ada", address: "ada@example.org")])
            #expect(letter.from.address == "shop@example.net" && letter.subject == "About welcome")
            #expect(letter.tags.map(\.name) == ["a"])
            #expect(
                try await bench.connection.value("select version from millrace.mail_messages") == "3")
            #expect(
                try await bench.connection.column("select type from millrace.mail_analytics order by type")
                    == ["emailSent", "templateLoaded"])
            #expect(try await service.run(try await bench.jobs()).isEmpty)
        }
    }

    @Test func `a receipt is asked for with a header, for the address that the mail comes from`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend", batch: 100)
            let asked = try await bench.send("receipt => true, reply_to => 'help@example.net'")
            let plain = try await bench.send()
            let service = bench.service([provider])
            #expect(try await service.run(try await bench.jobs()) == [.done, .done])
            let name = "Disposition-Notification-To"
            let letter = try #require(provider.seen.letters[asked])
            #expect(letter.headers.filter { $0.name == name } == [Letter.Header(name, "shop@example.net")])
            #expect(provider.seen.letters[plain]?.headers.contains { $0.name == name } == false)
        }
    }

    @Test func `a job that was enqueued by itself makes one message, however often it runs`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend")
            let service = bench.service([provider])
            func job(_ job: Int64, _ args: String) -> MailJob {
                MailJob(job: job, kind: "mail.welcome", args: Array(args.utf8), session: 7, isLast: false)
            }
            let good = job(41, #"{"recipient": "ada@example.org", "user_name": "Ada"}"#)
            for _ in 0..<2 { #expect(try await service.run([good]) == [.done]) }
            #expect(provider.seen.taken.count == 1)
            #expect(try await bench.connection.int("select count(*) from millrace.mail") == 1)
            let bad = job(42, #"{"recipient": "ada@example.org\nBcc: eve@example.org", "user_name": "Ada"}"#)
            guard case .dead(let why) = try await service.run([bad])[0] else {
                Issue.record("it is not refused")
                return
            }
            #expect(why.contains("control characters"))
        }
    }

    @Test func `an alarm goes though every breaker is open, by the other way while there is one`() async throws {
        try await withMail { bench in
            let first = ScriptedMailProvider("resend")
            let second = ScriptedMailProvider("smtp")
            let supervisor = bench.supervisor()
            func open(_ provider: String) async throws {
                do {
                    try await supervisor.call(provider) { _ in throw Fault(.authentication, "a bad key") }
                } catch is Fault {}
                #expect(supervisor.isOpen(provider))
            }
            let service = bench.service([first, second], supervisor: supervisor)
            try await open("resend")
            let around = try await bench.send("purpose => 'alarm', on_unknown => 'again', priority => 'urgent'")
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(try await bench.outcomes(around).last == "smtp accepted")
            try await open("smtp")
            let anyway = try await bench.send("purpose => 'alarm', on_unknown => 'again', priority => 'urgent'")
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(try await bench.outcomes(anyway).last == "smtp accepted")
            let waits = try await bench.send()
            _ = try await service.run(try await bench.jobs())
            #expect(try await bench.status(waits) != "accepted")
        }
    }

    @Test
    func `a second provider is asked after a refusal that is the provider's, never after one that is the message's`()
        async throws
    {
        try await withMail { bench in
            let first = ScriptedMailProvider("resend") { _, letters in
                .refuse(Fault(letters[0].subject == "bad" ? .invalid : .authentication, code: "x", "no"))
            }
            let second = ScriptedMailProvider("smtp")
            // One after the other: the good one's bad answer shuts the first provider for later mail.
            let service = bench.service([first, second])
            let bad = try await bench.send(subject: "bad")
            #expect(try await service.run(try await bench.jobs()) == [.dead("no")])
            let good = try await bench.send(subject: "good")
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(try await bench.status(bad) == "failed")
            #expect(try await bench.status(good) == "accepted")
            #expect(try await bench.outcomes(good) == ["resend refused", "smtp accepted"])
            #expect(second.seen.taken.keys.sorted() == [good])
        }
    }

    @Test func `a refused batch is taken apart, so that one bad message fails alone`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend", batch: 100) { _, letters in
                letters.contains { $0.subject == "bad" } ? .refuse(Fault(.invalid, "422")) : .accept
            }
            for subject in ["one", "bad", "two"] { try await bench.send(subject: subject) }
            let endings = try await bench.service([provider]).run(try await bench.jobs())
            #expect(endings == [.done, .dead("422"), .done])
            #expect(provider.seen.calls.map(\.messages.count).sorted() == [1, 1, 1, 3])
            #expect(
                try await bench.connection.column("select state from millrace.mail_batch order by id") == [
                    "split", "settled", "settled", "settled",
                ])
        }
    }

    @Test func `the switch to the second provider is told once, and so is the way back`() async throws {
        try await withMail { bench in
            let isDown = Mutex(true)
            let first = ScriptedMailProvider("resend") { _, _ in
                isDown.withLock { $0 } ? .refuse(Fault(.unavailable, "refused")) : .accept
            }
            let second = ScriptedMailProvider("smtp")
            let service = bench.service([first, second])
            for number in 0..<6 {
                let id = try await bench.send(to: "a\(number)@example.org")
                #expect(try await service.run(try await bench.jobs()) == [.done])
                #expect(try await bench.status(id) == "accepted")
            }
            #expect(first.seen.calls.count == 3 && second.seen.taken.count == 6)
            #expect(
                try await bench.connection.column(
                    "select type || ' ' || service from millrace.mail_analytics where type = 'serviceSwitched'")
                    == ["serviceSwitched smtp"])
            isDown.withLock { $0 = false }
            let other = bench.service([first, second])  // as a worker that has not seen it fail
            try await bench.send()
            #expect(try await other.run(try await bench.jobs()) == [.done])
            #expect(
                try await bench.connection.column(
                    "select service from millrace.mail_analytics where type = 'serviceSwitched' order by at")
                    == ["smtp", "resend"])
        }
    }
}
