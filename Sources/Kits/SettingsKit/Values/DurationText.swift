/// Durations as people type them: `500ms`, `90s`, `5m`, `2h`, `1d`, and joined ones such as `1h30m`.
package enum DurationText {
    private static let units: [(name: String, milliseconds: Int64)] = [
        ("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1),
    ]

    /// Nothing without a unit: `5` means seconds to one reader and minutes to the next.
    package static func read(_ text: String) -> Duration? {
        var rest = text[...]
        var total: Int64 = 0
        var lastUnit = -1
        repeat {
            let digits = rest.prefix { ("0"..."9").contains($0) }
            rest = rest.dropFirst(digits.count)
            let letters = rest.prefix { $0.isLetter }
            rest = rest.dropFirst(letters.count)
            guard let count = Int64(digits), let unit = units.firstIndex(where: { $0.name == letters }),
                unit > lastUnit
            else { return nil }
            lastUnit = unit
            let (part, tooLong) = count.multipliedReportingOverflow(by: units[unit].milliseconds)
            let (sum, overflow) = total.addingReportingOverflow(part)
            guard !tooLong, !overflow else { return nil }
            total = sum
        } while !rest.isEmpty
        return .milliseconds(total)
    }

    /// The shortest text that reads back as the same duration, down to milliseconds.
    package static func spell(_ duration: Duration) -> String {
        let (seconds, attoseconds) = duration.components
        var rest = seconds * 1000 + attoseconds / 1_000_000_000_000_000
        var text = ""
        for unit in units where rest >= unit.milliseconds {
            text += "\(rest / unit.milliseconds)\(unit.name)"
            rest %= unit.milliseconds
        }
        return text.isEmpty ? "0s" : text
    }
}
