import Fakes
import Foundation
import Signatures
import Synchronization
import TestSupport
import Testing

@testable import Mail

@Suite struct ResendEventTests {
    @Test func `an event is read, with our own id from its tags`() throws {
        let body = #"""
            {"type":"email.bounced","created_at":"2026-11-22T23:41:12.126Z","data":{"email_id":"e-1","created_at":"x","from":"a@b.example",
            "to":["c@d.example"],"subject":"s","tags":{"millrace_message":"01234567-89ab-4def-8123-456789abcdef"},
            "bounce":{"type":"Permanent","subType":"NoEmail","message":"m","diagnosticCode":["550"]}}}
            """#
        let event = try #require(try ResendEvent.read(Array(body.utf8)))
        #expect(event.kind == .bounced && event.id == "e-1" && event.recipients == ["c@d.example"])
        #expect(event.message?.uuidString == "01234567-89AB-4DEF-8123-456789ABCDEF")
        #expect(event.bounce == .permanent && event.bounceDetail == "NoEmail")
        #expect(abs(event.at.timeIntervalSince1970 - 1_795_390_872.126) < 0.001)
        let listed = body.replacingOccurrences(
            of: #"{"millrace_message":"01234567-89ab-4def-8123-456789abcdef"}"#,
            with: #"[{"name":"millrace_message","value":"01234567-89ab-4def-8123-456789abcdef"}]"#)
        #expect(try ResendEvent.read(Array(listed.utf8)) == event)
        let odd = body.replacingOccurrences(of: "Permanent", with: "New")
        #expect(try ResendEvent.read(Array(odd.utf8))?.bounce == .undetermined)
    }

    @Test(arguments: [
        "2026-11-22T23:41:12Z", "2026-11-22T23:41:12.000Z", "2026-11-22 23:41:12.000000+00",
        "2026-11-22T23:41:12+00:00",
    ])
    func `times are read however they are written`(text: String) {
        #expect(ResendEvent.time(text)?.timeIntervalSince1970 == 1_795_390_872)
    }

    @Test(arguments: [
        "", "{}", "[]", #"{"type":"email.sent"}"#, #"{"type":"email.sent","created_at":"x","data":{"email_id":"e"}}"#,
    ])
    func `what is no event is refused`(body: String) {
        #expect(throws: (any Error).self) { try ResendEvent.read(Array(body.utf8)) }
    }

    @Test func `events that are not about our messages are passed over`() throws {
        for type in ["contact.created", "email.received", "domain.updated", "email.of_tomorrow"] {
            #expect(try ResendEvent.read(Array(#"{"type":"\#(type)","created_at":"x","data":{}}"#.utf8)) == nil)
        }
    }

    @Test func `the fake's events come signed, twice and again after a failure, and are all read`() async throws {
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
        let heard = Locked<(ids: [String], events: [ResendEvent], failed: Int, wrong: Int)>(([], [], 0, 0))
        let server = try RawServer { connection in
            while let head = connection.readHead() {
                var headers: [String: String] = [:]
                for line in head.split(separator: "\r\n").dropFirst() {
                    let parts = line.split(separator: ": ", maxSplits: 1)
                    if parts.count == 2 { headers[parts[0].lowercased()] = String(parts[1]) }
                }
                guard let body = connection.read(exactly: Int(headers["content-length"] ?? "") ?? 0) else { return }
                let status: String = heard.withLock { state in
                    state.failed += 1
                    if state.failed % 3 == 0 { return "500 Broken" }
                    do {
                        state.ids.append(
                            try Webhook.verify(
                                body, .init { headers[$0] }, with: Webhook.Secret.list(secret), at: Date()))
                        state.events.append(try #require(try ResendEvent.read(body)))
                    } catch {
                        state.wrong += 1
                    }
                    return "200 OK"
                }
                connection.answer("", status: status)
            }
        }
        defer { server.stop() }
        var script = ResendScript()
        (script.webhook, script.secret) = ("http://127.0.0.1:\(server.port)/hook", secret)
        (script.twice, script.shuffleMilliseconds, script.retryScale) = (0.5, 50, 0.001)
        let fake = try FakeResend(script)
        defer { fake.stop() }
        let connection = try RawConnection(to: fake.port)
        let body =
            #"{"from":"a@b.example","to":"bounced@d.example","subject":"s","text":"t","tags":[{"name":"millrace_message","value":"01234567-89ab-4def-8123-456789abcdef"}]}"#
        for _ in 0..<20 {
            connection.write(
                "POST /emails HTTP/1.1\r\nUser-Agent: t\r\nAuthorization: Bearer re_test\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
            )
            #expect(connection.readHead()?.hasPrefix("HTTP/1.1 200") == true)
            _ = connection.read(exactly: 45)
        }
        try await eventually("all events have come") {
            heard.withLock { Set($0.ids).count } == 40 && fake.events.waiting == 0
        }
        heard.withLock { state in
            #expect(state.wrong == 0 && state.ids.count > 40)
            #expect(state.events.allSatisfy { $0.message?.uuidString == "01234567-89AB-4DEF-8123-456789ABCDEF" })
            #expect(Set(state.events.filter { $0.kind == .bounced }.map(\.id)) == Set(fake.accepted.map(\.id)))
        }
    }
}
