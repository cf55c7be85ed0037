import FoundationEssentials
package import SettingsKit
import Supervision
package import Transfers

extension Setting {
    package static let webhooks: [Setting] = [webhooksOn, webhookAllow, eventSource]

    package static let webhooksOn = Setting(
        "webhooks", .boolean, fallback: "on", help: "Send events to webhooks from this worker.")
    package static let webhookAllow = Setting(
        "webhook-allow",
        .custom(expects: "hosts such as hooks.example,http://build.internal:8080") { text in
            do throws(TransferError) {
                _ = try AllowedHosts(text)
                return nil
            } catch {
                return "takes hosts: \(error)"
            }
        }, valueName: "HOST,…",
        help:
            "Hosts that webhooks may use although their addresses are not public; with http:// in front, without TLS, on exactly that port."
    )
    package static let eventSource = Setting(
        "event-source",
        .custom(expects: "a URL such as https://events.example.com/, or a DNS name") { text in
            originName(text) == nil ? "takes a URL such as https://events.example.com/, or a DNS name" : nil
        }, valueName: "URL",
        help:
            "Where events come from: the source of Millrace's own events; its host name is the origin for which targets of webhooks give their consent."
    )

    /// The DNS name in a URL, or a DNS name itself.
    package static func originName(_ text: String) -> String? {
        var rest = Substring(text)
        for scheme in ["https://", "http://"] where rest.lowercased().hasPrefix(scheme) {
            rest = rest.dropFirst(scheme.count)
        }
        let name = rest.prefix { $0 != "/" && $0 != ":" }.lowercased()
        let isName =
            (1...253).contains(name.utf8.count)
            && name.split(separator: ".", omittingEmptySubsequences: false).allSatisfy { label in
                (1...63).contains(label.utf8.count)
                    && label.utf8.allSatisfy { byte in
                        (0x61...0x7A).contains(byte) || (0x30...0x39).contains(byte) || byte == 0x2D
                    }
            }
        return isName ? name : nil
    }
}

extension Settings {
    package var sendsWebhooks: Bool { isOn(.webhooksOn) }

    /// Checked when it was read.
    package var webhookHosts: AllowedHosts { text(.webhookAllow).flatMap { try? AllowedHosts($0) } ?? .none }

    /// The name by which targets know us; the machine's own if none is set.
    package var webhookOrigin: String {
        text(.eventSource).flatMap(Setting.originName) ?? text(.publicURL).flatMap(Setting.originName)
            ?? Setting.originName(Self.hostName) ?? "localhost"
    }

    /// Whether the name is set.
    package var knowsWebhookOrigin: Bool { text(.eventSource) != nil || text(.publicURL) != nil }

    /// The time limit of an attempt, from the name server's answer to the last byte.
    package var webhookTimeout: Duration { supervision.providers["webhook"]?.timeout ?? .seconds(15) }
}
