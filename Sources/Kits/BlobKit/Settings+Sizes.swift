package import SettingsKit

extension Setting {
    package static let documentBytes = amount(
        "document-bytes", 1...1_000_000_000_000, fallback: "100MB", "How large a document may be.")

    /// An amount within a range.
    package static func amount(_ name: String, _ range: ClosedRange<Int>, fallback: String, _ help: String) -> Setting {
        Setting(
            name,
            .custom(expects: "an amount such as 500K, 100MB or 2GB") { text in
                guard let amount = AmountText.read(text) else {
                    return "takes an amount such as 500K, 100MB or 2GB, not \(Secrets.quoted(text))"
                }
                return range.contains(amount) ? nil : "takes an amount from \(range.lowerBound) to \(range.upperBound)"
            }, fallback: fallback, valueName: "AMOUNT", help: help)
    }
}

extension Settings {
    /// The most bytes of a document, and of an upload by a link.
    package var largestDocument: Int { AmountText.read(string(.documentBytes)) ?? 100_000_000 }
}

/// Amounts as people write them: thousands, millions and thousands of millions.
package enum AmountText {
    package static func read(_ text: String) -> Int? {
        var digits = Substring(text.uppercased())
        if digits.hasSuffix("B") { digits = digits.dropLast() }
        let factors: [Character: Int] = ["K": 1000, "M": 1_000_000, "G": 1_000_000_000]
        var factor = 1
        if let last = digits.last, let found = factors[last] {
            factor = found
            digits = digits.dropLast()
        }
        guard let number = Int(digits), !digits.hasPrefix("+"), number >= 0 else { return nil }
        let (amount, isTooMuch) = number.multipliedReportingOverflow(by: factor)
        return isTooMuch ? nil : amount
    }
}
