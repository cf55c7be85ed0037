extension Rules {
    /// A date, a time of day and an offset, all of them whole (RFC 3339).
    static func isTimestamp(_ text: String) -> Bool {
        var left = Array(text.utf8)[...]
        func number(_ digits: Int, _ range: ClosedRange<Int>) -> Int? {
            let head = left.prefix(digits)
            guard head.count == digits, head.allSatisfy(isDigit) else { return nil }
            left = left.dropFirst(digits)
            let value = head.reduce(0) { $0 * 10 + Int($1 - UInt8(ascii: "0")) }
            return range.contains(value) ? value : nil
        }
        func sign(_ allowed: String) -> UInt8? {
            guard let byte = left.first, allowed.utf8.contains(byte) else { return nil }
            left = left.dropFirst()
            return byte
        }
        guard let year = number(4, 0...9999), sign("-") != nil, let month = number(2, 1...12), sign("-") != nil,
            number(2, 1...days(in: month, of: year)) != nil, sign("Tt") != nil, number(2, 0...23) != nil,
            sign(":") != nil, number(2, 0...59) != nil, sign(":") != nil, number(2, 0...60) != nil
        else { return false }
        if sign(".") != nil {
            let fraction = left.prefix(while: isDigit)
            guard !fraction.isEmpty else { return false }
            left = left.dropFirst(fraction.count)
        }
        guard let zone = sign("Zz+-") else { return false }
        if zone | 0x20 == UInt8(ascii: "z") { return left.isEmpty }
        return number(2, 0...23) != nil && sign(":") != nil && number(2, 0...59) != nil && left.isEmpty
    }

    private static func days(in month: Int, of year: Int) -> Int {
        switch month {
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        case 4, 6, 9, 11: 30
        default: 31
        }
    }
}
