package import Calendars
package import FoundationEssentials

/// A moment of the past as people type it; what it means is decided with the zone and the time of now.
package enum PastTime: Sendable, Equatable {
    case instant(Date)
    case ago(Duration)
    /// Seconds since midnight, as the clock on the wall shows them.
    case clock(Int)
    case local(day: Int, clock: Int)

    /// - Parameter now: a time of day that has not come yet today means yesterday's.
    package func date(now: Date, zone: Zone) -> Date {
        func instant(_ day: Int, _ clock: Int) -> Date {
            Date(timeIntervalSince1970: Double(zone.instant(of: clock, on: CivilDate(dayNumber: day))))
        }
        switch self {
        case .instant(let date): return date
        case .ago(let span): return now.addingTimeInterval(-(span / .seconds(1)))
        case .local(let day, let clock): return instant(day, clock)
        case .clock(let clock):
            let today = zone.date(at: Int64(now.timeIntervalSince1970.rounded(.down))).dayNumber
            let date = instant(today, clock)
            return date <= now ? date : instant(today - 1, clock)
        }
    }
}

package enum PastTimeText {
    package static let expectation =
        "a time such as 03:12, '2030-01-31 03:12', 2030-01-31, 2030-01-31T03:12:00Z, or -2h for two hours ago"

    package static func read(_ text: String) throws(ValueRefusal) -> PastTime {
        let span = text.hasPrefix("-") ? String(text.dropFirst()) : text
        if let span = DurationText.read(span) { return .ago(span) }
        if let clock = clock(text[...]) { return .clock(clock) }
        let parts = text.split(maxSplits: 1, omittingEmptySubsequences: false) { "Tt ".contains($0) }
        if let day = parts.first.flatMap(day) {
            if parts.count == 1 { return .local(day: day, clock: 0) }
            if let clock = clock(parts[1]) { return .local(day: day, clock: clock) }
        }
        // With a zone, or not at all.
        guard parts.count == 2 else {
            throw ValueRefusal(complaint: "takes \(expectation), not \(Secrets.quoted(text))")
        }
        return .instant(try InstantText.read(text))
    }

    private static func clock(_ text: Substring) -> Int? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard (2...3).contains(parts.count), parts.allSatisfy({ (1...2).contains($0.count) }) else { return nil }
        let numbers = parts.compactMap { number($0) }
        guard numbers.count == parts.count, numbers[0] < 24, numbers.dropFirst().allSatisfy({ $0 < 60 }) else {
            return nil
        }
        return numbers[0] * 3600 + numbers[1] * 60 + (numbers.count > 2 ? numbers[2] : 0)
    }

    private static func day(_ text: Substring) -> Int? {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.map(\.count) == [4, 2, 2] else { return nil }
        let numbers = parts.compactMap { number($0) }
        guard numbers.count == 3, numbers[0] > 0, (1...12).contains(numbers[1]),
            (1...CivilDate.days(in: numbers[1], of: numbers[0])).contains(numbers[2])
        else { return nil }
        return CivilDate(year: numbers[0], month: numbers[1], day: numbers[2]).dayNumber
    }

    private static func number(_ digits: Substring) -> Int? {
        digits.allSatisfy { ("0"..."9").contains($0) } ? Int(digits) : nil
    }
}

/// The time zone of this machine: `TZ`, else what /etc/localtime points to, else UTC.
package enum LocalZone {
    package static func find(_ environment: [String: String]) -> Zone {
        let given = environment["TZ"].map { $0.hasPrefix(":") ? String($0.dropFirst()) : $0 }
        if let given, !given.isEmpty { return (try? ZoneFiles.system.zone(given)) ?? .utc }
        guard let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/etc/localtime"),
            let name = target.firstRange(of: "zoneinfo/").map({ String(target[$0.upperBound...]) })
        else { return .utc }
        return (try? ZoneFiles.system.zone(name)) ?? .utc
    }
}
