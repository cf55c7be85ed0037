import Fakes
import Foundation
import Glibc
import TestSupport

/// Programs of Debian's that these tests need.
enum Programs {
    static let nginx = find("nginx")
    static let nghttpd = find("nghttpd")
    static let openssl = find("openssl")
    static let python = find("python3")

    private static func find(_ name: String) -> String? {
        ["/usr/sbin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/"].map { $0 + name }.first {
            access($0, X_OK) == 0
        }
    }
}

/// A certificate for 127.0.0.1, localhost and hooks.example, and the authority that made it, new for each run.
struct Certificates {
    let directory: String
    var authority: String { "\(directory)/ca.pem" }
    var certificate: String { "\(directory)/server.pem" }
    var key: String { "\(directory)/server.key" }

    static func make() async throws -> Certificates {
        let directory = try temporaryDirectory()
        let made = Certificates(directory: directory)
        try write("subjectAltName=DNS:localhost,DNS:hooks.example,IP:127.0.0.1\n", to: "\(directory)/names")
        let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
        try await Program.check(
            "openssl",
            ["req", "-x509"] + key + ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=Test", "-days", "2"],
            in: directory)
        try await Program.check(
            "openssl", ["req", "-new"] + key + ["-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=server"],
            in: directory)
        try await Program.check(
            "openssl",
            [
                "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-out",
                "server.pem", "-days", "2", "-extfile", "names",
            ], in: directory)
        return made
    }
}

/// Runs `body` beside a program, once its port answers; ends the program afterwards.
func withProgram<Value>(
    _ program: String, _ arguments: [String], port: Int, environment: [String: String] = [:],
    _ body: () async throws -> Value
) async throws -> Value {
    let process = Process()
    process.executableURL = URL(filePath: program)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    // Not `waitUntilExit`: it would hold a thread of the pool, of which there may be two.
    func end() async throws {
        // A child of a thread of the pool is born with TERM blocked.
        kill(process.processIdentifier, SIGKILL)
        try await eventually("\(program) ends") { !process.isRunning }
    }
    do {
        try await eventually("\(program) answers") { canConnect(port) }
        let value = try await body()
        try await end()
        return value
    } catch {
        try await end()
        throw error
    }
}

func canConnect(_ port: Int) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var name = sockaddr_in()
    name.sin_family = sa_family_t(AF_INET)
    name.sin_port = in_port_t(port).bigEndian
    name.sin_addr.s_addr = in_addr_t(0x7f00_0001).bigEndian
    return withUnsafePointer(to: &name) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
}

/// nginx on a TLS port with HTTP/2 and one without TLS, serving 64 MB as /large and a few bytes as /small.
struct WebServer {
    let tls: String
    let plain: String
    let certificates: Certificates
    let port: Int
}

func withNginx<Value>(_ body: (WebServer) async throws -> Value) async throws -> Value {
    guard let nginx = Programs.nginx else { throw Failed(description: "nginx is not installed") }
    let certificates = try await Certificates.make()
    let directory = certificates.directory
    let (secure, plain) = (try freePort(), try freePort())
    try write("a few bytes", to: "\(directory)/small")
    try await Program.check("truncate", ["-s", "64M", "\(directory)/large"])
    try write(
        """
        daemon off; master_process off; pid \(directory)/pid; error_log \(directory)/error;
        \(geteuid() == 0 ? "user root;" : "")
        events { worker_connections 1000; }
        http {
            access_log off; client_body_temp_path \(directory)/body; proxy_temp_path \(directory)/p;
            fastcgi_temp_path \(directory)/f; uwsgi_temp_path \(directory)/u; scgi_temp_path \(directory)/s;
            client_max_body_size 100m; keepalive_requests 100000;
            ssl_certificate \(certificates.certificate); ssl_certificate_key \(certificates.key);
            server {
                listen 127.0.0.1:\(secure) ssl http2; listen 127.0.0.1:\(plain);
                root \(directory);
                location = /agent { return 200 $http_user_agent; }
                location = /away { return 302 http://127.0.0.1:\(plain)/small; }
                location = /here { return 302 /small; }
                location = /again { return 302 /again; }
            }
        }
        """, to: "\(directory)/conf")
    return try await withProgram(
        nginx, ["-c", "\(directory)/conf", "-p", directory, "-e", "\(directory)/error"], port: secure
    ) {
        try await body(
            WebServer(
                tls: "https://127.0.0.1:\(secure)", plain: "http://127.0.0.1:\(plain)", certificates: certificates,
                port: secure))
    }
}
