/// A cron expression: minute, hour, day of month, month, day of week, and if you like a field for seconds in front.
package struct CronExpression: Sendable, Equatable {
    // A bit for each number that matches.
    let seconds: UInt64
    let minutes: UInt64
    let hours: UInt64
    let months: UInt64
    let days: CronDays

    /// True when every hour is allowed: then it follows real time and not the wall clock.
    var allowsEveryHour: Bool { hours == CronField.hour.everything }

    private static let macros: [String: Substring] = [
        "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
        "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
    ]

    package init(_ text: String) throws(ExpressionError) {
        guard text.utf8.count <= 200 else { throw ExpressionError("it is longer than 200 characters") }
        var fields = text.split { $0 == " " || $0 == "\t" }
        if let word = fields.first, word.hasPrefix("@") {
            guard fields.count == 1, let meaning = Self.macros[word.lowercased()] else {
                throw ExpressionError(
                    "\(ExpressionError.quoted(text)) is unknown; there are \(Self.macros.keys.sorted().joined(separator: ", ")) and @every, as in @every 15m"
                )
            }
            fields = meaning.split(separator: " ")
        }
        if fields.count == 5 { fields.insert("0", at: 0) }
        guard fields.count == 6 else {
            throw ExpressionError(
                "it has \(fields.count) field\(fields.count == 1 ? "" : "s"); give 5 (minute, hour, day of month, month, day of week), or 6 with seconds in front"
            )
        }
        seconds = try Self.bits(.second, fields[0])
        minutes = try Self.bits(.minute, fields[1])
        hours = try Self.bits(.hour, fields[2])
        days = try CronDays(month: fields[3], week: fields[5])
        months = try Self.bits(.month, fields[4])
        guard nextWall(from: 0) != nil else {
            throw ExpressionError("it never fires: no month it names has such a day; give a day that exists")
        }
    }

    private static func bits(_ field: CronField, _ text: Substring) throws(ExpressionError) -> UInt64 {
        var bits: UInt64 = 0
        for item in try field.items(text) { bits |= try field.bits(of: item) }
        return bits
    }
}
