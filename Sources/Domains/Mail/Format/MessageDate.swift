import FoundationEssentials

/// The Date header (RFC 5322, 3.3), always in UTC. It uses no calendar and no locale, because it must be the same everywhere.
enum MessageDate {
    static func text(_ date: Date) -> String {
        let (year, month, day, seconds) = parts(date)
        let weekday = days[((dayNumber(date) + 4) % 7 + 7) % 7]
        return "\(weekday), \(day) \(months[month - 1]) \(pad(year, 4)) \(clock(seconds, ":")) +0000"
    }

    /// For file names: sorts by time.
    static func compact(_ date: Date) -> String {
        let (year, month, day, seconds) = parts(date)
        return "\(pad(year, 4))\(pad(month, 2))\(pad(day, 2))T\(clock(seconds, ""))Z"
    }

    private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
    private static let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]

    private static func dayNumber(_ date: Date) -> Int { Int((date.timeIntervalSince1970 / 86_400).rounded(.down)) }

    /// The civil date of a day since 1970, by counting in eras of 400 years that begin in March.
    private static func parts(_ date: Date) -> (year: Int, month: Int, day: Int, seconds: Int) {
        let number = dayNumber(date)
        let seconds = Int(date.timeIntervalSince1970.rounded(.down)) - number * 86_400
        let shifted = number + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * ofYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * shiftedMonth + 2) / 5 + 1, seconds)
    }

    private static func clock(_ seconds: Int, _ between: String) -> String {
        [seconds / 3600, seconds / 60 % 60, seconds % 60].map { pad($0, 2) }.joined(separator: between)
    }

    private static func pad(_ number: Int, _ width: Int) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(0, width - text.utf8.count)) + text
    }
}
