import Foundation

/// Instants as text, to the microsecond: `2026-11-27T10:23:23.123456Z`.
enum InstantCoding {
    static func text(_ date: Date) -> String {
        let micros = Int64((date.timeIntervalSince1970 * 1e6).rounded())
        let seconds = micros.floorDivided(by: 1_000_000)
        let days = seconds.floorDivided(by: 86400)
        let (year, month, day) = AppDay.civil(days: Int(days))
        let second = Int(seconds - days * 86400)
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(second / 3600, 2)):"
            + "\(padded(second / 60 % 60, 2)):\(padded(second % 60, 2)).\(padded(Int(micros - seconds * 1_000_000), 6))Z"
    }

    /// Reads what Postgres writes: a space or T, any digits of a second, Z or an offset.
    static func date(_ text: String) -> Date? {
        var rest = Substring(text)
        guard let year = number(&rest, 4), skip(&rest, "-"), let month = number(&rest, 2), skip(&rest, "-"),
            let day = number(&rest, 2), skip(&rest, "T") || skip(&rest, " "), let hour = number(&rest, 2),
            skip(&rest, ":"), let minute = number(&rest, 2), skip(&rest, ":"), let second = number(&rest, 2),
            (1...12).contains(month), (1...31).contains(day), hour < 24, minute < 60, second < 61
        else { return nil }
        var fraction = 0.0
        if skip(&rest, ".") {
            let digits = rest.prefix { $0.isASCII && $0.isNumber }
            guard !digits.isEmpty, let value = Double("0." + digits) else { return nil }
            fraction = value
            rest.removeFirst(digits.count)
        }
        var offset = 0
        if !skip(&rest, "Z") {
            let sign: Int
            if skip(&rest, "+") { sign = 1 } else if skip(&rest, "-") { sign = -1 } else { return nil }
            guard let hours = number(&rest, 2) else { return nil }
            var minutes = 0
            if skip(&rest, ":") || !rest.isEmpty {
                guard let given = number(&rest, 2) else { return nil }
                minutes = given
            }
            offset = sign * (hours * 3600 + minutes * 60)
        }
        guard rest.isEmpty else { return nil }
        let days = AppDay.days(year: year, month: month, day: day)
        let seconds = days * 86400 + hour * 3600 + minute * 60 + second - offset
        return Date(timeIntervalSince1970: Double(seconds) + fraction)
    }

    static func padded(_ number: Int, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    static func number(_ rest: inout Substring, _ width: Int) -> Int? {
        let digits = rest.prefix(width)
        guard digits.count == width, digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        rest.removeFirst(width)
        return Int(digits)
    }

    static func skip(_ rest: inout Substring, _ mark: Character) -> Bool {
        guard rest.first == mark else { return false }
        rest.removeFirst()
        return true
    }
}

/// Spans of time as Postgres writes them, `1 day 02:00:00`, and as we write them, `7200 seconds`.
enum SpanCoding {
    static func text(_ span: Duration) -> String {
        let (seconds, attoseconds) = span.components
        guard attoseconds != 0 else { return "\(seconds) seconds" }
        return "\(seconds * 1_000_000 + attoseconds / 1_000_000_000_000) microseconds"
    }

    static func duration(_ text: String) -> Duration? {
        var total = 0.0
        let words = text.split(separator: " ")
        var at = 0
        while at < words.count {
            let word = words[at]
            if word.contains(":") {
                let isNegative = word.hasPrefix("-")
                let parts = word.drop { $0 == "-" || $0 == "+" }.split(separator: ":").map { Double($0) }
                guard parts.count == 3, let hours = parts[0], let minutes = parts[1], let seconds = parts[2] else {
                    return nil
                }
                total += (isNegative ? -1 : 1) * (hours * 3600 + minutes * 60 + seconds)
                at += 1
            } else {
                guard let count = Double(word), at + 1 < words.count else { return nil }
                switch words[at + 1].drop(while: { $0 == " " }).prefix(3) {
                case "yea": total += count * 365.25 * 86400
                case "mon": total += count * 30 * 86400
                case "day": total += count * 86400
                case "hou": total += count * 3600
                case "min": total += count * 60
                case "sec": total += count
                default: return nil
                }
                at += 2
            }
        }
        return words.isEmpty ? nil : .microseconds(Int64((total * 1e6).rounded()))
    }
}

extension Int64 {
    func floorDivided(by divisor: Int64) -> Int64 {
        let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
        return remainder < 0 ? quotient - 1 : quotient
    }
}
