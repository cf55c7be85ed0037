package import Signatures

extension Setting {
    package static let links: [Setting] = [publicURL, secret, secretPrevious, contactAddress, emergencyNumber]

    package static let publicURL = Setting(
        "public-url", .custom(expects: "a URL such as https://mail.example.com", complaint: webComplaint),
        valueName: "URL", help: "The public address of the listener, for links in mails and for webhooks.")
    package static let secret = Setting(
        "secret", .custom(expects: "a secret of at least 16 bytes", complaint: secretComplaint), secrecy: .hidden,
        valueName: "SECRET", help: "The secret that signs links.")
    package static let secretPrevious = Setting(
        "secret-previous", .custom(expects: "a secret of at least 16 bytes", complaint: secretComplaint),
        secrecy: .hidden, valueName: "SECRET", help: "The previous secret for links; links that it signed still open.")

    package static let contactAddress = Setting(
        "contact-address",
        .custom(expects: "a mail address such as help@example.com") { text in
            text.contains("@") && text.utf8.count <= 254
                && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f && !"<>\"'?&".utf8.contains($0) }
                ? nil : "takes one mail address"
        }, valueName: "ADDRESS", help: "The address for questions about a page behind a link.")
    package static let emergencyNumber = Setting(
        "emergency-number",
        .custom(expects: "a telephone number such as 112") { text in
            (2...24).contains(text.utf8.count) && text.utf8.allSatisfy { "+0123456789 /-".utf8.contains($0) }
                ? nil : "takes a telephone number"
        }, valueName: "NUMBER", help: "The emergency number that alarm pages show first, such as 112.")

    private static func secretComplaint(_ text: String) -> String? {
        text.utf8.count >= 16 ? nil : "takes at least 16 bytes"
    }

    package static func webComplaint(_ text: String) -> String? {
        let isWeb = text.hasPrefix("https://") || text.hasPrefix("http://")
        return isWeb && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && text.utf8.count <= 2000
            ? nil : "takes a URL that begins with https:// or http://"
    }
}

extension Settings {
    /// nil without a secret and an address for them.
    package var links: Links? {
        guard let url = text(.publicURL), let secret = text(.secret) else { return nil }
        return Links(publicURL: url, secrets: [secret] + (text(.secretPrevious).map { [$0] } ?? []))
    }
}
