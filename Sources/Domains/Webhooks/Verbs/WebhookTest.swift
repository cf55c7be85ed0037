import CloudEvents
import Encryption
import FoundationEssentials
import RoomKit
import Signatures

extension Command {
    static let webhooksTest = Command(
        ["webhooks", "test"],
        summary: "Send a webhook an event of type com.millrace.webhook.test, now and from here",
        discussion: """
            Asks for consent as before a first event, sends a signed test event, and prints both results. Nothing is \
            recorded, and a disabled webhook stays disabled. Exit 1 when the event was not taken. Needs the key with \
            which the webhook's secret is encrypted.
            """,
        arguments: [Argument("id", .one, .uuid, help: "the webhook's id")],
        flags: [Setting.webhookAllow.flag, Setting.eventSource.flag, Setting.encryptionKeys.flag],
        examples: [
            Example(
                "millrace webhooks test 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "does the receiver take what we send?")
        ]
    ) { invocation in
        let id = (invocation.parsed.string("id") ?? "").lowercased()
        guard let address = try await invocation.withSchema({ try await WebhookAdmin.address(id, on: $0) }) else {
            throw Failure.noWebhook(id)
        }
        let settings = invocation.settings
        let secrets: [Webhook.Secret]
        do throws(SealError) {
            var opened: [Webhook.Secret] = []
            for stored in address.secrets {
                opened.append(try SigningSecret.open(stored, of: id, with: settings.keys))
            }
            secrets = opened
        } catch {
            throw Failure(.misused, "its secret cannot be read: \(error)")
        }
        let caller = settings.webhookCaller(try invocation.supervisor(name: "webhooks test"))
        var consent = "not asked for"
        if address.handshake {
            switch await caller.ask(id, at: address.url) {
            case .allowed(let rate): consent = rate.map { "given, for \($0) requests a minute" } ?? "given, at any rate"
            case .refused(let why), .retry(let why, _), .later(let why, _), .passed(let why):
                consent = "not given: \(why)"
            }
        }
        var event = CloudEvent(
            id: UUID().uuidString.lowercased(), source: settings.text(.eventSource) ?? "/millrace",
            type: "com.millrace.webhook.test")
        event.time = Date().formatted(.iso8601)
        event.dataContentType = "application/json"
        event.data = .json(Array(#"{"webhook": "\#(id)"}"#.utf8))
        let mode = ContentMode(rawValue: address.mode) ?? .binary
        let verdict = await caller.deliver(
            EventMessage(event, mode), count: 1, id: event.id, to: id, at: address.url, signedWith: secrets)
        var isTaken = false
        if case .delivered = verdict { isTaken = true }
        let outcome = verdict.why ?? "taken"
        invocation.console.show([
            "id": .string(id), "event": .string(event.id), "state": .string(address.state),
            "consent": .string(consent), "taken": .bool(isTaken), "outcome": .string(outcome),
        ]) {
            invocation.console.print("consent  \(DisplayWidth.harmless(consent))")
            invocation.console.print("event    \(event.id) \(DisplayWidth.harmless(outcome))")
        }
        return isTaken && !consent.hasPrefix("not given") ? .done : .failed
    }
}
