import Encodings

/// What stands behind the question mark of an address.
package enum Escapes {
    /// nil when something in it cannot be decoded.
    package static func query(_ text: some StringProtocol) -> [(name: String, value: String)]? {
        var pairs: [(name: String, value: String)] = []
        for part in text.split(separator: "&") {
            let halves = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard let name = PercentEncoding.decoded(halves[0], plusIsSpace: true),
                let value = PercentEncoding.decoded(halves.count > 1 ? halves[1] : "", plusIsSpace: true)
            else { return nil }
            pairs.append((name, value))
        }
        return pairs
    }
}
