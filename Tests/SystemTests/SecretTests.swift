import Clusters
import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// What the kernel shows of a worker to processes that can read /proc.
@Suite struct SecretTests {
    private static let secrets = [
        "MILLRACE_SECRET": "what-signs-all-the-links", "MILLRACE_TOKEN": "what-all-callers-must-send",
        "MILLRACE_ENCRYPTION_KEY":
            "k1:\(Data("thirty-two-bytes-of-what-encrypts".utf8.prefix(32)).base64EncodedString())",
        "MILLRACE_MAIL_SMTP_URL": "smtps://user:what-the-relay-asks@relay.example",
        "RESEND_WEBHOOK_SECRET": "whsec_\(Data("what-the-provider-signs-with".utf8).base64EncodedString())",
        "PGPASSWORD": "what-postgres-asks", "OTHER_SERVICE_TOKEN": "what-another-asks",
        "OTHER_URL": "https://user:what-a-third-asks@other.example/",
    ]

    /// 1. A worker is started, and finds its secrets in the environment. 2. They are in it no more. 3. Its connections are cut; it makes
    /// others, with the password that it had read.
    @Test func `a worker's secrets are gone from its environment, and it still has them`() async throws {
        try await withCluster { cluster in
            let owner = try await Connection.open(ConnectionOptions(location: cluster.url()))
            _ = try await Migrator.ofAllRooms().migrate(on: owner)
            let password = try #require(Self.secrets["PGPASSWORD"])
            try await owner.run("create role app login superuser password '\(password)'")
            let rules = try await owner.value("current_setting('hba_file')") ?? ""
            try Data("local all millrace trust\nlocal all all scram-sha-256\n".utf8).write(to: URL(filePath: rules))
            try await owner.run("select pg_reload_conf()")
            var environment = Self.secrets
            environment["PGHOST"] = try await owner.value("current_setting('unix_socket_directories')")
            environment["PGPORT"] = try await owner.value("current_setting('port')")
            environment["PGUSER"] = "app"
            environment["EMAIL_FROM_ADDRESS"] = "house@app.example"
            environment["PGDATABASE"] = "millrace"
            let key = "k2:\(Data(repeating: 7, count: 32).base64EncodedString())"
            let worker = try await MillraceProcess.worker(
                "secretive", database: "", ["--encryption-key", key], environment: environment)
            try #require(worker.isRunning, "\(worker.output)")
            let shown = try String(
                decoding: Data(contentsOf: URL(filePath: "/proc/\(worker.pid)/environ")), as: UTF8.self)
            let line = try String(
                decoding: Data(contentsOf: URL(filePath: "/proc/\(worker.pid)/cmdline")), as: UTF8.self)
            for (name, secret) in Self.secrets {
                #expect(!shown.contains(secret) && !shown.contains(name + "="), "\(name)")
            }
            #expect(!line.contains(key) && line.contains("--encryption-key"), "\(line)")
            #expect(shown.contains("PGUSER=app") && shown.contains("PATH="))
            let cut = try await owner.int(
                "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = 'app'")
            #expect(cut > 0)
            let job = try await owner.value("millrace.enqueue('practice.echo', '1')") ?? ""
            try await eventually("a job has run; the worker says: \(worker.output)") {
                try await owner.value("select state from millrace.job(\(job))") == "succeeded"
            }
            worker.signal(SIGTERM)
            #expect(try await worker.ended() == 0)
            await owner.close()
        }
    }
}
