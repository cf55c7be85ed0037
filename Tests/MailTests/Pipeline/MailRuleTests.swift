import Faults
import Mail
import Postgres
import Signatures
import TestSupport
import Testing

/// Which recipients get a message, and how many.
@Suite struct MailRuleTests {
    @Test func `who is suppressed gets nothing, by purpose, and it is looked up when the request is made`() async throws
    {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend", batch: 100)
            let service = bench.service([provider]) { $0.links = Links(publicURL: "https://x.example", secrets: ["s"]) }
            let security = try await bench.send("purpose => 'security'")
            let marketing = try await bench.send("purpose => 'marketing'")
            let several = try await bench.connection.refusal(
                of: "select millrace.mail_send(array['a@b.example', 'c@d.example'], 's', 't', purpose => 'marketing')")
            #expect(several?.sqlState == "22023")
            let jobs = try await bench.jobs()
            try await bench.connection.run("select millrace.mail_suppress('Ada@Example.org', 'asked', 'marketing')")
            #expect(try await service.run(jobs) == [.done, .done])
            #expect(try await bench.status(security) == "accepted")
            #expect(try await bench.status(marketing) == "suppressed")
            try await bench.connection.run("select millrace.mail_suppress('ada@example.org', 'asked')")
            let both =
                try await bench.connection.value(
                    "select millrace.mail_send(array['ADA@example.org', 'bob@example.org'], 's', 't')") ?? ""
            #expect(try await service.run(try await bench.jobs()) == [.done])
            #expect(provider.seen.letters[both]?.to.map(\.address) == ["bob@example.org"])
            #expect(try await bench.connection.bool("select millrace.mail_unsuppress('ada@example.org', '*')"))
        }
    }

    @Test func `marketing mail carries a link that unsubscribes with one click`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend")
            let links = Links(publicURL: "https://x.example/", secrets: ["new", "old"])
            let id = try await bench.send("purpose => 'marketing'")
            _ = try await bench.service([provider]) { $0.links = links }.run(try await bench.jobs())
            let headers = try #require(provider.seen.letters[id]?.headers)
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
            _ = try await bench.service([provider]) { $0.links = links }.run(try await bench.jobs())
            #expect(try await bench.status(next) == "suppressed")
            let without = try await bench.send("purpose => 'marketing'", to: "bob@example.org")
            _ = try await bench.service([provider]).run(try await bench.jobs())
            #expect(try await bench.status(without) == "failed")
        }
    }

    @Test func `what is late is not sent, and what is early waits`() async throws {
        try await withMail { bench in
            let provider = ScriptedMailProvider("resend")
            let late = try await bench.send("expires_at => millrace.now() + interval '1 hour'")
            let early = try await bench.send("scheduled_at => millrace.now() + interval '1 hour'")
            try await bench.connection.run(
                "update millrace.mail set expires_at = now() - interval '1 s' where id = '\(late)'")
            let endings = try await bench.service([provider]).run(try await bench.jobs())
            #expect(endings[0] == .done)
            guard case .later(let wait) = endings[1] else {
                Issue.record("it does not wait")
                return
            }
            #expect(wait > .seconds(3500))
            #expect(try await bench.status(late) == "expired")
            #expect(try await bench.status(early) == "scheduled")
            #expect(provider.seen.calls.isEmpty)
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
            let provider = ScriptedMailProvider("resend", batch: 100)
            for number in 0..<5 { try await bench.send("sender => 'u1'", to: "a\(number)@d\(number).example") }
            for number in 0..<5 { try await bench.send(to: "b\(number)@same.example") }
            let service = bench.service([provider]) {
                $0.senderRate = .init(count: 2, span: .seconds(60))
                $0.domainRate = .init(count: 3, span: .seconds(60))
            }
            let endings = try await service.run(try await bench.jobs())
            #expect(endings.map { $0 == .done } == [true, true, false, false, false, true, true, true, false, false])
            #expect(provider.seen.taken.count == 5)
        }
    }

    @Test func `the last tenth of a quota is for what somebody waits for`() async throws {
        try await withMail { bench in
            let first = ScriptedMailProvider("resend")
            let second = ScriptedMailProvider("smtp")
            let alone = bench.service([first]) { $0.quota = 10 }
            for _ in 0..<9 {
                try await bench.send()
                #expect(try await alone.run(try await bench.jobs()) == [.done])
            }
            let late = try await bench.send()
            guard case .later = try await alone.run(try await bench.jobs())[0] else {
                Issue.record("the tenth went")
                return
            }
            #expect(try await bench.status(late) == "sending", "a request was made ready, and not made")
            #expect(try await bench.outcomes(late).isEmpty)
            // If there is another provider the message takes it, and no switch is logged.
            let both = bench.service([first, second]) { $0.quota = 10 }
            let urgent = try await bench.send("priority => 'urgent'")
            #expect(try await both.run(Array(try await bench.jobs().suffix(1))) == [.done])
            #expect(first.seen.taken[urgent] == 1)
            #expect(try await both.run(try await bench.jobs()) == [.done])
            #expect(second.seen.taken[late] == 1)
            #expect(
                try await bench.connection.int(
                    "select count(*) from millrace.mail_analytics where type = 'serviceSwitched'") == 0)
        }
    }
}
