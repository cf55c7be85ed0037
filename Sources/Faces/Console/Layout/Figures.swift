import Calendars
import FoundationEssentials

/// Numbers and times for people.
enum Figures {
    /// `1,234,567`
    static func count(_ number: Int) -> String {
        let digits = String(number.magnitude)
        var text = number < 0 ? "-" : ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index).isMultiple(of: 3) { text += "," }
            text.append(digit)
        }
        return text
    }

    /// A count that stopped at `cap`.
    static func count(_ number: Int, cap: Int) -> String { number >= cap ? "\(count(cap))+" : count(number) }

    /// The beginning of an id that is long enough to tell it from others: one of version 7 begins with its time.
    static func brief(id: String) -> String {
        let isOfTime = id.utf8.count == 36 && id.dropFirst(14).first == "7"
        return String(id.prefix(isOfTime ? 18 : 8))
    }

    /// `840 ms`, `12 s`, `3 min`, `5 h`, `4 days`
    static func span(_ seconds: Double) -> String {
        let size = abs(seconds)
        if size < 0.0005 { return "0 s" }
        if size < 1 { return "\(Int((seconds * 1000).rounded())) ms" }
        if size < 10 { return "\(brief(seconds, 1)) s" }
        if size < 120 { return "\(Int(seconds.rounded())) s" }
        if size < 7200 { return "\(Int((seconds / 60).rounded())) min" }
        if size < 172_800 { return "\(Int((seconds / 3600).rounded())) h" }
        return "\(Int((seconds / 86_400).rounded())) days"
    }

    static func bytes(_ count: Int) -> String {
        var size = Double(count)
        var unit = "B"
        for name in ["KiB", "MiB", "GiB", "TiB"] where abs(size) >= 1024 {
            size /= 1024
            unit = name
        }
        return unit == "B" ? "\(count) B" : "\(brief(size, 1)) \(unit)"
    }

    static func percent(_ share: Double) -> String { "\(brief(share * 100, 1)) %" }

    /// `2.5`, `3`: rounded to that many digits behind the point, without zeros at the end
    static func brief(_ number: Double, _ digits: Int) -> String {
        let scale = digits == 1 ? 10.0 : 100.0
        let rounded = (number * scale).rounded() / scale
        return rounded == rounded.rounded() && abs(rounded) < 1e15 ? "\(Int(rounded))" : "\(rounded)"
    }

    /// Postgres writes a time in JSON as 2026-11-27T07:01:46.12+00:00.
    static func date(_ text: String) -> Date? {
        guard text.utf8.count >= 19 else { return nil }
        let plain = text.prefix(19) + "Z"
        guard let whole = try? Date(String(plain), strategy: .iso8601) else { return nil }
        var rest = text.dropFirst(19)
        var fraction = 0.0
        if rest.first == "." {
            let digits = rest.dropFirst().prefix { $0.isNumber }
            fraction = Double("0." + digits) ?? 0
            rest = rest.dropFirst(digits.count + 1)
        }
        var offset = 0.0
        if let sign = rest.first, sign == "+" || sign == "-" {
            let parts = rest.dropFirst().split(separator: ":").compactMap { Double($0) }
            offset = (parts.first ?? 0) * 3600 + (parts.count > 1 ? parts[1] * 60 : 0)
            if sign == "-" { offset = -offset }
        }
        return whole.addingTimeInterval(fraction - offset)
    }

    /// `3 min ago`, `in 5 s`, `now`
    static func relative(_ date: Date, to now: Date) -> String {
        let seconds = now.timeIntervalSince(date)
        if abs(seconds) < 1 { return "now" }
        return seconds > 0 ? "\(span(seconds.rounded())) ago" : "in \(span((-seconds).rounded()))"
    }

    /// `2026-11-27 08:01:46 Europe/Vienna`, in the zone that the reader chose
    static func moment(_ date: Date) -> String {
        let zone = ReaderChoices.current.zone
        let wall = Date(timeIntervalSince1970: Double(zone.wall(at: Int64(date.timeIntervalSince1970.rounded(.down)))))
        return utc(wall).dropLast(3) + zone.name
    }

    /// `07:01` or `11-27 07:01`, in that zone
    static func clock(_ date: Date, withDay: Bool) -> String {
        String(moment(date).dropFirst(withDay ? 5 : 11).prefix(withDay ? 11 : 5))
    }

    /// `20:54:50`, in that zone
    static func clock(_ date: Date) -> String { String(moment(date).dropFirst(11).prefix(8)) }

    /// `2026-11-27T07:01`, as a field of a form has it: UTC, and not later than the time itself
    static func field(_ date: Date) -> String { String(date.formatted(.iso8601).prefix(16)) }

    /// `2026-11-27 07:01:46 UTC`
    static func utc(_ date: Date) -> String {
        let text = date.formatted(.iso8601)  // 2026-11-27T07:01:46Z
        return text.prefix(19).split(separator: "T").joined(separator: " ") + " UTC"
    }
}
