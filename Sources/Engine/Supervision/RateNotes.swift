/// What a provider's headers say about its pace: RateLimit-*, X-RateLimit-*, Retry-After.
package struct RateNotes: Sendable, Equatable {
    package var limit: Double?
    package var remaining: Double?
    /// The time until the allowance is full again.
    package var reset: Duration?
    package var window: Duration?
    package var retryAfter: Duration?

    package init() {}

    /// - Parameter now: Seconds since 1970, for headers that name a point in time.
    package init(headers: [(name: String, value: String)], now: Double) {
        for (name, value) in headers {
            switch name.lowercased() {
            case "ratelimit-limit", "x-ratelimit-limit", "x-rate-limit-limit":
                limit = Self.number(value.prefix { $0 != "," && $0 != ";" })
                if let length = Self.parameter("w", of: value) { window = .seconds(length) }
            case "ratelimit-remaining", "x-ratelimit-remaining", "x-rate-limit-remaining":
                remaining = Self.number(value[...])
            case "ratelimit-reset", "x-ratelimit-reset", "x-rate-limit-reset":
                reset = Self.number(value[...]).map { Self.span($0, now: now) }
            case "ratelimit-policy":
                // "default";q=100;w=60, or the older form 100;w=60
                limit = Self.parameter("q", of: value) ?? Self.number(value.prefix { $0 != ";" }) ?? limit
                if let length = Self.parameter("w", of: value) { window = .seconds(length) }
            case "ratelimit":
                remaining =
                    Self.parameter("r", of: value) ?? Self.parameter("remaining", of: value, separator: ",")
                    ?? remaining
                let rest = Self.parameter("t", of: value) ?? Self.parameter("reset", of: value, separator: ",")
                reset = rest.map { .seconds($0) } ?? reset
                limit = limit ?? Self.parameter("limit", of: value, separator: ",")
            case "retry-after":
                retryAfter = Self.wait(value, now: now)
            default: break
            }
        }
    }

    /// Calls a second. If no window is stated, the longest time to a reset that was seen serves as the window.
    package func rate(longestReset: Duration?) -> Double? {
        guard let limit, limit > 0, limit < 1e7 else { return nil }
        let length = window ?? longestReset.map { .seconds(max(1, $0.inSeconds.rounded(.up))) }
        guard let length, length >= .milliseconds(1), length <= .seconds(7 * 86_400) else { return nil }
        return limit / length.inSeconds
    }

    private static func number(_ text: Substring) -> Double? {
        guard let value = Double(text.filter { $0 != " " }), value.isFinite, value >= 0, value < 1e15 else {
            return nil
        }
        return value
    }

    private static func parameter(_ name: String, of text: String, separator: Character = ";") -> Double? {
        for part in text.split(whereSeparator: { $0 == separator || $0 == ";" }) {
            let pair = part.split(separator: "=", maxSplits: 1)
            guard pair.count == 2, pair[0].filter({ $0 != " " }) == name else { continue }
            return number(pair[1].prefix { $0 != "," })
        }
        return nil
    }

    /// Seconds from now, or a point in time in seconds or milliseconds. They can be told apart because no window is thirty years long.
    private static func span(_ value: Double, now: Double) -> Duration {
        if value > 1e11 { return .seconds(max(0, value / 1000 - now)) }
        if value > 1e9 { return .seconds(max(0, value - now)) }
        return .seconds(value)
    }

    private static func wait(_ text: String, now: Double) -> Duration? {
        if let seconds = number(text[...]) { return .seconds(min(seconds, 30 * 86_400)) }
        guard let then = HTTPDate.seconds(text) else { return nil }
        return .seconds(min(max(0, then - now), 30 * 86_400))
    }
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`, the only form of a date that headers still use.
package enum HTTPDate {
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    package static func seconds(_ text: String) -> Double? {
        let parts = text.split(separator: " ")
        guard parts.count == 6, parts[5] == "GMT", let day = Int(parts[1]), (1...31).contains(day),
            let month = months.firstIndex(of: String(parts[2])), let year = Int(parts[3]), (1970...9999).contains(year)
        else { return nil }
        let clock = parts[4].split(separator: ":").compactMap { Int($0) }
        guard clock.count == 3, (0...23).contains(clock[0]), (0...59).contains(clock[1]), (0...60).contains(clock[2])
        else { return nil }
        // Days since 1970, with years that begin in March.
        let shifted = month < 2 ? year - 1 : year
        let era = shifted / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * ((month + 10) % 12) + 2) / 5 + day - 1
        let days = era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
        return Double(days * 86_400 + clock[0] * 3600 + clock[1] * 60 + clock[2])
    }
}
