import Fakes
import Signatures
import Testing

@testable import Notices

@Suite struct WordsTests {
    private func words(
        _ kind: String, _ data: [String: String] = [:], locale: String? = nil, person: String = "ada"
    ) -> NoticeWords {
        NoticeWords.of(
            Sending(
                id: "1", person: person, kind: kind, data: Facts(data), channel: "push", address: "x", locale: locale),
            app: "Shop", defaultLocale: "en")
    }

    @Test func `a link is signed for alarms and questions alone, whatever a notice's data say`() {
        let links = Links(publicURL: "https://x.example", secrets: ["a secret of ours"])
        let ref = "0b8c2f6e-5f0a-4d5f-9d53-6f3a6d1c7a10"
        func link(_ kind: String) -> String? {
            NoticeWords.of(
                Sending(
                    id: "1", person: "ada", kind: kind, data: Facts(["ref": ref, "alarm": ref, "approval": ref]),
                    channel: "push",
                    address: "x", locale: nil), app: "Shop", defaultLocale: "en", links: links
            ).link
        }
        #expect(link("alarm.raised")?.hasPrefix("https://x.example/v1/alarms/") == true)
        #expect(link("approval.reminder") == links.approval(ref, ref: ref))
        #expect(link("own.water") == nil && link("receipt") == nil && link("own.approval.asked") == nil)
    }

    @Test func `kinds have words in the person's language, and data have the last word`() {
        #expect(words("alarm.raised", ["name": "Ben"]).title == "Ben may need help")
        #expect(words("alarm.raised", ["name": "Ben"], locale: "de-AT").title == "Ben braucht vielleicht Hilfe")
        #expect(words("alarm.raised", ["name": "Ben"], locale: "fr").title == "Ben may need help")
        #expect(words("alarm.raised", ["title": "Look", "body": "now"]).line == "Look\nnow")
        let question = ["asks": "order.place", "step": "large-order", "due": "2027-01-31 18:00 (UTC)"]
        #expect(
            words("approval.asked", question).line
                == "order.place asks for your answer\nThe question: large-order. Please answer by 18:00 on 31 January 2027 (UTC)."
        )
        #expect(words("approval.asked", question, locale: "de").body.hasSuffix("bis 18:00 am 31. Januar 2027 (UTC)."))
        #expect(words("approval.asked", question, locale: "ar").body.contains("18:00 يوم 31 يناير 2027 (UTC)"))
        let alarm = ["title": "Ben", "body": "Ben should have checked in by 2027-02-01 06:05 (Europe/Vienna)."]
        #expect(
            words("alarm.raised", alarm).body
                == "Ben should have checked in by 06:05 on 1 February 2027 (Europe/Vienna).")
        let plan = ["plan": "Family", "until": "2027-01-31"]
        #expect(words("subscription.ending", plan).title == "Your subscription ends on 31 January 2027")
        #expect(words("subscription.ending", plan, locale: "de").title == "Dein Abo endet am 31. Januar 2027")
        // Of an app's own notices nothing is rewritten.
        #expect(words("own.order", ["body": "2027-01-31 18:00 (UTC)"]).body == "2027-01-31 18:00 (UTC)")
        #expect(words("receipt", ["text": "Thank you"]) == NoticeWords(title: "Shop", body: "Thank you"))
        #expect(words("receipt").body == "There is something new for you.")
        for kind in [
            "alarm.warning", "alarm.raised", "alarm.escalated", "alarm.acknowledged", "alarm.resolved", "summary",
            "quest_available", "quest_summary", "daily_reminder", "streak_at_risk", "mood_buffer", "approval.asked",
            "approval.reminder", "approval.escalated", "subscription.ending", "subscription.trial_ending",
            "subscription.unpaid",
        ] {
            let (english, german) = (words(kind), words(kind, locale: "de"))
            #expect(english.title != german.title && english.body != german.body && english.title != "Shop", "\(kind)")
            let arabic = words(kind, locale: "ar-EG")
            #expect(
                [arabic.title, arabic.body].allSatisfy {
                    $0.unicodeScalars.contains { (0x600...0x6ff).contains($0.value) }
                }, "\(kind)")
        }
    }

    @Test func `a rehearsal says so, and nothing breaks out of its line`() {
        #expect(words("alarm.raised", ["test": "true"]).title.hasPrefix("[TEST] "))
        #expect(words("alarm.raised", ["drill": "true"], locale: "de").title.hasPrefix("[TEST"))
        #expect(words("x", ["title": "a\r\nb\u{202e}c\u{0}", "body": "t"]).title == "a \nb c ")
        #expect(words("x", ["title": String(repeating: "x", count: 5000), "body": "t"]).title.count == 200)
        #expect(words("x", ["url": "javascript:alert(1)", "body": "t"]).link == nil)
        #expect(words("x", ["url": "https://a.example/b", "body": "t"]).line == "Shop\nt\nhttps://a.example/b")
    }

    @Test func `data of any shape are read as far as words can be made of them`() {
        let facts = Facts(
            json: Array(#"{"a": "x", "b": 3, "c": true, "d": [1], "e": {"f": 1}, "g": null, "h": 1.5}"#.utf8))
        #expect(facts.texts == ["a": "x", "b": "3", "c": "true", "h": "1.5"])
        #expect(Facts(json: Array("[]".utf8)).texts.isEmpty)
    }

    @Test func `a push fits into 4096 bytes, and an alarm is marked as one`() {
        let sending = Sending(
            id: "1", person: "ada", kind: "alarm.raised",
            data: Facts(["big": String(repeating: "\"ü", count: 3000), "name": "Ben"]), channel: "push", address: "x",
            isAlarm: true)
        let long = NoticeWords(title: "T", body: String(repeating: "\u{1F600}", count: 1500))
        for payload in [APNsPayload(sending, long, isCritical: false).bytes, FCMProvider.body(sending, long)] {
            #expect(payload.count <= 4096 && payload.count > 1000)
        }
        let short = String(
            decoding: APNsPayload(sending, NoticeWords(title: "T", body: "b"), isCritical: true).bytes, as: UTF8.self)
        #expect(short.contains(#""interruption-level":"critical""#) && short.contains(#""critical":1"#))
        let usual = String(
            decoding: APNsPayload(sending, NoticeWords(title: "T", body: "b"), isCritical: false).bytes, as: UTF8.self)
        #expect(usual.contains(#""interruption-level":"time-sensitive""#) && usual.contains(#""sound":"default""#))
    }

    @Test func `tokens are signed so that others can check them, and bad keys are refused in a sentence`() throws {
        for kind in [FakeKeys.Kind.p256, .rsa] {
            let keys = FakeKeys(kind)
            let key = try SigningKey(pem: Array(keys.pem.utf8))
            #expect(key.algorithm == (kind == .p256 ? .es256 : .rs256))
            for number in 0..<20 {
                let token = key.token(header: "{}", payload: "{\"n\":\(number)}")
                #expect(keys.payload(of: token) == "{\"n\":\(number)}")
                #expect(FakeKeys(.p256).payload(of: token) == nil)
            }
            #expect("\(key)" == "a key")
        }
        for bad in ["", "hello", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"] {
            #expect(throws: SigningKey.Unusable.self) { try SigningKey(pem: Array(bad.utf8)) }
        }
    }
}
