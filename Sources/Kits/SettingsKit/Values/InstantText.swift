import Calendars
package import FoundationEssentials

/// Points in time as ISO 8601 writes them, always with their zone: a time without one means something else on every machine.
package enum InstantText {
    package static let expectation = "a time with its zone, such as 2030-01-31T12:00:00Z or 2030-01-31T14:00:00+02:00"

    package static func read(_ text: String) throws(ValueRefusal) -> Date {
        var scan = Digits(text)
        guard let year = scan.take(4), scan.skip("-"), let month = scan.take(2), scan.skip("-"),
            let day = scan.take(2), scan.skip("Tt "), let hour = scan.take(2), scan.skip(":"),
            let minute = scan.take(2)
        else { throw ValueRefusal(complaint: "takes \(expectation), not \(Secrets.quoted(text))") }
        var second = 0
        var fraction = 0.0
        if scan.skip(":") {
            guard let number = scan.take(2) else {
                throw ValueRefusal(complaint: "takes \(expectation): two digits of seconds")
            }
            second = number
            if scan.skip("."), let part = scan.fraction() { fraction = part }
        }
        guard (1...12).contains(month) else { throw ValueRefusal(complaint: "has a month \(month); there are 12") }
        guard (1...CivilDate.days(in: month, of: year)).contains(day) else {
            throw ValueRefusal(complaint: "has a day \(day), which month \(month) of \(year) does not have")
        }
        guard hour < 24, minute < 60, second < 60 else {
            throw ValueRefusal(complaint: "has a time of day beyond 23:59:59")
        }
        guard let offset = try zone(&scan, in: text) else {
            throw ValueRefusal(complaint: "has no time zone: add Z for UTC, or an offset such as +02:00")
        }
        let days = CivilDate(year: year, month: month, day: day).dayNumber
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset * 60
        let date = Date(timeIntervalSince1970: Double(seconds) + fraction)
        // In UTC, and rounded as it will be written.
        guard (1...9999).contains(CivilDate(dayNumber: floorDivide(milliseconds(of: date), 86_400_000)).year) else {
            throw ValueRefusal(complaint: "lies outside the years 0001 to 9999")
        }
        return date
    }

    private static func milliseconds(of date: Date) -> Int {
        Int((date.timeIntervalSince1970 * 1000).rounded())
    }

    /// Minutes east of Greenwich; nil when the text ends without one.
    private static func zone(_ scan: inout Digits, in text: String) throws(ValueRefusal) -> Int? {
        if scan.isAtEnd { return nil }
        let rest = scan.rest
        if scan.skip("Zz"), scan.isAtEnd { return 0 }
        if let sign = scan.sign() {
            if let hours = scan.take(2), hours <= 15 {
                _ = scan.skip(":")
                let minutes = scan.isAtEnd ? 0 : scan.take(2)
                if let minutes, minutes < 60, scan.isAtEnd { return sign * (hours * 60 + minutes) }
            }
        }
        throw ValueRefusal(
            complaint: "has a time zone \(Secrets.quoted(rest)); it is Z, or an offset such as +02:00, and no name")
    }

    package static func spell(_ date: Date) -> String {
        let milliseconds = milliseconds(of: date)
        let seconds = floorDivide(milliseconds, 1000)
        let days = floorDivide(seconds, 86_400)
        let rest = seconds - days * 86_400
        let date = CivilDate(dayNumber: days)
        let fraction = milliseconds - seconds * 1000
        let clock = "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))"
        let tail = fraction == 0 ? "" : "." + padded(fraction, 3)
        return "\(padded(date.year, 4))-\(two(date.month))-\(two(date.day))T\(clock)\(tail)Z"
    }

    private static func two(_ number: Int) -> String { padded(number, 2) }

    private static func padded(_ number: Int, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, width - text.count)) + text
    }
}

/// Fixed numbers of digits, one after the other.
private struct Digits {
    private(set) var rest: String

    init(_ text: String) { rest = text }

    var isAtEnd: Bool { rest.isEmpty }

    mutating func take(_ count: Int) -> Int? {
        let digits = rest.prefix(count)
        guard digits.count == count, digits.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        rest.removeFirst(count)
        return Int(digits)
    }

    mutating func skip(_ any: String) -> Bool {
        guard let first = rest.first, any.contains(first) else { return false }
        rest.removeFirst()
        return true
    }

    mutating func sign() -> Int? { skip("+") ? 1 : skip("-") ? -1 : nil }

    mutating func fraction() -> Double? {
        let digits = rest.prefix { $0.isASCII && $0.isNumber }
        rest.removeFirst(digits.count)
        return Double("0." + digits)
    }
}
