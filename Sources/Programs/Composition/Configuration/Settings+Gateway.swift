import Listeners

extension Setting {
    package static let gateway: [Setting] = [
        gatewayOn, gatewayListen, gatewayOrigins, gatewayProxies, gatewayRates, gatewayPool, gatewayStreams,
    ]

    package static let gatewayOn = Setting(
        "gateway", .boolean, fallback: "off",
        help: "Serve apps at the gateway's own address, MILLRACE_GATEWAY_LISTEN.")
    package static let gatewayListen = Setting(
        "gateway-listen",
        .custom(expects: ListenAddress.expectation) { text in
            ListenAddress(text) != nil ? nil : "takes \(ListenAddress.expectation), not \(Secrets.quoted(text))"
        },
        fallback: "127.0.0.1:8490", valueName: "ADDRESS:PORT", help: "The gateway's address for apps.")
    package static let gatewayOrigins = Setting(
        "gateway-origins",
        .custom(expects: "origins such as https://app.example.com") { text in
            ListText.items(text).allSatisfy { origin in
                (origin.hasPrefix("https://") || origin.hasPrefix("http://")) && origin.utf8.count <= 255
                    && origin.utf8.allSatisfy { (0x21...0x7E).contains($0) } && origin.filter { $0 == "/" }.count == 2
            } ? nil : "takes origins with commas between them, such as https://app.example.com, without a path"
        }, valueName: "ORIGIN,…", help: "Web pages of these origins may call the gateway; none if not given.")
    package static let gatewayProxies = Setting(
        "gateway-proxies",
        .custom(expects: "addresses such as 10.0.0.7") { text in
            ListText.items(text).allSatisfy { ListenAddress("\($0.contains(":") ? "[\($0)]" : $0):1") != nil }
                ? nil : "takes addresses with commas between them, such as 10.0.0.7"
        }, valueName: "ADDRESS,…",
        help: "Proxies whose X-Forwarded-For is believed, beside those on this machine.")
    package static let gatewayRates = Setting(
        "gateway-rates",
        .custom(expects: "rates such as subject=20:100,address=50:200") { text in
            GatewayRates.complaint(about: text)
        }, fallback: "subject=20:100,address=100:500", valueName: "WHAT=RATE:BURST,…",
        help:
            "Calls a second, and how many at once: for each subject, each address and, by name, each function of the whole fleet."
    )
    package static let gatewayPool = Setting(
        "gateway-pool", .integer(1...500), fallback: "16", valueName: "N",
        help: "The most connections that the gateway opens for calls.")
    package static let gatewayStreams = Setting(
        "gateway-streams", .integer(1...100_000), fallback: "12000", valueName: "N",
        help: "The most streams and other connections of apps at the same time.")
}

extension Settings {
    package var servesApps: Bool { isOn(.gatewayOn) }
}

/// The rates in the settings: names of what is counted, each with calls a second and a burst.
package struct GatewayRates: Sendable {
    package var rates: [(name: String, rate: Double, burst: Double)] = []

    package init?(_ text: String) {
        for pair in ListText.items(text) {
            let halves = pair.split(separator: "=", maxSplits: 1).map(String.init)
            let numbers = halves.count == 2 ? halves[1].split(separator: ":").compactMap { Double($0) } : []
            guard let name = halves.first, !name.isEmpty, numbers.count == 2, numbers.allSatisfy(\.isFinite),
                (0.001...1_000_000).contains(numbers[0]), (1...1_000_000).contains(numbers[1]),
                name.utf8.allSatisfy({ ("a"..."z").contains(Character(UnicodeScalar($0))) || $0 == 0x5F })
            else { return nil }
            rates.append((name, numbers[0], numbers[1]))
        }
    }

    static func complaint(about text: String) -> String? {
        GatewayRates(text) != nil
            ? nil : "takes names with calls a second and a burst, such as subject=20:100,address=50:200,check_in=5:10"
    }
}
