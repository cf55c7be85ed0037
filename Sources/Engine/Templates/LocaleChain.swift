/// Locales such as pt-BR: a language, perhaps a script and a region.
package enum LocaleChain {
    /// From the nearest to the last: pt-BR, pt, the default, en.
    package static func of(_ locale: String, fallback: String) -> [String] {
        var chain: [String] = []
        for start in [locale, fallback, "en"] where isLocale(start) {
            var parts = start.split(separator: "-").map(String.init)
            while !parts.isEmpty {
                let name = parts.joined(separator: "-")
                if !chain.contains(name) { chain.append(name) }
                parts.removeLast()
            }
        }
        return chain
    }

    package static func isLocale(_ text: String) -> Bool {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false).map { Array($0.utf8) }
        func isLower(_ byte: UInt8) -> Bool { byte &- 97 < 26 }
        func isUpper(_ byte: UInt8) -> Bool { byte &- 65 < 26 }
        guard let language = parts.first, (2...3).contains(language.count), language.allSatisfy(isLower) else {
            return false
        }
        var rest = parts.dropFirst()
        if let script = rest.first, script.count == 4 {
            guard isUpper(script[0]), script.dropFirst().allSatisfy(isLower) else { return false }
            rest = rest.dropFirst()
        }
        guard let region = rest.first else { return true }
        return rest.count == 1
            && ((region.count == 2 && region.allSatisfy(isUpper))
                || (region.count == 3 && region.allSatisfy { $0 &- 48 < 10 }))
    }

    /// Written from the right to the left.
    package static func isRightToLeft(_ locale: String) -> Bool {
        let parts = locale.split(separator: "-").map(String.init)
        if parts.count > 1, parts[1].count == 4 {
            return ["Arab", "Hebr", "Thaa", "Syrc", "Nkoo", "Adlm"].contains(parts[1])
        }
        return ["ar", "he", "fa", "ur", "yi", "ps", "sd", "ug", "dv", "ckb"].contains(parts.first ?? "")
    }
}
