import Listeners
package import SettingsKit

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
            } ? nil : "takes origins separated by commas, such as https://app.example.com, without a path"
        }, valueName: "ORIGIN,…", help: "Web pages of these origins may call the gateway; none if not given.")
    package static let gatewayProxies = Setting(
        "gateway-proxies",
        addressRanges, valueName: "ADDRESS,…",
        help: "Proxies whose X-Forwarded-For is trusted, besides those on this machine.")
    package static let gatewayRates = Setting(
        "gateway-rates",
        .custom(expects: "rates such as subject=20:100,address=200:1000") { text in
            Settings.gatewayRates(in: text) != nil
                ? nil
                : "takes names with calls a second and a burst, such as subject=20:100,address=200:1000,check_in=5:10"
        }, fallback: "subject=20:100,operations=20:1000,address=200:1000", valueName: "WHAT=RATE:BURST,…",
        help:
            "Calls a second, and how many at once: for each subject, each address, for each subject by function; operations of pushes for each subject."
    )
    package static let gatewayPool = Setting(
        "gateway-pool", .integer(1...500), fallback: "16", valueName: "N",
        help: "The maximum number of connections that the gateway opens for calls.")
    package static let gatewayStreams = Setting(
        "gateway-streams", .integer(1...100_000), fallback: "12000", valueName: "N",
        help: "The maximum number of streams and other connections of apps at the same time.")
}

extension Settings {
    package var servesApps: Bool { isOn(.gatewayOn) }

    /// Names with a rate and a burst; nil: it is malformed. What is not named has no limit, but operations: those have one from elsewhere.
    package static func gatewayRates(in text: String) -> GatewayRates? {
        var rates = GatewayRates()
        (rates.subject, rates.address) = (nil, nil)
        for pair in ListText.items(text) where !pair.isEmpty {
            let halves = pair.split(separator: "=", maxSplits: 1).map(String.init)
            let numbers = halves.count == 2 ? halves[1].split(separator: ":").map { Double($0) } : []
            guard numbers.count == 2, let perSecond = numbers[0], let burst = numbers[1],
                (0.001...1_000_000).contains(perSecond), (1...1_000_000).contains(burst),
                halves[0].utf8.allSatisfy({ (0x61...0x7A).contains($0) || $0 == 0x5F })
            else { return nil }
            let rate = GatewayRate(perSecond: perSecond, burst: burst)
            switch halves[0] {
            case "subject": rates.subject = rate
            case "operations": rates.operations = rate
            case "address": rates.address = rate
            default: rates.functions[halves[0]] = rate
            }
        }
        return rates
    }
}
