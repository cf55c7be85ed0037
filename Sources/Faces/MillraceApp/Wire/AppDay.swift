/// A date on somebody's calendar, without a time or a zone, such as the day of a mood.
public struct AppDay: Sendable, Hashable, Comparable, Codable, CustomStringConvertible {
    /// By the Gregorian calendar.
    public let year: Int
    /// 1 to 12.
    public let month: Int
    /// 1 to 31.
    public let day: Int

    /// From its parts.
    public init(year: Int, month: Int, day: Int) {
        (self.year, self.month, self.day) = (year, month, day)
    }

    /// From `2026-11-27`.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 3, let year = Int(parts[0]), let month = Int(parts[1]), let day = Int(parts[2]),
            (1...12).contains(month), (1...31).contains(day)
        else { return nil }
        self.init(year: year, month: month, day: day)
    }

    /// From its parts.
    public init(from decoder: any Decoder) throws {
        let one = try decoder.singleValueContainer()
        let text = try one.decode(String.self)
        guard let day = AppDay(text) else {
            throw DecodingError.dataCorruptedError(in: one, debugDescription: "\(text) is not a date")
        }
        self = day
    }

    /// As `2026-11-27`.
    public func encode(to encoder: any Encoder) throws {
        var one = encoder.singleValueContainer()
        try one.encode(description)
    }

    /// As `2026-11-27`.
    public var description: String {
        "\(InstantCoding.padded(year, 4))-\(InstantCoding.padded(month, 2))-\(InstantCoding.padded(day, 2))"
    }

    /// Whether it is earlier.
    public static func < (one: AppDay, other: AppDay) -> Bool { one.number < other.number }

    /// The day that lies this many days later.
    public func adding(days: Int) -> AppDay {
        let (year, month, day) = Self.civil(days: number + days)
        return AppDay(year: year, month: month, day: day)
    }

    /// Days since 1970-01-01.
    var number: Int { Self.days(year: year, month: month, day: day) }

    static func days(year: Int, month: Int, day: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let ofEra = shifted - era * 400
        let ofYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return era * 146_097 + ofEra * 365 + ofEra / 4 - ofEra / 100 + ofYear - 719_468
    }

    static func civil(days: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = days + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let ofEra = shifted - era * 146_097
        let yearOfEra = (ofEra - ofEra / 1460 + ofEra / 36_524 - ofEra / 146_096) / 365
        let ofYear = ofEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let part = (5 * ofYear + 2) / 153
        let month = part < 10 ? part + 3 : part - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, ofYear - (153 * part + 2) / 5 + 1)
    }
}
