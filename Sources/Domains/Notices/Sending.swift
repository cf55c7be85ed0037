package import FoundationEssentials

/// One notice to one address, leased to this process.
package struct Sending: Sendable {
    package enum Channel: String, Sendable, CaseIterable {
        case push, mail, sms, voice
    }

    package var id: String
    package var person: String
    package var kind: String
    package var key: String?
    package var data: Facts
    /// The database's name of the channel; this version cannot send through a channel that it does not know.
    package var channel: String
    package var address: String
    package var isAlarm: Bool
    /// apns, apns_sandbox or fcm; nil when the device is gone.
    package var platform: String?
    package var app: String?
    package var attempt: Int
    package var isAgain: Bool
    package var dueAt: Date
    package var expiresAt: Date?
    /// The database's clock when it was taken.
    package var takenAt: Date
    package var locale: String?

    /// What a device shows it in place of: an earlier sending of the same notice; of a chat whatever it showed of the same thread.
    package var replaces: String {
        guard kind == "chat.message", let thread = data["thread"], thread.utf8.count <= 58 else { return id }
        return "chat:\(thread)"
    }

    package init(
        id: String, person: String, kind: String, key: String? = nil, data: Facts = Facts(), channel: String,
        address: String, isAlarm: Bool = false, platform: String? = nil, app: String? = nil, attempt: Int = 1,
        isAgain: Bool = false, dueAt: Date = Date(), expiresAt: Date? = nil, takenAt: Date = Date(),
        locale: String? = nil
    ) {
        self.id = id
        self.person = person
        self.kind = kind
        self.key = key
        self.data = data
        self.channel = channel
        self.address = address
        self.isAlarm = isAlarm
        self.platform = platform
        self.app = app
        self.attempt = attempt
        self.isAgain = isAgain
        self.dueAt = dueAt
        self.expiresAt = expiresAt
        self.takenAt = takenAt
        self.locale = locale
    }
}

/// Neither the address nor the contents are printed.
extension Sending: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    package var description: String { "a notice of kind \(kind)" }
    package var debugDescription: String { description }
    package var customMirror: Mirror { Mirror(self, children: []) }
}

/// A notice's data, as far as words can use it: its texts, numbers and booleans.
package struct Facts: Sendable, Equatable {
    package private(set) var texts: [String: String] = [:]
    /// All data, as it was given.
    package private(set) var json: [UInt8] = Array("{}".utf8)

    package init(_ texts: [String: String] = [:]) {
        self.texts = texts
        json = NoticeStore.json(of: texts)
    }

    package init(json: [UInt8]) {
        self.json = json
        guard let values = try? JSONDecoder().decode([String: Loose].self, from: Data(json)) else { return }
        texts = values.compactMapValues(\.text)
    }

    package subscript(name: String) -> String? {
        guard let text = texts[name], !text.isEmpty else { return nil }
        return text
    }

    package func isTrue(_ name: String) -> Bool { texts[name] == "true" }

    private struct Loose: Decodable {
        var text: String?

        init(from decoder: any Decoder) throws {
            let value = try decoder.singleValueContainer()
            if let text = try? value.decode(String.self) {
                self.text = text
            } else if let truth = try? value.decode(Bool.self) {
                text = truth ? "true" : "false"
            } else if let number = try? value.decode(Int.self) {
                text = "\(number)"
            } else if let number = try? value.decode(Double.self) {
                text = "\(number)"
            }
        }
    }
}
