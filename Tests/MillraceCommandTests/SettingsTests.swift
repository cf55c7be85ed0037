import AI
import Glibc
import Supervision
import Testing

@testable import MillraceCommand

private func load(
    _ environment: [String: String] = [:], _ arguments: String..., files: [String: String] = [:], writable: Bool = true
) -> Settings {
    let surroundings = Surroundings.fake(environment, files: files, writable: writable)
    var parsed: Parsed?
    if case .run(let line) = Parser(tree: Verbs.tree, environment: environment).parse(["config"] + arguments) {
        parsed = line
    }
    return .load(parsed: parsed, surroundings: surroundings, known: Verbs.tree.environmentNames)
}

@Suite struct SettingsTests {
    @Test func `the defaults are what the contract says`() {
        let settings = load()
        #expect(settings.problems.isEmpty && settings.warnings.isEmpty)
        #expect(settings.database == .none)
        #expect(settings.slots == 100)
        #expect(settings.drainTimeout == .seconds(30))
        #expect(settings.poll == .seconds(1))
        #expect(settings.statementTimeout == .seconds(10))
        #expect(settings.prepare == "auto" && settings.logLevel == "info" && settings.logFormat == "text")
        #expect(!settings.practice)
        #expect(settings.queues == [])
        #expect(
            [settings.clientRole, settings.workerRole, settings.adminRole] == [
                "millrace_client", "millrace_worker", "millrace_admin",
            ])
    }

    @Test func `batches go to the servers that have them, to none or to all`() {
        let servers = [
            "https://api.openai.com/v1", "https://api.openai.com", "https://api.anthropic.com",
            "http://127.0.0.1:8080/v1", "https://api.openai.com.example/v1",
        ]
        #expect(servers.filter(load().aiHasBatches) == Array(servers.prefix(3)))
        #expect(servers.filter(load(["MILLRACE_AI_BATCHES": "off"]).aiHasBatches) == [])
        #expect(servers.filter(load(["MILLRACE_AI_BATCHES": "on"]).aiHasBatches) == servers)
    }

    @Test func `flag, environment, file and default are told apart`() {
        let environment = ["MILLRACE_SLOTS": "20", "MILLRACE_POLL": "5s", "DATABASE_URL_FILE": "/run/url"]
        let settings = load(environment, "--slots", "7", files: ["/run/url": "postgres://u:pw@h/d\n"])
        #expect(settings.problems.isEmpty)
        #expect(settings.slots == 7)
        #expect(settings.entry(.slots)?.origin == .flag("slots"))
        #expect(settings.entry(.poll)?.origin == .environment("MILLRACE_POLL"))
        #expect(settings.entry(.databaseURL)?.origin == .file(path: "/run/url", variable: "DATABASE_URL_FILE"))
        #expect(settings.database == .text("postgres://u:pw@h/d"))
        #expect(settings.entry(.pool)?.origin == .fallback)
    }

    @Test func `every error is collected, each with its variable and what is allowed`() {
        let settings = load([
            "DATABASE_URL": "mysql://x", "MILLRACE_SLOTS": "0", "MILLRACE_POLL": "500ms", "MILLRACE_PREPARE": "maybe",
            "MILLRACE_PRACTICE": "perhaps", "MILLRACE_QUEUES": "mail:0", "MILLRACE_DIRECT_URL_FILE": "/none",
            "MILLRACE_ROLE_ADMIN": String(repeating: "x", count: 64),
        ])
        let names = [
            "DATABASE_URL must be a postgres:// URL", "MILLRACE_DIRECT_URL_FILE names a file that cannot be read",
            "MILLRACE_PREPARE takes auto, on or off, not 'maybe'", "MILLRACE_QUEUES takes queues such as",
            "MILLRACE_SLOTS takes a whole number from 1 to 10000, not '0'", "MILLRACE_POLL takes a duration",
            "MILLRACE_PRACTICE takes 1, true, yes or on", "MILLRACE_ROLE_ADMIN takes a role's name",
        ]
        #expect(settings.problems.count == names.count)
        for (problem, name) in zip(settings.problems, names) { #expect(problem.hasPrefix(name)) }
    }

    @Test(arguments: Setting.all.map(\.name)) func `no setting shows who asks, or the values of a query`(_ name: String)
        throws
    {
        let setting = try #require(Setting.all.first { $0.name == name })
        for text in [
            "https://user:secret@host.example/x", "https://secret@host.example",
            "https://user:sec/secret@host.example/",
            "https://host.example/?key=secret&other=secret#secret", "https://host.example/?secret",
            "https://host.example/?\u{301}key=secret", "https://user:secret@\u{301}host.example/",
            "user:secret@host.example",
            "smtp://user:secret@host.example:25?x=secret", "https://a.example,https://u:secret@b.example",
            "https://user:p?x#secret@host.example", "https://host.example/?a={token}secret",
            "https://u:@secret@host.example",
        ] {
            let shown = setting.shown(text)
            #expect(!shown.contains("secret"), "\(shown)")
            let settings = load([setting.environment: text])
            for entry in settings.entries { #expect(entry.shown?.contains("secret") != true, "\(entry.shown ?? "")") }
            for line in settings.problems + settings.warnings { #expect(!line.contains("secret"), "\(line)") }
        }
    }

    @Test func `what is not a secret in an address is shown`() {
        for text in [
            "https://host.example:8443/a/b", "https://app.example.com/reset?token={token}",
            "https://host.example/?a=&b={x}#{y}",
            "mail:20,default", "Ada <ada@example.org>", "12h", "",
        ] {
            #expect(Setting.publicURL.shown(text) == text)
        }
        #expect(
            Setting.publicURL.shown("https://u:p@host.example/a?b=c&d#e") == "https://***@host.example/a?b=***&***#***")
    }

    @Test func `what is set of the supervision reaches it`() {
        let settings = load([
            "MILLRACE_BREAKER_FAILURES": "7", "MILLRACE_BREAKER_OPEN": "90s", "MILLRACE_BREAKER_QUORUM": "3",
            "MILLRACE_RETRY_BUDGET": "5%", "MILLRACE_PROVIDER_RESEND_SLOTS": "8",
            "MILLRACE_PROVIDER_RESEND_RATE": "120/1m", "MILLRACE_PROVIDER_WEBHOOK_TIMEOUT": "15s",
        ])
        #expect(settings.problems.isEmpty && settings.warnings.isEmpty, "\(settings.problems) \(settings.warnings)")
        let options = settings.supervision
        #expect(options.breaker.failures == 7 && options.breaker.open == .seconds(90) && options.quorum == 3)
        #expect(options.breaker.window == .seconds(30) && options.breaker.probes == 2 && options.retryShare == 0.05)
        #expect(
            options.providers == [
                "resend": .init(slots: 8, rate: 2), "webhook": .init(timeout: .seconds(15)),
            ])
    }

    @Test func `what is wrong with the supervision's is refused with its variable`() {
        let settings = load([
            "MILLRACE_BREAKER_FAILURES": "0", "MILLRACE_RETRY_BUDGET": "120%", "MILLRACE_PROVIDER_RESEND_SLOTS": "none",
            "MILLRACE_PROVIDER_RESEND_RATE": "10", "MILLRACE_PROVIDER_RESEND_TIMEOUT": "1ms",
        ])
        #expect(settings.problems.count == 5, "\(settings.problems)")
        for name in ["BREAKER_FAILURES", "RETRY_BUDGET", "RESEND_SLOTS", "RESEND_RATE", "RESEND_TIMEOUT"] {
            #expect(settings.problems.contains { $0.hasPrefix("MILLRACE_") && $0.contains(name) }, "\(name)")
        }
        #expect(
            load(["MILLRACE_PROVIDER_RESEND_SLOT": "3"]).warnings.contains {
                $0.contains("MILLRACE_PROVIDER_RESEND_SLOT")
            })
    }

    @Test func `a secret has one place`() {
        let both = load(
            ["DATABASE_URL": "postgres://h/d", "DATABASE_URL_FILE": "/run/url"], files: ["/run/url": "postgres://h/d"])
        #expect(both.problems == ["DATABASE_URL and DATABASE_URL_FILE are both set: keep one of them"])
        #expect(
            load(["DATABASE_URL_FILE": "/e"], files: ["/e": "\n"]).problems == [
                "DATABASE_URL_FILE names a file that is empty"
            ])
        #expect(load(["DATABASE_URL_FILE": "/e"], files: ["/e": "a=b\nc=d\n"]).problems.count == 1)
    }

    @Test func `libpq's own variables count when they name a database`() {
        let settings = load(["PGHOST": "db", "PGUSER": "me", "PGPASSWORD": "hunter2"])
        #expect(settings.database == .libpqVariables)
        #expect(settings.entry(.databaseURL)?.shown == "host=db user=me password=***")
        #expect(load(["PGUSER": "me"]).database == .none)
        #expect(load(["PGHOST": "db", "PGPORT": "http"]).problems.count == 1)
    }

    @Test func `the embedded cluster lives beside the project, or else at home`() {
        #expect(load().directory == "/here/.millrace")
        #expect(load(["HOME": "/home/me"], writable: false).directory == "/home/me/.local/share/millrace")
        #expect(load(["HOME": "/home/me", "XDG_DATA_HOME": "/data"], writable: false).directory == "/data/millrace")
        #expect(load([:], writable: false).directory == nil)
        #expect(load(["MILLRACE_DIR": "/var/x"]).directory == "/var/x")
    }

    @Test func `queues may have slots of their own`() {
        let expected = [QueueSlots(queue: "mail", slots: 20), QueueSlots(queue: "default", slots: nil)]
        #expect(load(["MILLRACE_QUEUES": "mail:20, default"]).queues == expected)
        #expect(load([:], "--queue", "mail:20", "--queue", "default").queues == expected)
        #expect(load([:], "--queue", "mail", "--queue", "mail:3").problems.count == 1)
    }

    @Test func `an unknown variable is a warning with a suggestion`() {
        let settings = load([
            "MILLRACE_DATABASE_URL": "postgres:///x", "MILLRACE_SLOT": "3", "MILLRACE_XYZZY": "1", "MILLRACE_YES": "1",
            "OTHER": "x",
        ])
        #expect(settings.problems.isEmpty)
        #expect(
            settings.warnings == [
                "unknown variable MILLRACE_DATABASE_URL; did you mean DATABASE_URL?",
                "unknown variable MILLRACE_SLOT; did you mean MILLRACE_SLOTS?", "unknown variable MILLRACE_XYZZY",
            ])
    }
}

@Suite struct SecretsTests {
    @Test(arguments: [
        ("postgres://me:pw@db:5432/app", "postgres://me:***@db:5432/app"),
        ("postgresql://db/app?password=pw&sslmode=require", "postgres://db/app?password=***&sslmode=require"),
        ("postgres://me@a:1,b:2/app?sslpassword=pw", "postgres://me@a:1,b:2/app?sslpassword=***"),
        ("postgres://me:pw@[::1]:5432/", "postgres://me:***@[::1]:5432"),
        ("postgres://", "postgres://"), ("postgres:///app?host=/run/pg", "postgres:///app?host=/run/pg"),
        ("postgres:///?", "postgres://"),
        ("postgres://me:p?w@db/app", "postgres://me:***@db/app"),
        ("host=db user=me password=pw dbname=app", "host=db user=me password=*** dbname=app"),
        ("host = 'my db' password='p w\\'x' unknown=pw", "host='my db' password=*** unknown=***"),
    ])
    func `a connection keeps what is not a secret`(text: String, masked: String) {
        #expect(ConnectionText.complaint(text) == nil)
        #expect(Secrets.masked(connection: text) == masked)
    }

    @Test(arguments: [
        "postgres://me:p/w@db/app", "postgres://me:p@w@db/app", "postgres://me:12/w@db", "postgres://me:pw%zz@db",
        "postgres://db/app?password", "postgres://db:pw/app", "host=db password='pw", "host=db pw", "just-a-name",
        "mysql://me:pw@db/app", "postgres://me:1/x?a=b@db",
        "postgres://me:p@$1$w/db", "postgres://me:pw/app",
    ])
    func `what libpq would misread is refused and shown not at all`(text: String) {
        #expect(ConnectionText.complaint(text) != nil)
        #expect(Secrets.masked(connection: text) == "***")
    }

    @Test func `a hidden setting is masked, and a refusal does not repeat it`() {
        let token = Setting("token", .integer(1000...9999), secrecy: .hidden, help: "A secret number.")
        let good = Settings.load(
            parsed: nil, surroundings: .fake(["MILLRACE_TOKEN": "4711"]), table: SettingsTable([token]))
        #expect(good.entry(token)?.shown == "***" && good.integer(token) == 4711)
        let bad = Settings.load(
            parsed: nil, surroundings: .fake(["MILLRACE_TOKEN": "hunter2"]), table: SettingsTable([token]))
        #expect(bad.problems == ["MILLRACE_TOKEN takes a whole number from 1000 to 9999"])
        let file = Settings.load(
            parsed: nil, surroundings: .fake(["MILLRACE_TOKEN_FILE": "/t"], files: ["/t": "4711\r\n"]),
            table: SettingsTable([token]))
        #expect(file.integer(token) == 4711)
    }

    @Test func `no secret ever appears in any output`() async {
        var generator = SystemRandomNumberGenerator()
        let letters = Array("abcXYZ0189-._~!$*@:/?#%&='\\ \"é")
        for _ in 0..<100 {
            var secret = "Zq"
            for _ in 0..<12 { secret.append(letters.randomElement(using: &generator) ?? "a") }
            secret += "Qz"
            let encoded = secret.utf8.map { byte in
                Character(Unicode.Scalar(byte)).isLetter && byte < 0x80
                    ? String(Unicode.Scalar(byte)) : "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }.joined()
            let texts = [
                "postgres://me:\(secret)@db:5432/app", "postgres://me:\(encoded)@db/app?sslpassword=\(encoded)",
                "postgres://db/app?password=\(secret)", "host=db password='\(secret)'", "host=db password=\(secret)",
                // Without a host; an @ in there would make the rest of it a host to every reader.
                "postgres://me:\(secret.filter { $0 != "@" })/app", "password = \(secret) host=db",
                "postgres//\(secret)@db?password=\(secret)",
            ]
            let text = texts.randomElement(using: &generator) ?? texts[0]
            let outcomes = [
                await millrace(text), await millrace("config", text), await millrace("help", text, text),
                await millrace("config", environment: ["DATABASE_URL": text, "MILLRACE_DIRECT_URL": text]),
                await millrace("config", "--json", environment: ["DATABASE_URL_FILE": "/f"], files: ["/f": text]),
                await millrace("config", "--database-url", text, "--direct-url=\(text)"),
                await millrace("config", "--verbose", environment: ["PGHOST": "db", "PGPASSWORD": secret]),
                await millrace("config", "--databse-url", text, "--colour=\(text)", "--pool=x"),
                await millrace("config", "--databse-url=\(text)", "--json=\(text)"),
            ]
            for outcome in outcomes {
                // Three characters in a row of the middle may be a coincidence, the ends with their letters are not.
                for part in ["\(secret.prefix(5))", "\(secret.suffix(5))", secret, encoded] {
                    // Byte by byte: `contains` would compare characters, for longer than all else in this test takes.
                    #expect(strstr(outcome.output, part) == nil, "\(text)")
                    #expect(strstr(outcome.errors, part) == nil, "\(text)")
                }
            }
        }
    }
}
