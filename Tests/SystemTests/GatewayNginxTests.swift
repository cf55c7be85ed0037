import Foundation
import Glibc
import MillraceQueues
import Postgres
import Signatures
import TestSupport
import Testing

/// deploy/nginx/gateway.conf in a real nginx, before two gateways.
@Suite(.enabled(if: NginxBeforeGateways.program != nil, "nginx is not installed: apt-get install nginx-light"))
struct GatewayNginxTests {
    @Test func `clients speak HTTP/2, events come at once, and none is lost when nginx reloads and a gateway dies`()
        async throws
    {
        try await withDatabase { database in
            let nginx = try await NginxBeforeGateways(database)
            do {
                try await Self.play(nginx, database)
                try await nginx.stop()
            } catch {
                let log = nginx.log
                try await nginx.stop()
                throw Failed(description: "\(error)\n\(log)")
            }
        }
    }

    /// The paths of all routes in the sources that end in a signed token.
    private static func linkPaths() throws -> [String] {
        var sources = URL(filePath: #filePath)
        for _ in 0..<3 { sources.deleteLastPathComponent() }
        let files = FileManager.default.enumerator(
            at: sources.appending(path: "Sources"), includingPropertiesForKeys: nil)
        var paths: Set<String> = []
        while let file = files?.nextObject() as? URL {
            guard file.pathExtension == "swift" else { continue }
            let text = try String(contentsOf: file, encoding: .utf8)
            for found in text.matches(of: #/Route\(\.[a-z]+, "(/v1/[^"]*{token})"/#) { paths.insert(String(found.1)) }
        }
        return paths.sorted()
    }

    private struct Failed: Error, CustomStringConvertible {
        let description: String
    }

    private static func play(_ nginx: NginxBeforeGateways, _ database: TestDatabase) async throws {
        let call = try await nginx.curl(
            [
                "-X", "POST", "-H", "Content-Type: application/json", "-d", "{}", "-w",
                "\n%{http_version} %{http_code}", nginx.url + "/v1/rpc/now",
            ])
        #expect(call.hasSuffix("\n2 200"), "\(call)")

        let connection = try await database.connect()
        try await connection.run(
            """
            insert into millrace.watch (person, every, grace, warnings, zone, state, last_checked_in, expires_at, wake_at, created_at)
            values ('ada', '7 days', '5 min', '{}', 'UTC', 'armed', now(), now() + interval '7 days', now() + interval '7 days', now())
            """)
        var made = 0
        func change() async throws {
            made += 1
            try await connection.run(
                "select millrace.check_in_set_interval('ada', interval '1 day' + interval '\(made) min', actor => 'ada')"
            )
        }

        let stream = try nginx.stream("/v1/me/events?topics=check-ins")
        try await eventually("the stream is open; it says: \(stream.text)") { stream.text.contains("event: ready") }
        try await change()
        // The stream is still open: nothing was held back.
        try await eventually("the event is there; it says: \(stream.text)") { stream.ids.count == 1 }
        #expect(stream.isOpen)

        try await nginx.reload()
        try await change()
        // Its old worker ends; meanwhile more happens.
        try await eventually("the old worker has ended the stream") { !stream.isOpen }
        try await change()
        nginx.killFirstGateway()
        try await change()

        var ids = stream.ids
        let last = try #require(ids.last)
        let again = try nginx.stream("/v1/me/events?topics=check-ins", headers: ["Last-Event-ID: \(last)"])
        try await eventually("all are there; it says: \(again.text)") {
            ids.count + again.ids.count >= made
        }
        again.end()
        ids += again.ids
        #expect(ids.count == made && ids == ids.sorted() && Set(ids).count == made)

        // One of the two is gone: calls go to the other, and nobody notices.
        for _ in 0..<20 {
            let answer = try await nginx.curl(
                [
                    "-o", "/dev/null", "-X", "POST", "-H", "Content-Type: application/json", "-d", "{}", "-w",
                    "%{http_code}", nginx.url + "/v1/rpc/now",
                ])
            #expect(answer == "200")
        }
        #expect(!nginx.accessLog.contains("topics=") && nginx.accessLog.contains("/v1/me/events"))

        // Who knows a link may use it: no path with one is in the log, also not of a link that nobody serves yet.
        let links = try linkPaths() + ["/v1/invitations/{token}"]
        #expect(links.count > 5 && links.contains("/v1/approvals/{token}"), "\(links)")
        for link in links {
            let path = link.replacing("{token}", with: "the-secret-of-a-link")
            for url in [path, path + "?a=b", path + "/more"] {
                _ = try await nginx.curl(["-o", "/dev/null", nginx.url + url])
            }
            let shown = link.replacing("{token}", with: "...")
            try await eventually("the log has \(shown)") { nginx.accessLog.contains(" \(shown) ") }
        }
        #expect(!nginx.accessLog.contains("the-secret-of-a-link"))
        #expect(nginx.accessLog.contains("/v1/rpc/now"))
        await connection.close()
    }
}

/// The configuration for users, with the test's own addresses and certificate.
final class NginxBeforeGateways: @unchecked Sendable {  // used by one test at a time
    static let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx", "/usr/bin/nginx"].first {
        FileManager.default.isExecutableFile(atPath: $0)
    }

    private static let secret = "a-secret-of-the-sign-in-service-for-tests"
    private let directory = FileManager.default.temporaryDirectory.appending(path: "nginx-\(UUID().uuidString)").path
    private let gateways: [MillraceProcess]
    private let process = Process()
    private let port: UInt16
    private let roles: String
    private let office: Connection

    var url: String { "https://localhost:\(port)" }
    private var token: String {
        let now = Int(Date().timeIntervalSince1970)
        let parts = [#"{"alg":"HS256","typ":"JWT"}"#, #"{"sub":"ada","aud":"authenticated","exp":\#(now + 3600)}"#]
        let message = parts.map { Base64URL.encode(Array($0.utf8)) }.joined(separator: ".")
        return message + "." + Base64URL.encode(HMAC.sha256(Array(message.utf8), key: Array(Self.secret.utf8)))
    }

    init(_ database: TestDatabase) async throws {
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        let roles = TestCluster.name("nginx")
        self.roles = roles
        office = try await database.connect()
        try await office.run("create role \(roles)_client nologin")
        try await office.run("create role \(roles)_login login")
        try await office.run("grant \(roles)_client to \(roles)_login")
        _ = try await Migrator.ofAllRooms(roles: [("client", "\(roles)_client"), ("gateway", "\(roles)_login")])
            .migrate(
                on: office)
        let login = database.url + (database.url.contains("?") ? "&" : "?") + "user=\(roles)_login"
        let ports = try (0..<3).map { _ in UInt16(try freePort()) }
        port = ports[2]
        gateways = try ports[..<2].map { port in
            try MillraceProcess(
                ["gateway", "--listen", "127.0.0.1:\(port)"], database: login,
                environment: ["MILLRACE_GATEWAY_JWT_SECRET": Self.secret, "MILLRACE_ROLE_CLIENT": "\(roles)_client"])
        }
        for (gateway, port) in zip(gateways, ports) {
            try await eventually("a gateway is ready; it says: \(gateway.output)") {
                try await Program.run("curl", ["-sf", "http://127.0.0.1:\(port)/readyz"]).status == 0
                    || !gateway.isRunning
            }
        }
        try await configure(ports)
        process.executableURL = Self.program.map { URL(filePath: $0) }
        process.arguments = ["-c", directory + "/nginx.conf", "-e", directory + "/error.log", "-p", directory]
        process.standardError = FileHandle.nullDevice
        try process.run()
        try await eventually("nginx is up: \(log)") {
            try await Program.run("curl", ["-skf", "\(url)/livez"]).status == 0
        }
    }

    private func configure(_ ports: [UInt16]) async throws {
        try await Program.check(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
                "/CN=localhost",
            ]
                + ["-keyout", directory + "/key.pem", "-out", directory + "/certificate.pem"])
        var root = URL(filePath: #filePath)
        for _ in 0..<3 { root.deleteLastPathComponent() }
        var text = try String(contentsOf: root.appending(path: "deploy/nginx/gateway.conf"), encoding: .utf8)
        for (theirs, ours) in [
            ("/etc/nginx/certificates/api.example.com.pem", directory + "/certificate.pem"),
            ("/etc/nginx/certificates/api.example.com.key", directory + "/key.pem"),
            ("/var/log/nginx/", directory + "/"), ("listen 443", "listen 127.0.0.1:\(port)"),
            ("    listen [::]:443 ssl http2;\n", ""), ("127.0.0.1:8490", "127.0.0.1:\(ports[0])"),
            ("127.0.0.1:8491", "127.0.0.1:\(ports[1])"),
        ] {
            #expect(text.contains(theirs), "the configuration has \(theirs)")
            text = text.replacing(theirs, with: ours)
        }
        try text.write(toFile: directory + "/gateway.conf", atomically: true, encoding: .utf8)
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map { "\($0)_temp_path \(directory)/\($0);" }
        try """
        daemon off; worker_processes 1; worker_shutdown_timeout 1s; pid \(directory)/pid; error_log \(directory)/error.log info;
        events {}
        http { \(paths.joined(separator: " ")) include \(directory)/gateway.conf; }

        """.write(toFile: directory + "/nginx.conf", atomically: true, encoding: .utf8)
    }

    var log: String {
        let errors = (try? String(contentsOfFile: directory + "/error.log", encoding: .utf8)) ?? ""
        return errors.suffix(3000) + gateways.map { $0.output.suffix(2000) }.joined(separator: "\n")
    }

    var accessLog: String { (try? String(contentsOfFile: directory + "/millrace.log", encoding: .utf8)) ?? "" }

    func curl(_ arguments: [String]) async throws -> String {
        try await Program.check("curl", ["-sk", "--http2", "-H", "Authorization: Bearer \(token)"] + arguments)
    }

    func stream(_ path: String, headers: [String] = []) throws -> CurlStream {
        let words = headers.flatMap { ["-H", $0] } + ["-H", "Authorization: Bearer \(token)"]
        return try CurlStream(
            ["-skN", "--http2"] + words + [url + path], output: directory + "/stream-\(UUID().uuidString)")
    }

    /// A new worker takes what comes from now on.
    func reload() async throws {
        let before = errors("start worker process ")
        kill(process.processIdentifier, SIGHUP)
        try await eventually("nginx has reloaded: \(log)") { errors("start worker process ") > before }
    }

    private func errors(_ words: String) -> Int {
        let text = (try? String(contentsOfFile: directory + "/error.log", encoding: .utf8)) ?? ""
        return text.components(separatedBy: words).count - 1
    }

    func killFirstGateway() { gateways[0].signal(SIGKILL) }

    func stop() async throws {
        kill(process.processIdentifier, SIGTERM)
        try await eventually("nginx has ended") { !process.isRunning }
        for gateway in gateways {
            gateway.signal(SIGKILL)
            _ = try await gateway.ended()
        }
        try await office.run("drop owned by \(roles)_login, \(roles)_client")
        try await office.run("drop role \(roles)_login, \(roles)_client")
        await office.close()
        try? FileManager.default.removeItem(atPath: directory)
    }
}

/// A stream that curl holds open, by HTTP/2.
final class CurlStream: @unchecked Sendable {  // used by one test at a time
    private let process = Process()
    private let path: String

    init(_ arguments: [String], output: String) throws {
        path = output
        _ = FileManager.default.createFile(atPath: output, contents: nil)
        process.executableURL = URL(filePath: "/usr/bin/env")
        process.arguments = ["curl"] + arguments
        process.standardOutput = try FileHandle(forWritingTo: URL(filePath: output))
        process.standardError = FileHandle.nullDevice
        try process.run()
    }

    deinit { end() }

    var isOpen: Bool { process.isRunning }
    var text: String { (try? String(contentsOfFile: path, encoding: .utf8)) ?? "" }

    /// The ids of the changes that have come whole.
    var ids: [Int] {
        text.components(separatedBy: "\n\n").dropLast().filter { $0.contains("event: change") }.compactMap { event in
            event.split(separator: "\n").first { $0.hasPrefix("id: ") }.flatMap { Int($0.dropFirst(4)) }
        }
    }

    func end() {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
    }
}
