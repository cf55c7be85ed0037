/// When something is to happen: a cron expression, or an interval.
package enum Timetable: Sendable, Equatable {
    case cron(CronExpression)
    /// At an anchor plus whole multiples of `seconds`, in every zone.
    case every(seconds: Int64)

    /// A cron expression, one of its short words such as `@daily`, or an interval: `every 90s`, `@every 1h30m`.
    package init(_ text: String) throws(ExpressionError) {
        let words = text.split { $0 == " " || $0 == "\t" }
        let first = words.first?.lowercased()
        if first == "every" || first == "@every" {
            guard words.count == 2, let seconds = Self.seconds(words[1]) else {
                throw ExpressionError(
                    "\(ExpressionError.quoted(text)) is not an interval; write for example every 90s, every 15m, every 1h30m, every 2d or every 1w, from 1s to 366d"
                )
            }
            self = .every(seconds: seconds)
        } else {
            self = .cron(try CronExpression(text))
        }
    }

    /// The first time after an instant. An interval counts from its anchor and never from now, so that no delay adds up.
    package func next(after instant: Int64, in zone: Zone, anchor: Int64) -> Int64? {
        switch self {
        case .cron(let expression): expression.next(after: instant, in: zone)
        case .every(let seconds): anchor + max(1, floorDivide(instant - anchor, seconds) + 1) * seconds
        }
    }

    private static let units: [(name: Character, seconds: Int64)] = [
        ("w", 604_800), ("d", 86_400), ("h", 3600), ("m", 60), ("s", 1),
    ]

    /// `1h30m`: each unit once, the largest first.
    private static func seconds(_ text: Substring) -> Int64? {
        var rest = text.lowercased()[...]
        var total: Int64 = 0
        var left = units[...]
        repeat {
            let digits = rest.prefix { $0 >= "0" && $0 <= "9" }
            rest = rest.dropFirst(digits.count)
            guard digits.count <= 9, let count = Int64(digits), let letter = rest.popFirst(),
                let unit = left.firstIndex(where: { $0.name == letter })
            else { return nil }
            total += count * left[unit].seconds
            left = left[(unit + 1)...]
        } while !rest.isEmpty
        return (1...366 * 86_400).contains(total) ? total : nil
    }
}
