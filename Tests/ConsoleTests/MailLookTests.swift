import Foundation
import Postgres
import TestSupport
import Testing

@testable import Console

/// Who may see what messages say, and to whom they went; and that it is written down.
@Suite(.timeLimit(.minutes(10))) struct MailLookTests {
    private static func looks(_ world: ConsoleWorld) async throws -> [String] {
        try await world.connection.column(
            "select action || ' ' || coalesce(object, '-') from millrace.audit where action like 'mail.%' order by id")
    }

    @Test func `an operator reads a message, its HTML runs nothing, and the audit has each look`() async throws {
        try await ConsoleWorld.with({
            $0.access.localRole = .operator
            $0.addition = Seed.script
        }) { world in
            let page = try await world.get("/console/mail/\(Seed.mail)")
            #expect(page.body.contains("?read=yes\">Read the message") && !page.body.contains("Your report"))
            #expect(try await Self.looks(world) == [])
            let read = try await world.get("/console/mail/\(Seed.mail)?read=yes").body
            #expect(read.contains("ann@example.com") && read.contains("Your report") && read.contains("The text"))
            #expect(!read.contains("<script>hacked"))
            #expect(
                read.contains(
                    "<iframe sandbox title=\"What the message says\" src=\"/console/mail/\(Seed.mail)/body\">"))
            #expect(try await Self.looks(world) == ["mail.read \(Seed.mail)"])
            let body = try await world.get("/console/mail/\(Seed.mail)/body")
            #expect(body.status == 200 && body.body.contains("<p>The text</p>"))
            let policy = body.header("Content-Security-Policy") ?? ""
            #expect(
                policy.hasPrefix("default-src 'none';") && policy.contains(" sandbox;") && !policy.contains("script"))
            #expect(try await Self.looks(world).count == 2)
        }
    }

    @Test func `messages are found by recipient and by subject, and the audit does not have the address`() async throws
    {
        try await ConsoleWorld.with({ $0.access.localRole = .operator }) { world in
            let token = try await world.formToken()
            func found(_ words: [(String, String)]) async throws -> (address: String, page: String) {
                let answer = try await world.post("/console/mail/find", [("form_token", token)] + words)
                let address = try #require(answer.header("Location"))
                #expect(answer.status == 303 && address.hasPrefix("/console/mail?found="))
                return (address, try await world.get(address).body)
            }
            let byAddress = try await found([("recipient", "BOB@example.com"), ("subject", " ")])
            #expect(byAddress.page.contains("bob@example.com") && byAddress.page.contains("Second"))
            #expect(!byAddress.page.contains("ann@example.com"))
            // What a proxy would log.
            #expect(!byAddress.address.lowercased().contains("bob"))
            #expect(byAddress.page.contains("value=\"BOB@example.com\""), "the form keeps what was asked")
            let bySubject = try await found([("subject", "REPORT")]).page
            #expect(bySubject.contains("ann@example.com") && !bySubject.contains("bob@example.com"))
            let neither = try await found([("recipient", "bob@example.com"), ("subject", "report")]).page
            #expect(neither.contains("There are no such messages."))
            let nothing = try await world.post("/console/mail/find", [("form_token", token), ("recipient", "")])
            #expect(nothing.header("Location") == "/console/mail")
            #expect(try await world.post("/console/mail/find", [("recipient", "bob@example.com")]).status == 403)
            let changed = try await world.get(String(byAddress.address.dropLast(4)))
            #expect(changed.status == 404 && changed.body.contains("this search is over"))
            let looks = try await Self.looks(world)
            #expect(looks.count == 3 && looks.allSatisfy { $0.hasPrefix("mail.search ") && !$0.contains("bob@") })
            let rows = try await world.connection.column("select to_jsonb(a)::text from millrace.audit a")
            #expect(!rows.contains { $0.contains("bob@example") || $0.contains("REPORT") })
        }
    }

    @Test func `a viewer sees neither, and nobody reads what signs people in`() async throws {
        try await ConsoleWorld.with({ $0.access.localRole = .viewer }) { world in
            for address in ["?read=yes", "/body"] {
                let answer = try await world.get("/console/mail/\(Seed.mail)\(address)")
                #expect(answer.status == 403 && !answer.body.contains("Your report"), "\(address)")
            }
            let list = try await world.get("/console/mail").body
            #expect(!list.contains("id=\"find\"") && !list.contains("Second"))
            let search = try await world.post(
                "/console/mail/find", [("form_token", try await world.formToken()), ("recipient", "bob@example.com")])
            #expect(search.status == 403)
            let viewer = try await world.database.connect(as: try #require(world.roles[.viewer]))
            for call in ["mail_content_shown('\(Seed.mail)')", "mails_found('bob@example.com')"] {
                #expect(try await viewer.refusal(of: "select millrace.\(call)")?.sqlState == "42501", "\(call)")
            }
            await viewer.close()
            #expect(try await Self.looks(world) == [])
        }
        try await ConsoleWorld.with { world in
            try await world.connection.run("update millrace.mail set purpose = 'security' where id = '\(Seed.mail)'")
            let answer = try await world.get("/console/mail/\(Seed.mail)?read=yes")
            #expect(answer.status == 403 && answer.body.contains("what this message says is not shown"))
            #expect(try await world.get("/console/mail/\(Seed.queuedMail)?read=yes").status == 200)
        }
    }

    @Test func `a sealed search opens for the visitor who made it, unchanged, within a session's time`() {
        let (ann, ben) = (Visitor(name: "ann", role: .operator), Visitor(name: "ben", role: .operator))
        let queries = SealedQuery(key: Array("a key".utf8))
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        let words = ["recipient": "bob@example.com", "subject": "50 % off: \"now\""]
        let sealed = queries.seal(words, for: ann, at: now)
        #expect(queries.open(sealed, for: ann, at: now) == words)
        #expect(queries.seal(words, for: ann, at: now) != sealed, "two searches for the same look different")
        #expect(queries.open(sealed, for: ben, at: now) == nil)
        #expect(SealedQuery(key: Array("another".utf8)).open(sealed, for: ann, at: now) == nil)
        #expect(queries.open(sealed, for: ann, at: now.addingTimeInterval(13 * 3600)) == nil)
        for text in ["", "x", String(sealed.dropLast()), "A" + sealed] {
            #expect(queries.open(text, for: ann, at: now) == nil, "\(text)")
        }
    }
}
