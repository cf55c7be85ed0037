package import JSON
package import SettingsKit

extension Setting {
    package static let checkIns: [Setting] = [
        checkInsOn, deadmanURL, deadmanEvery, consentAskerDay, consentAddressDay,
    ]

    package static let checkInsOn = Setting(
        "checkins", .boolean,
        help:
            "Watch over check-ins: raise alarms for those that are missed, and go on until somebody answers. By default, while there are any."
    )
    /// The monitor's address. Anyone who knows it can report that all is well, so it is kept secret.
    package static let deadmanURL = Setting(
        "deadman-url",
        .custom(expects: "a URL such as https://hc.example.com/ping/…") { text in
            (text.hasPrefix("https://") || text.hasPrefix("http://"))
                && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && text.utf8.count <= 2000
                ? nil : "takes a URL that begins with https:// or http://"
        }, secrecy: .hidden, valueName: "URL",
        help:
            "An outside service that is told while the check-ins are watched over, and raises the alarm when it is not."
    )
    package static let deadmanEvery = Setting(
        "deadman-every", .duration(.seconds(5) ... .seconds(86_400)), fallback: "60s", valueName: "DURATION",
        help: "How often it is pinged.")
    package static let consentAskerDay = Setting(
        "consent-asker-day", .integer(0...999_999), valueName: "N",
        help: "How many consent requests one person may cause in a day; 10 by default.")
    package static let consentAddressDay = Setting(
        "consent-address-day", .integer(0...999_999), valueName: "N",
        help: "How many consent requests one address gets in a day, from all senders together; 3 by default."
    )
}

extension Settings {
    /// nil: not set; the worker serves check-ins while there are any.
    package var runsCheckIns: Bool? {
        guard case .boolean(let isOn)? = entry(.checkInsOn)?.value else { return nil }
        return isOn
    }

    /// The rules that are set here, for all callers; the others stay as they are in the database.
    package var checkInRules: JSONValue? {
        let rules = [("asker_day", Setting.consentAskerDay), ("address_day", .consentAddressDay)]
            .filter { text($0.1) != nil }
            .map { JSONValue.Member(key: $0.0, value: .int(integer($0.1))) }
        return rules.isEmpty ? nil : .object(rules)
    }
}
