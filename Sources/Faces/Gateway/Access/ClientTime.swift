import FoundationEssentials
import Listeners

/// How far a phone's clock is behind the gateway's, by the header `Client-Time`. Phones' clocks are wrong by minutes or days, and what was done by
/// such a clock must not be refused for being too old, or of the future. The doors put times right by this.
enum ClientTime {
    static let header = "Client-Time"

    /// In seconds, as `millrace.client_lag` has it; nil: the client does not say what its clock shows, or not as RFC 3339 writes it.
    static func lag(of headers: [Header], at now: Date) -> String? {
        guard let given = headers[header], RFC3339.isTime(given), let shown = RFC3339.date(given) else { return nil }
        let milliseconds = (now.timeIntervalSince(shown) * 1000).rounded()
        guard milliseconds.magnitude < 1e13 else { return nil }
        let whole = Int64(milliseconds)
        let thousandths = String(whole.magnitude % 1000)
        return (whole < 0 ? "-" : "") + "\(whole.magnitude / 1000)."
            + String(repeating: "0", count: 3 - thousandths.count) + thousandths
    }
}

/// How RFC 3339 writes times. Postgres alone also reads `yesterday`, `infinity`, or a time without a zone.
enum RFC3339 {
    static func isDate(_ text: String) -> Bool { fits(text, "0000-00-00") }

    /// Nil if it is not a time.
    static func date(_ text: String) -> Date? {
        let forms = [true, false].map { Date.ISO8601FormatStyle(includingFractionalSeconds: $0) }
        return forms.lazy.compactMap { try? Date(text.uppercased(), strategy: $0) }.first
    }

    static func isTime(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, fits(String(decoding: bytes[..<10], as: UTF8.self), "0000-00-00"),
            bytes[10] | 0x20 == UInt8(ascii: "t"),
            fits(String(decoding: bytes[11..<19], as: UTF8.self), "00:00:00")
        else { return false }
        var rest = bytes[19...]
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { $0 &- 48 < 10 }
            guard (1...12).contains(digits.count) else { return false }
            rest = rest.dropFirst(1 + digits.count)
        }
        let zone = String(decoding: rest, as: UTF8.self)
        return zone == "Z" || zone == "z" || fits(zone, "+00:00") || fits(zone, "-00:00")
    }

    /// A time of day: `22:00`, with seconds if it has any.
    static func isTimeOfDay(_ text: String) -> Bool {
        if fits(text, "00:00") { return true }
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard fits(String(parts[0]), "00:00:00") else { return false }
        return parts.count == 1 || (1...6).contains(parts[1].utf8.count) && parts[1].utf8.allSatisfy { $0 &- 48 < 10 }
    }

    /// 0 in the form stands for any digit.
    private static func fits(_ text: String, _ form: String) -> Bool {
        text.utf8.count == form.utf8.count
            && zip(text.utf8, form.utf8).allSatisfy { $1 == UInt8(ascii: "0") ? $0 &- 48 < 10 : $0 == $1 }
    }
}
