/// `--fail-if 'oldest>60s,failed>5%'`: what must not be, as data.
struct FailIf: Sendable, Equatable {
    enum Metric: String, Sendable, CaseIterable {
        case oldest, failed, ready, running, dead, workers, retrying, paused, failing, unserved

        /// Reads a number with its unit; the value compared is seconds, a share, or a count.
        func value(_ number: Double, unit: String) -> Double? {
            switch (self, unit) {
            case (.oldest, "s"): number
            case (.oldest, "m"): number * 60
            case (.oldest, "h"): number * 3600
            case (.failed, "%"): number / 100
            case (.ready, ""), (.running, ""), (.dead, ""), (.workers, ""), (.retrying, ""), (.paused, ""),
                (.failing, ""), (.unserved, ""):
                number
            case (.oldest, _), (.failed, _), (.ready, _), (.running, _), (.dead, _), (.workers, _), (.retrying, _),
                (.paused, _), (.failing, _), (.unserved, _):
                nil
            }
        }

        var expectation: String {
            switch self {
            case .oldest: "a time such as 60s, 5m or 1h"
            case .failed: "a share such as 5%"
            case .ready, .running, .dead, .workers, .retrying, .paused, .failing, .unserved: "a count such as 100"
            }
        }
    }

    enum Comparison: String, Sendable, CaseIterable {
        case atLeast = ">="
        case atMost = "<="
        case above = ">"
        case below = "<"

        func holds(_ left: Double, _ right: Double) -> Bool {
            switch self {
            case .atLeast: left >= right
            case .atMost: left <= right
            case .above: left > right
            case .below: left < right
            }
        }
    }

    struct Condition: Sendable, Equatable {
        let metric: Metric
        let comparison: Comparison
        let value: Double
        /// As written.
        let text: String
    }

    let conditions: [Condition]

    static let expectation =
        "conditions such as oldest>60s,failed>5%: \(Metric.allCases.map(\.rawValue).joined(separator: ", ")) with >, <, >= or <="

    static func read(_ text: String) throws(ValueRefusal) -> FailIf {
        var conditions: [Condition] = []
        var place = 0
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            conditions.append(try condition(part, at: place))
            place += part.count + 1
        }
        return FailIf(conditions: conditions)
    }

    private static func condition(_ part: Substring, at start: Int) throws(ValueRefusal) -> Condition {
        var rest = part
        func place() -> Int { start + part.count - rest.count + 1 }
        func refuse(_ expected: String) -> ValueRefusal {
            ValueRefusal(complaint: "is malformed at character \(place()): expected \(expected)")
        }
        func skipSpace() { rest = rest.drop { $0 == " " } }
        skipSpace()
        let word = rest.prefix { $0.isLetter }
        guard let metric = Metric(rawValue: String(word)) else {
            throw refuse(ValueKind.oneOf(Metric.allCases.map(\.rawValue)))
        }
        rest = rest.dropFirst(word.count)
        skipSpace()
        guard let comparison = Comparison.allCases.first(where: { rest.hasPrefix($0.rawValue) }) else {
            throw refuse(">, <, >= or <=")
        }
        rest = rest.dropFirst(comparison.rawValue.count)
        skipSpace()
        let digits = rest.prefix { ("0"..."9").contains($0) || $0 == "." }
        guard let number = Double(digits) else { throw refuse(metric.expectation) }
        let unit = rest.dropFirst(digits.count).filter { $0 != " " }
        guard let value = metric.value(number, unit: String(unit)) else {
            rest = rest.dropFirst(digits.count)
            throw refuse(metric.expectation)
        }
        let written = String(part.filter { $0 != " " })
        return Condition(metric: metric, comparison: comparison, value: value, text: written)
    }

    /// Counts must be looked at at least this far to judge the conditions.
    var neededCap: Int {
        conditions.filter { [.ready, .running, .paused].contains($0.metric) }
            .map { Int(clamping: Int64(min($0.value, 1e9))) + 1 }.max() ?? 0
    }
}
