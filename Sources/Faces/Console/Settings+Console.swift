import FoundationEssentials
import Listeners
package import SettingsKit
import Signatures

extension Setting {
    package static let console: [Setting] = [
        consoleOn, consoleListen, consoleUsers, consoleRole, consoleFrames, consoleKey, jwtSecret, jwtKey, jwtIssuer,
        jwtAudience,
        jwtHeader,
        jwtClaim, jwtGroups, consoleProxies,
    ]

    package static let consoleOn = Setting(
        "console", .boolean, fallback: "off", help: "Show the console at this worker's address for HTTP.")
    /// Where it stands without a worker, so that it does not take the worker's place.
    package static let consoleListen = Setting(
        "console-listen",
        .custom(expects: ListenAddress.expectation) { text in
            ListenAddress(text) != nil ? nil : "takes \(ListenAddress.expectation), not \(Secrets.quoted(text))"
        },
        fallback: "127.0.0.1:8480", valueName: "ADDRESS:PORT", help: "The address of a console without a worker.")
    package static let consoleProxies = Setting(
        "console-proxies", addressRanges, valueName: "ADDRESS,…",
        help: "Proxies whose X-Forwarded-For says where a visitor signs in from, besides those on this machine.")
    package static let consoleUsers = Setting(
        "console-users",
        .custom(expects: "lines such as ada:operator:scrypt$…") { text in
            do throws(ConsoleUsers.Malformed) {
                _ = try ConsoleUsers(parsing: text)
                return nil
            } catch {
                return "cannot be used: \(error)"
            }
        }, secrecy: .hidden, valueName: "USERS", hasLines: true,
        help: "Who may sign in to the console: a line each, as millrace console --make-user prints it; usually a file.")
    package static let consoleRole = Setting(
        "console-role", .choice(ConsoleRole.allCases.map(\.rawValue)), fallback: "admin",
        help: "The role of visitors from this machine, and of those who have the token.")
    package static let consoleFrames = Setting(
        "console-frames",
        .custom(expects: "origins such as https://ops.example.com") { text in
            text.split(separator: " ").allSatisfy { origin in
                origin.hasPrefix("https://") || origin.hasPrefix("http://")
            } && text.utf8.allSatisfy { (0x20...0x7E).contains($0) && $0 != 0x3B && $0 != 0x2C }
                ? nil : "takes origins that begin with https:// or http://, separated by spaces"
        }, valueName: "ORIGINS", help: "Pages that may show the console in a frame; none if not given.")
    package static let consoleKey = Setting(
        "console-key",
        .custom(expects: "a text of at least 32 bytes") { text in
            text.utf8.count >= 32 ? nil : "takes at least 32 bytes"
        }, secrecy: .hidden, valueName: "KEY",
        help:
            "Signs the console's sessions; several consoles behind one address need the same. If not given, sessions end with the process."
    )
    package static let jwtSecret = Setting(
        "console-jwt-secret",
        .custom(expects: "a secret of at least 32 bytes") { text in
            text.utf8.count >= 32 ? nil : "takes at least 32 bytes"
        },
        secrecy: .hidden, valueName: "SECRET", help: "What the reverse proxy signs its web tokens with (HS256).")
    package static let jwtKey = Setting(
        "console-jwt-key",
        .custom(expects: "a public key in PEM form") { text in
            do throws(VerifyingKey.Unusable) {
                _ = try VerifyingKey(pem: Array(text.utf8))
                return nil
            } catch {
                return "cannot be used: \(error)"
            }
        }, secrecy: .hidden, valueName: "PEM", hasLines: true,
        help: "The public key of the reverse proxy's web tokens (RS256, ES256 or EdDSA); usually a file.")
    package static let jwtIssuer = Setting(
        "console-jwt-issuer", .text, valueName: "ISSUER", help: "Who must have issued the proxy's web tokens.")
    package static let jwtAudience = Setting(
        "console-jwt-audience", .text, valueName: "AUDIENCE",
        help: "The audience that the proxy's web tokens must have.")
    package static let jwtHeader = Setting(
        "console-jwt-header", .text, fallback: "Authorization", valueName: "HEADER",
        help: "The header in which the proxy sends a web token.")
    package static let jwtClaim = Setting(
        "console-jwt-claim", .text, fallback: "millrace_role", valueName: "CLAIM",
        help: "The claim with a role or with groups; dots lead into nested values.")
    package static let jwtGroups = Setting(
        "console-jwt-groups",
        .custom(expects: "pairs such as sre=operator,leads=admin") { text in
            Settings.groups(in: text) == nil ? "takes pairs such as sre=operator,leads=admin" : nil
        }, valueName: "GROUP=ROLE,…", help: "Which groups have which role; without it the claim is the role.")
}

extension Settings {
    package var showsConsole: Bool { isOn(.consoleOn) }

    package static func groups(in text: String) -> [String: ConsoleRole]? {
        var groups: [String: ConsoleRole] = [:]
        for pair in text.split(separator: ",") {
            let halves = pair.split(separator: "=", maxSplits: 1).map(String.init)
            guard halves.count == 2, let role = ConsoleRole(rawValue: halves[1]) else { return nil }
            groups[halves[0]] = role
        }
        return groups.isEmpty ? nil : groups
    }
}
