package import Listeners

extension Setting {
    /// Addresses and ranges of proxies.
    package static let addressRanges = ValueKind.custom(expects: "addresses such as 10.0.0.7 or 10.0.0.0/24") { text in
        ListText.items(text).allSatisfy { AddressRange($0) != nil }
            ? nil : "takes addresses and ranges separated by commas, such as 10.0.0.7 or 10.0.0.0/24"
    }
}

extension Settings {
    /// The addresses and ranges of such a setting.
    package func addresses(_ setting: Setting) -> [AddressRange] {
        ListText.items(text(setting) ?? "").compactMap { AddressRange($0) }
    }
}
