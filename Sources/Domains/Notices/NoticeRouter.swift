import Faults
import Signatures
import Supervision
import Synchronization

/// Finds the provider of a sending, and calls it when the supervisor permits; for an alarm the supervisor always does.
struct NoticeRouter: Sendable {
    let providers: [String: any NoticeProvider]
    let supervisor: Supervisor
    let app: String
    let locale: String
    let links: Links?
    let phrases: PublishedPhrases

    func words(_ sending: Sending) -> NoticeWords {
        NoticeWords.of(sending, app: app, defaultLocale: locale, links: links, phrases: phrases)
    }

    /// Sends it; returns the provider and the outcome.
    func bring(_ sending: Sending, deadline: Duration) async -> (provider: String, NoticeOutcome) {
        let name: String
        switch Sending.Channel(rawValue: sending.channel) {
        case .push:
            switch sending.platform {
            case "apns", "apns_sandbox": name = "apns"
            case "fcm": name = "fcm"
            default: return ("push", .gone(Fault(.notFound, "the device was removed")))
            }
        case .sms, .voice: name = sending.channel
        case .mail, nil: return (sending.channel, .refused(Fault(.unsupported, "there is no such channel")))
        }
        guard let provider = providers[name] else {
            return (name, .failed(Fault(.unavailable, "\(name) is not configured")))
        }
        let words = words(sending)
        let heard = Mutex<NoticeOutcome?>(nil)
        do {
            return (
                name,
                try await supervisor.call(
                    name, deadline: deadline, isRetry: sending.isAgain && !sending.isAlarm,
                    isVital: sending.isAlarm
                ) { call in
                    let delivery = await provider.send(sending, words, call: call)
                    heard.withLock { $0 = delivery }
                    // A fault that concerns the provider's health is thrown, so that it counts.
                    if let fault = delivery.fault, fault.kind.bearing != .healthy { throw fault }
                    return delivery
                }
            )
        } catch let refusal as CallRefusal {
            return (name, .notCalled(refusal))
        } catch {
            let fault = (error as? Fault) ?? Fault(.unknown, "\(error)")
            return (name, heard.withLock { $0 } ?? .unknown(fault))
        }
    }
}
