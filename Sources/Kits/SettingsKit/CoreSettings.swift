import Listeners

extension Setting {
    package static let connection: [Setting] = [
        databaseURL, databases, routes, directURL, pool, statementTimeout, prepare, directory,
    ]
    package static let worker: [Setting] = [
        queues, slots, drainTimeout, poll, connections, waker, practice, build, onlyBuild, logLevel, logFormat,
    ]
    package static let listening: [Setting] = [listen, token]
    package static let mailing: [Setting] = [locale]
    package static let sealing: [Setting] = [encryptionKeys]
    package static let roles: [Setting] = [clientRole, workerRole, adminRole, viewerRole, operatorRole, gatewayRole]
    package static let terminal: [Setting] = [noColor]

    package static let databaseURL = Setting(
        "database-url", environment: "DATABASE_URL",
        .custom(expects: ConnectionText.expectation, complaint: ConnectionText.complaint), secrecy: .connection,
        valueName: "URL", help: "The Postgres to use; without it libpq's PG* variables apply.")
    package static let databases = Setting(
        "databases", .custom(expects: DatabaseList.expectation, complaint: DatabaseList.complaint),
        secrecy: .connections, valueName: "NAME=URL,…", hasLines: true,
        help: "Several databases in place of one, each a Millrace of its own: eu=postgres://…, us=postgres://….")
    package static let routes = Setting(
        "routes", .custom(expects: RouteList.expectation, complaint: RouteList.complaint), valueName: "KEY=NAME,…",
        help: "Tenants and people that belong to another of the databases than their hash says: acme=us,beta=eu.")
    package static let directURL = Setting(
        "direct-url", .custom(expects: ConnectionText.expectation, complaint: ConnectionText.complaint),
        secrecy: .connection, valueName: "URL",
        help: "A direct connection to Postgres, past a transaction pooler, for LISTEN and locks.")
    package static let pool = Setting(
        "pool", .integer(1...500), fallback: "8", valueName: "N", help: "The maximum number of connections to Postgres."
    )
    package static let statementTimeout = Setting(
        "statement-timeout", .duration(.milliseconds(100) ... .seconds(3600)), fallback: "10s", valueName: "DURATION",
        help: "How long one statement may take.")
    package static let prepare = Setting(
        "prepare", .choice(["auto", "on", "off"]), fallback: "auto", valueName: "MODE",
        help: "Whether statements are prepared; off for poolers that cannot.")
    package static let directory = Setting(
        "dir", .path, valueName: "PATH",
        help: "The directory of the embedded Postgres; ./.millrace if this directory is writable.")

    package static let queues = Setting(
        "queues", flag: "queue", .custom(expects: QueueSlots.expectation, complaint: QueueSlots.complaint),
        fallback: "*", valueName: "NAME[:SLOTS]", isRepeated: true,
        help: "The queues to work on, optionally with slots for each: mail:20,default; * is all queues.")
    package static let slots = Setting(
        "slots", .integer(1...10_000), fallback: "100", valueName: "N",
        help: "The maximum number of jobs that run at the same time."
    )
    package static let drainTimeout = Setting(
        "drain-timeout", .duration(.zero ... .seconds(86_400)), fallback: "30s", valueName: "DURATION",
        help: "How long running jobs may continue when the worker stops.")
    package static let poll = Setting(
        "poll", .duration(.seconds(1) ... .seconds(300)), fallback: "1s", valueName: "DURATION",
        help: "How often to look for work without a notification.")
    package static let connections = Setting(
        "connections", .integer(2...500), valueName: "N",
        help: "The most connections to Postgres of a worker, for all that it does; without it each part opens its own.")
    package static let waker = Setting(
        "waker", .path, valueName: "PATH",
        help: "The socket by which millrace waker wakes the workers of its host, for those that cannot listen.")
    package static let practice = Setting(
        "practice", .boolean, fallback: "off", help: "Register the practice kinds, such as practice.echo.")
    package static let build = Setting(
        "build",
        .custom(expects: "a name of letters, digits and . _ -") { text in
            (1...64).contains(text.utf8.count)
                && text.utf8.allSatisfy { byte in
                    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
                        || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "._-".utf8.contains(byte)
                } ? nil : "takes 1 to 64 letters, digits and . _ -"
        }, valueName: "NAME",
        help: "The build of your program, such as a commit; status says when the newest one fails.")
    package static let onlyBuild = Setting(
        "only-build", .boolean, fallback: "off",
        help: "Take new jobs only while this build is the promoted one, and go on only with jobs that it began.")
    package static let logLevel = Setting(
        "log-level", .choice(["debug", "info", "warning", "error"]), fallback: "info", valueName: "LEVEL",
        help: "The lowest level to log.")
    package static let logFormat = Setting(
        "log-format", .choice(["text", "json"]), fallback: "text", valueName: "FORMAT", help: "The format of log lines."
    )

    package static let listen = Setting(
        "listen",
        .custom(expects: ListenAddress.expectation) { text in
            text == "off" || ListenAddress(text) != nil
                ? nil : "takes \(ListenAddress.expectation), not \(Secrets.quoted(text))"
        },
        fallback: "127.0.0.1:8470", valueName: "ADDRESS:PORT",
        help: "The address for HTTP: /livez, /readyz, /metrics and the routes of its rooms; off for none.")
    package static let token = Setting(
        "token",
        .custom(expects: "a token of at least \(AccessToken.shortest) bytes") { text in
            text.utf8.count >= AccessToken.shortest && text.utf8.allSatisfy { (0x21...0x7E).contains($0) }
                ? nil : "takes at least \(AccessToken.shortest) bytes of printable ASCII without spaces"
        },
        secrecy: .hidden, valueName: "TOKEN",
        help: "The token that callers must send as Authorization: Bearer; needed unless only loopback is listened on.")

    package static let locale = Setting(
        "locale", flag: "default-locale", .locale, fallback: "en", valueName: "LOCALE",
        help: "The language of mails to people without a known language, such as en or pt-BR.")

    package static let encryptionKeys = Setting(
        "encryption-key",
        .custom(expects: "keys such as id:base64,id:base64", complaint: Settings.complaint(aboutKeys:)),
        secrecy: .hidden, valueName: "KEYS",
        help:
            "What encrypts arguments (the first) and decrypts them (all): id:base64,… as millrace keys generate prints it."
    )

    package static let clientRole = role("client", "enqueues")
    package static let workerRole = role("worker", "works")
    package static let adminRole = role("admin", "operates")
    package static let viewerRole = role("viewer", "looks at the console")
    package static let operatorRole = role("operator", "acts at the console")
    package static let gatewayRole = role("gateway", "carries calls of apps")

    package static let noColor = Setting(
        "no-color", environment: "NO_COLOR", .presence, help: "No colours, with any value.")

    private static func role(_ name: String, _ deed: String) -> Setting {
        Setting(
            "role-\(name)",
            .custom(expects: "a role's name") { text in
                (1...63).contains(text.utf8.count) ? nil : "takes a role's name of 1 to 63 bytes"
            },
            fallback: "millrace_\(name)", valueName: "ROLE", help: "The database role that \(deed).")
    }
}

/// A queue to work on, and how many slots it has to itself.
package struct QueueSlots: Sendable, Equatable {
    package let queue: String
    package let slots: Int?

    package init(queue: String, slots: Int?) {
        self.queue = queue
        self.slots = slots
    }

    package static let expectation =
        "queues such as mail:20,default: names, each optionally with slots from 1 to 10000"

    package static func complaint(_ text: String) -> String? {
        read(text) == nil ? "takes \(expectation), not \(Secrets.quoted(text))" : nil
    }

    package static func read(_ text: String) -> [QueueSlots]? {
        let items = ListText.items(text)
        var found: [QueueSlots] = []
        for item in items {
            let parts = item.split(separator: ":", omittingEmptySubsequences: false)
            if parts == ["*"] { return items.count == 1 ? [] : nil }
            guard (1...2).contains(parts.count), isName(parts[0]), !found.contains(where: { $0.queue == parts[0] })
            else { return nil }
            var slots: Int?
            if parts.count == 2 {
                guard let number = Int(parts[1]), (1...10_000).contains(number) else { return nil }
                slots = number
            }
            found.append(QueueSlots(queue: String(parts[0]), slots: slots))
        }
        return found.isEmpty ? nil : found
    }

    /// The schema's rule: a letter or digit, followed by letters, digits and _ . / -.
    package static func isName(_ text: Substring) -> Bool {
        func isPlain(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: false
            }
        }
        guard let first = text.utf8.first, text.utf8.count <= 128, isPlain(first) else { return false }
        return text.utf8.allSatisfy { isPlain($0) || "_./-".utf8.contains($0) }
    }
}
