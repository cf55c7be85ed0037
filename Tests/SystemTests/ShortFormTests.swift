import Fakes
import Foundation
import LoadKit
import Postgres
import TestSupport
import Testing

@testable import MillraceCommand
@testable import MillraceLoad
@testable import RoomLoad

/// Every scenario of `millrace load` in a short form: it ends well, and what it judges from outside finds nothing lost, twice or wrong.
/// How fast anything was decides nothing here.
@Suite struct ShortFormTests {
    struct Form: Sendable, CustomTestStringConvertible {
        let words: [String]
        /// The beginnings of the bars that must be met.
        var judged: [String] = []
        /// Counts over the scenario's own database, with what they must be.
        var counts: [(select: String, is: Int)] = []
        var template = Template.migrated

        var testDescription: String { words.joined(separator: " ") }

        init(
            _ line: String, judged: [String] = [], counts: [(select: String, is: Int)] = [],
            template: Template = .migrated
        ) {
            words = line.split(separator: " ").map(String.init)
            (self.judged, self.counts, self.template) = (judged, counts, template)
        }
    }

    private static func succeeded(_ count: Int) -> [(select: String, is: Int)] {
        [
            ("select count(*) from millrace.history where outcome = 1", count),
            ("select count(*) - count(distinct id) from millrace.history where outcome = 1", 0),
            ("select count(*) from millrace.lease", 0),
        ]
    }

    static let forms: [Form] = [
        // By hand, by one worker and by two.
        Form("drain --jobs 2000", counts: succeeded(6000) + [("select count(*) from millrace.ready", 0)]),
        // Two queues for each of four obstacles, twenty claims of a hundred; the claims leave those who stand aside where they are.
        Form(
            "claims --jobs 1000 --claims 20",
            counts: succeeded(16_000) + [
                ("select count(*) from millrace.parked", 1000), ("select count(*) from millrace.timer", 1000),
            ]),
        Form("limits --jobs 1000 --rounds 1", judged: ["slots held"], counts: succeeded(6000)),
        Form("rate --rate 20 --burst 10 --seconds 2 --workers 2", judged: ["worst window above the allowed"]),
        Form(
            "tenants --part large --waiting 1000 --tries 5",
            counts: [("select count(*) from millrace.job where tenant = 'small'", 5)]),
        Form("tenants --part newcomers --others 6 --each 6", counts: succeeded(48)),
        Form("samples --queues 3 --hours 2 --jobs 1000 --rounds 1", counts: succeeded(2000)),
        Form(
            "people --sequences 2 --steps 40 --strict",
            judged: [
                "watches ended", "reads of", "questions beyond", "calls that were", "told of", "errors other than",
            ],
            counts: [("select count(*) from millrace.family", 0)], template: .movableClock),
        // Its own Postgres; one disaster of each sort that takes no time to make.
        Form(
            "disasters --short --jobs 10 --only idle,subtransactions,rows,partition,migration",
            judged: ["disasters whose cause", "jobs that were answered and lost", "MultiXacts"]),
        Form("stalls --each 1", judged: ["share of right answers", "stalls without an answer"]),
        Form(
            "gateway-streams --streams 20 --rate 20 --jobs 20 --seconds 2",
            judged: ["clients that missed", "changes that reached"]),
        Form(
            "hostile --seconds 2 --callers 1 --rate 20",
            judged: ["processes of the server", "errors that do not say"],
            counts: [("select count(*) from millrace.client_grant", 0)]),
        Form(
            "chat --families 2 --people 3 --rate 20 --seconds 2 --callers 2",
            judged: ["members that missed", "members whose unread"]),
        Form(
            "quests --families 1000 --wave 100 --calls 10", judged: ["families left behind"],
            counts: [("select count(*) from millrace.quest_family where next_rollover_at <= millrace.now()", 1)]),
        // Every page answers.
        Form("console --jobs 1000 --looks 1 --pages 0"),
        Form("templates --seconds 1"),
        Form("mail --part fill --messages 200", judged: ["requests in any second", "lost or sent twice"]),
        Form(
            "ai --questions 100 --workers 2 --per-second 0 --seed 7",
            judged: [
                "questions that have not ended", "questions without an answer", "answers that are",
                "questions that were",
                "calls that nobody", "tenants whose quota", "tenants that paid", "tenants whose answers",
                "tokens above",
            ]),
    ]

    @Test(arguments: forms) func `a scenario ends well, and its judge finds nothing lost, twice or wrong`(
        form: Form
    ) async throws {
        try await withDatabase(form.template) { database in
            let report = try await LoadTimeTests.load(form.words, database: database, as: Ignored.self, progress: 100)
                .report
            for judged in form.judged {
                let bars = report.bars.filter { $0.what.hasPrefix(judged) }
                #expect(!bars.isEmpty, "there is no bar \(judged)")
                for bar in bars { #expect(bar.met, "\(bar.what): \(bar.measured), \(bar.bar)") }
            }
            let connection = try await database.connect()
            for (select, wanted) in form.counts { #expect(try await connection.int(select) == wanted, "\(select)") }
            await connection.close()
        }
    }

    struct Ignored: Decodable {}

    @Test func `mails go to servers that take everything, and each is taken once`() async throws {
        let sink = try MailSink()
        defer { sink.stop() }
        let words = ["--messages", "40", "--sessions", "2", "--rounds", "1", "--json"]
        let smtp = try MillraceProcess(["load", "smtp", "--port", "\(sink.port)"] + words, database: "")
        #expect(try await smtp.ended(within: .seconds(300)) == 0, "\(smtp.output)")
        #expect(sink.taken == 40)
        let fake = try FakeResend()
        defer { fake.stop() }
        let resend = try MillraceProcess(["load", "resend", "--port", "\(fake.port)"] + words, database: "")
        #expect(try await resend.ended(within: .seconds(300)) == 0, "\(resend.output)")
        #expect(fake.accepted.count == 40)
    }

    private static let nginx = ["/usr/sbin/nginx", "/usr/bin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    @Test(.enabled(if: nginx != nil, "nginx is not installed: apt-get install nginx-light"))
    func `pushes are taken over HTTP/2, and notices go the whole way`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "push-\(UUID().uuidString)").path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try await Program.check(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                "-keyout",
                "key.pem", "-out", "ca.pem", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
            ], in: directory)
        let port = try Loopback.freePort()
        // The outer server reads each push to its end, as Apple's does; the inner one answers.
        try """
        daemon off; master_process off; pid \(directory)/pid; error_log \(directory)/error;
        events { worker_connections 256; }
        http {
            access_log off; client_body_temp_path \(directory)/b; proxy_temp_path \(directory)/p;
            fastcgi_temp_path \(directory)/f; uwsgi_temp_path \(directory)/u; scgi_temp_path \(directory)/s;
            ssl_certificate \(directory)/ca.pem; ssl_certificate_key \(directory)/key.pem;
            server { listen 127.0.0.1:\(port) ssl http2; location / { proxy_pass http://unix:\(directory)/inner; } }
            server { listen unix:\(directory)/inner; location / { return 200; } }
        }
        """.write(toFile: "\(directory)/conf", atomically: true, encoding: .utf8)
        let server = try MillraceProcess(
            ["-c", "\(directory)/conf", "-p", directory, "-e", "\(directory)/error"], database: "",
            program: URL(filePath: try #require(Self.nginx)))
        defer { server.signal(SIGKILL) }
        try await eventually("nginx listens; it says: \(server.output)") {
            Loopback.connection(to: port).map { close($0) } != nil
        }
        let push = try MillraceProcess(
            [
                "load", "push", "--url", "https://localhost:\(port)", "--certificates", "\(directory)/ca.pem",
                "--pushes",
                "100", "--in-flight", "8", "--rounds", "1", "--notices", "50", "--alarms", "3", "--json",
            ], database: "")
        #expect(try await push.ended(within: .seconds(300)) == 0, "\(push.output)")
        #expect(push.output.contains("\"alarm_p99_ms\""), "\(push.output)")
    }

    @Test func `documents of two tenants are read, each of them once`() async throws {
        try await withDatabase { database in
            let words = ["documents", "--part", "tenants", "--documents", "10", "--within", "1s"]
            _ = try await LoadTimeTests.load(words, database: database, as: Ignored.self)
            let connection = try await database.connect()
            // One of the small tenant's alone, then ten of both; one is a scan.
            #expect(try await connection.int("select count(*) from millrace.document where status = 'completed'") == 11)
            #expect(
                try await connection.int("select count(*) from millrace.document_page where status = 'failed'") == 0)
            #expect(
                try await connection.int(
                    "select count(*) - count(distinct (document, page)) from millrace.document_content") == 0)
            await connection.close()
        }
    }

    /// A new scenario comes with a short form, here or in a suite of its own.
    @Test func `no scenario is without a short form`() {
        let elsewhere: Set = [
            "latency", "scheduled", "steady", "pinned", "enqueue", "backlog", "queues", "mixed", "slots",
            "cancellations", "undo", "waiting", "versions", "http", "gateway-calls", "gateway-isolation",
            "gateway-offline", "gateway-slow", "greedy", "upgrade", "supervisor", "checkins", "rehearse", "recovery",
            "ledger",
        ]
        let here = Set(Self.forms.map { $0.words[0] } + ["smtp", "resend", "push", "documents"])
        let all = LoadVerbs.tree.commands.filter { $0.path[0] == "load" }.map { $0.path[1] }
        #expect(Set(all) == elsewhere.union(here))
    }
}
