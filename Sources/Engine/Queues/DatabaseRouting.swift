import Digests

/// Which of several databases a key belongs to: a tenant, a person, or what else a program divides its work by.
///
/// Each name has a weight for the key, the first eight bytes of SHA-256 over the name, a zero byte and the key, as a number with the most
/// significant byte first. The heaviest name has the key. So every process and every version gives the same answer, the order of the names
/// does not matter, and with another database only the keys that it gets are elsewhere than before.
package struct DatabaseRouting: Sendable {
    /// Keys that belong elsewhere than their weights say, with the names of their databases.
    package var overrides: [String: String]

    package init(overrides: [String: String] = [:]) {
        self.overrides = overrides
    }

    /// nil: there are no names, or the override names another.
    package func database(of key: String, among names: [String]) -> String? {
        // Strings are the same in other spellings of their letters, too; here the bytes count.
        if let index = overrides.index(forKey: key), overrides[index].key.utf8.elementsEqual(key.utf8) {
            return names.contains(overrides[index].value) ? overrides[index].value : nil
        }
        return names.sorted().map { (name: $0, weight: Self.weight(of: $0, for: key)) }.max { $0.weight < $1.weight }?
            .name
    }

    package static func weight(of name: String, for key: String) -> UInt64 {
        SHA256Digest.of(Array(name.utf8) + [0] + Array(key.utf8)).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }
}
