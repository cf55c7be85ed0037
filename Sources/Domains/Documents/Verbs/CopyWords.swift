import CommandKit

/// What is known of a copy, for people.
enum CopyWords {
    /// Empty, or sentences that continue a line.
    static func of(_ about: JSONValue?) -> String {
        guard let about else { return "" }
        var words: [String] = []
        if about["format"]?.text == "pdfa-2b" { words.append("PDF/A-2b") }
        if about["all_drawn"] == .bool(true) { words.append("all pages drawn as pictures") }
        if let drawn = about["drawn"]?.items, !drawn.isEmpty {
            let pages = drawn.prefix(20).map { "\($0["page"]?.compact ?? "?") (\($0["cause"]?.text ?? "?"))" }
            words.append("drawn as pictures: " + pages.joined(separator: ", ") + (drawn.count > 20 ? ", …" : ""))
        }
        for name in ["cleaned", "levelled"] {
            if let pages = about[name]?.items {
                words.append("\(pages.count) \(pages.count == 1 ? "page" : "pages") \(name)")
            }
        }
        if let pictures = about["pictures"], let before = pictures["before"], let after = pictures["after"] {
            words.append("pictures \(before.compact) bytes before, \(after.compact) after")
        }
        return words.map { "; \($0)" }.joined()
    }
}
