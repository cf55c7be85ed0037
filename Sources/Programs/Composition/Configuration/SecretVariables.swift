import Glibc

/// Secrets of the environment and of the command line, once they have been read. Linux shows both as the process was started with them, in
/// /proc, for as long as it lives; and what stands in the environment is handed on to whatever is started.
package enum SecretVariables {
    /// The variables that must not stay: those of secret settings, passwords for libpq, and what looks like somebody else's secret, for a
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
        // A URL with somebody in it.
        guard let scheme = value.firstRange(of: "://") else { return upper.hasSuffix("_KEY") }
        return value[scheme.upperBound...].prefix { $0 != "/" && $0 != "?" }.contains("@")
    }

    /// Overwrites them where the kernel shows them, and takes them out of the environment. Nobody else may read the environment meanwhile:
    /// this is for the start of a process.
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
        // A flag's value, apart or behind its `=`.
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
