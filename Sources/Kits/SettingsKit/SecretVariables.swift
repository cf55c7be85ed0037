import Glibc

/// Removes secrets from the environment and the command line once they have been read. Linux shows both in /proc, as they were when the
/// process started, for its whole life; and every started program inherits the environment.
package enum SecretVariables {
    /// The variables to remove: those of secret settings, passwords for libpq, and everything that looks like another program's secret,
    /// because a
    /// container's environment is often shared.
    package static func names(in environment: [String: String], settings: [Setting]) -> [String] {
        let secret = Set(settings.filter { $0.secrecy != .open }.map(\.environment))
        return environment.filter { name, value in secret.contains(name) || looksSecret(name, value) }.map(\.key)
    }

    private static func looksSecret(_ name: String, _ value: String) -> Bool {
        let upper = name.uppercased()
        // A path to a secret is none, and libpq reads its own paths with every connection.
        if upper.hasSuffix("_FILE") { return false }
        let words = [
            "PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "CREDENTIAL", "APIKEY", "API_KEY", "PRIVATE",
        ]
        if words.contains(where: upper.contains) { return true }
        if upper.hasPrefix("PG") { return false }
        // A URL with credentials in it.
        guard let scheme = value.firstRange(of: "://") else { return upper.hasSuffix("_KEY") }
        return value[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }.contains("@")
    }

    /// Overwrites them where the kernel shows them, and removes them from the environment. No other thread may read the environment
    /// meanwhile, so it is called at the start of a process.
    package static func forget(_ names: [String], _ values: [String]) {
        for name in names {
            let prefix = Array("\(name)=".utf8CString.dropLast())
            var places: [UnsafeMutablePointer<CChar>] = []
            var entry = environ
            while let text = entry.pointee {
                if strncmp(text, prefix, prefix.count) == 0 { places.append(text) }
                entry += 1
            }
            unsetenv(name)
            for place in places { memset(place, 0, strlen(place)) }
        }
        // A flag's value, as a separate argument or after its `=`.
        for index in 1..<max(1, Int(CommandLine.argc)) {
            for value in values where !value.isEmpty {
                var rest = CommandLine.unsafeArgv[index]
                while let start = rest, let place = strstr(start, value) {
                    memset(place, Int32(UInt8(ascii: "*")), strlen(value))
                    rest = place + strlen(value)
                }
            }
        }
    }
}
