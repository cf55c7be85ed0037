import Signatures

extension Setting {
    static let checkIns: [Setting] = [checkInsOn, deadmanURL, deadmanEvery]

    static let checkInsOn = Setting(
        "checkins", .boolean,
        help:
            "Watch over check-ins: raise alarms for those that are missed, and go on until somebody answers. If not given, while there are any."
    )
    /// Whoever knows it can say that all is well.
    static let deadmanURL = Setting(
        "deadman-url",
        .custom(expects: "a URL such as https://hc.example.com/ping/…") { text in
            (text.hasPrefix("https://") || text.hasPrefix("http://"))
                && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && text.utf8.count <= 2000
                ? nil : "takes a URL that begins with https:// or http://"
        }, secrecy: .hidden, valueName: "URL",
        help:
            "An outside service that is told while the check-ins are watched over, and raises the alarm when it is not."
    )
    static let deadmanEvery = Setting(
        "deadman-every", .duration(.seconds(5) ... .seconds(86_400)), fallback: "60s", valueName: "DURATION",
        help: "How often it is told.")
}

extension Settings {
    /// nil: nobody has said; it watches while there is anybody to watch over.
    var runsCheckIns: Bool? {
        guard case .boolean(let isOn)? = entry(.checkInsOn)?.value else { return nil }
        return isOn
    }

    /// nil without a secret and an address for them.
    var links: Links? {
        guard let url = text(.publicURL), let secret = text(.secret) else { return nil }
        return Links(publicURL: url, secrets: [secret] + (text(.secretPrevious).map { [$0] } ?? []))
    }
}
