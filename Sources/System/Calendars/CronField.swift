/// The syntax of one field of a cron expression: numbers or names, ranges, lists and steps.
struct CronField: Sendable {
    let name: String
    let range: ClosedRange<Int>
    /// Names for the numbers from the lower bound on.
    var names: [String] = []

    static let second = CronField(name: "second", range: 0...59)
    static let minute = CronField(name: "minute", range: 0...59)
    static let hour = CronField(name: "hour", range: 0...23)
    static let dayOfMonth = CronField(name: "day of month", range: 1...31)
    static let month = CronField(
        name: "month", range: 1...12,
        names: ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"])
    /// 0 and 7 are both Sunday.
    static let dayOfWeek = CronField(
        name: "day of week", range: 0...7, names: ["sun", "mon", "tue", "wed", "thu", "fri", "sat"])

    /// The bits of every number that is allowed.
    var everything: UInt64 {
        range.reduce(0) { $0 | 1 << UInt64($1) }
    }

    /// The items of a list.
    func items(_ text: Substring) throws(ExpressionError) -> [Substring] {
        let items = text.split(separator: ",", omittingEmptySubsequences: false)
        guard items.allSatisfy({ !$0.isEmpty }) else {
            throw complaint("\(ExpressionError.quoted(text)) has an empty place; write for example \(example)")
        }
        return items
    }

    /// `*`, `5`, `5-20`, `*/10`, `5-20/5`, `5/10`
    func bits(of item: Substring) throws(ExpressionError) -> UInt64 {
        let halves = item.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        let base = halves.first ?? ""
        var span: ClosedRange<Int>
        if base == "*" || base == "?" {
            span = range
        } else {
            let ends = base.split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
            let low = try number(ends.first ?? "", in: item)
            if ends.count == 2 {
                let high = try highEnd(ends[1], above: low, in: item)
                guard low <= high else {
                    throw complaint(
                        "\(base) runs backwards; write \(low)-\(range.upperBound),\(range.lowerBound)-\(high) if you mean both ends"
                    )
                }
                span = low...high
            } else {
                span = low...(halves.count == 2 ? range.upperBound : low)
            }
        }
        let step = halves.count == 2 ? try step(halves[1], in: item) : 1
        return stride(from: span.lowerBound, through: span.upperBound, by: step).reduce(0) { $0 | 1 << UInt64($1) }
    }

    func number(_ text: Substring, in item: Substring) throws(ExpressionError) -> Int {
        if let index = names.firstIndex(of: text.lowercased()) { return range.lowerBound + index }
        guard !text.isEmpty, text.utf8.count <= 4, text.utf8.allSatisfy({ (48...57).contains($0) }),
            let number = Int(text)
        else {
            throw complaint("\(ExpressionError.quoted(item)) cannot be understood; write for example \(example)")
        }
        guard range.contains(number) else { throw complaint("\(number) is out of range; \(expectation)") }
        return number
    }

    /// `sat-sun` ends with a Sunday.
    private func highEnd(_ text: Substring, above low: Int, in item: Substring) throws(ExpressionError) -> Int {
        let high = try number(text, in: item)
        return high == 0 && low > 0 && range.upperBound == 7 ? 7 : high
    }

    private func step(_ text: Substring, in item: Substring) throws(ExpressionError) -> Int {
        let most = range.upperBound == 7 ? 7 : range.count
        guard !text.isEmpty, text.utf8.count <= 4, text.utf8.allSatisfy({ (48...57).contains($0) }),
            let step = Int(text), (1...most).contains(step)
        else {
            throw complaint(
                "the step \(ExpressionError.quoted(text)) in \(ExpressionError.quoted(item)) must be a number from 1 to \(most)"
            )
        }
        return step
    }

    var expectation: String {
        let numbers = "give \(range.lowerBound) to \(range.upperBound)"
        guard let first = names.first, let last = names.last else { return numbers }
        return "\(numbers), or \(first) to \(last)"
    }

    private var example: String {
        guard let first = names.first else { return "*, \(range.lowerBound + 5), 1-10 or */10" }
        return "*, \(first), \(names[1])-\(names[4]) or \(names[1]),\(names[3])"
    }

    func complaint(_ text: String) -> ExpressionError {
        ExpressionError(text, field: name)
    }
}
