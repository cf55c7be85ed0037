import MillraceJobs
package import Supervision

extension Setting {
    package static let supervision: [Setting] = [
        breakerFailures, breakerOpen, breakerWindow, breakerQuorum, breakerProbes, retryBudget,
    ]

    package static let breakerFailures = Setting(
        "breaker-failures", .integer(1...1000), fallback: "3", valueName: "N",
        help: "A worker stops calling a provider after this many failures in a row.")
    package static let breakerOpen = Setting(
        "breaker-open", .duration(.milliseconds(100) ... .seconds(86_400)), fallback: "5m", valueName: "DURATION",
        help: "How long a provider is not called; twice as long each further time in a row, up to an hour.")
    package static let breakerWindow = Setting(
        "breaker-window", .duration(.seconds(1) ... .seconds(3600)), fallback: "30s", valueName: "DURATION",
        help: "The period over which a provider's health is judged.")
    package static let breakerQuorum = Setting(
        "breaker-quorum", .integer(1...1000), fallback: "2", valueName: "N",
        help: "How many workers must agree before all stop calling a provider; fewer if fewer call it.")
    package static let breakerProbes = Setting(
        "breaker-probes", .integer(1...100), fallback: "2", valueName: "N",
        help: "How many probes, over the whole fleet, must succeed before calls come back.")
    package static let retryBudget = Setting(
        "retry-budget",
        .custom(expects: "a share such as 20%") { text in
            share(text) == nil ? "takes a share from 0% to 100%, such as 20%" : nil
        },
        fallback: "20%", valueName: "SHARE", help: "At most this share of a provider's calls may be second attempts.")

    package static func share(_ text: String) -> Double? {
        guard text.hasSuffix("%"), let percent = Double(text.dropLast()), (0...100).contains(percent) else {
            return nil
        }
        return percent / 100
    }

    private static let providerPrefix = "MILLRACE_PROVIDER_"

    /// The settings of single providers. Each variable names its provider, so there are as many as the environment has.
    package static func providers(in environment: [String: String]) -> [Setting] {
        environment.keys.sorted().compactMap { variable in
            guard variable.hasPrefix(providerPrefix), let last = variable.lastIndex(of: "_") else { return nil }
            let named = variable.dropFirst(providerPrefix.count).prefix(
                upTo: max(last, variable.index(variable.startIndex, offsetBy: providerPrefix.count)))
            guard !named.isEmpty, named.allSatisfy({ $0.isASCII && ($0.isUppercase || $0.isNumber || $0 == "_") })
            else {
                return nil
            }
            let provider = named.lowercased()
            switch variable[variable.index(after: last)...] {
            case "SLOTS":
                return Setting(
                    "provider-\(provider)-slots", environment: variable, .integer(1...100_000), valueName: "N",
                    help: "Calls of \(provider) that one worker makes at once.")
            case "RATE":
                return Setting(
                    "provider-\(provider)-rate", environment: variable,
                    .custom(expects: "a count and a span such as 10/1s") { text in
                        RateText.read(text) == nil ? "takes a count and a span such as 10/1s or 100/1m" : nil
                    }, valueName: "N/SPAN",
                    help: "Calls of \(provider) by all workers together; fewer if the provider itself says so.")
            case "TIMEOUT":
                return Setting(
                    "provider-\(provider)-timeout", environment: variable,
                    .duration(.milliseconds(10) ... .seconds(3600)), valueName: "DURATION",
                    help: "How long a call of \(provider) may take, including the wait for its turn.")
            default: return nil
            }
        }
    }
}

extension Settings {
    /// The options of a supervisor; it opens its own connections.
    package var supervision: Supervisor.Options {
        var options = Supervisor.Options()
        options.breaker.failures = integer(.breakerFailures)
        options.breaker.open = duration(.breakerOpen)
        options.breaker.window = duration(.breakerWindow)
        options.breaker.probes = integer(.breakerProbes)
        options.quorum = integer(.breakerQuorum)
        options.retryShare = Setting.share(string(.retryBudget)) ?? 0.2
        for entry in entries {
            let parts = entry.setting.name.split(separator: "-")
            guard parts.count == 3, parts[0] == "provider" else { continue }
            var provider = options.providers[String(parts[1])] ?? .init()
            switch (parts[2], entry.value) {
            case ("slots", .integer(let slots)?): provider.slots = slots
            case ("rate", .text(let text)?):
                provider.rate = RateText.read(text).map { Double($0.count) / ($0.per / .seconds(1)) }
            case ("timeout", .duration(let timeout)?): provider.timeout = timeout
            default: continue
            }
            options.providers[String(parts[1])] = provider
        }
        return options
    }
}
