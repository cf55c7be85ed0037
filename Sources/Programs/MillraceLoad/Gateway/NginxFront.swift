import CommandKit
import FoundationEssentials
import Glibc
import Synchronization
import Threads

/// A real nginx before gateways, run without privileges: HTTP/2 in clear on a port of this machine, connections to the gateways kept.
/// For users there is deploy/nginx/gateway.conf; this one measures.
final class NginxFront: Sendable {
    let port: UInt16
    let directory: String
    private let child = Mutex<pid_t?>(nil)

    static func start(before gateways: [UInt16]) async throws -> NginxFront {
        let front = try NginxFront()
        try front.configure(gateways)
        LoadGround.atEnd { front.stop() }
        try await front.start()
        return front
    }

    private init() throws {
        port = try Loopback.freePort()
        directory = try Scratch.directory("nginx", isOpen: false)
    }

    private func configure(_ gateways: [UInt16]) throws {
        let servers = gateways.map { "server 127.0.0.1:\($0);" }.joined(separator: " ")
        let text = """
            daemon off; worker_processes 1; pid \(directory)/pid; error_log \(directory)/error.log warn;
            events { worker_connections 20000; }
            http {
                access_log off; keepalive_requests 1000000000; client_body_temp_path \(directory)/body; proxy_temp_path \(directory)/proxy;
                fastcgi_temp_path \(directory)/f; uwsgi_temp_path \(directory)/u; scgi_temp_path \(directory)/s;
                upstream gateways { \(servers) keepalive 64; keepalive_requests 1000000000; }
                server {
                    listen 127.0.0.1:\(port) http2;
                    location / {
                        proxy_pass http://gateways; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
                        proxy_buffering off; proxy_read_timeout 1h;
                    }
                }
            }

            """
        try text.write(toFile: directory + "/nginx.conf", atomically: true, encoding: .utf8)
    }

    private func start() async throws {
        guard let program = GatewayTool.path(of: "nginx") else {
            throw Failure("there is no program nginx", hint: "on Debian: apt install nginx")
        }
        let log = open(directory + "/log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        defer { close(log) }
        let words = ["-c", directory + "/nginx.conf", "-e", directory + "/error.log", "-p", directory]
        guard
            let pid = OwnProgram.spawn(
                words, environment: ["PATH": "/usr/sbin:/usr/bin:/bin"], output: log, instead: program)
        else { throw Failure("nginx could not be started") }
        child.withLock { $0 = pid }
        let deadline = ContinuousClock.now + .seconds(10)
        while true {
            if let client = Loopback.connection(to: port) {
                close(client)
                return
            }
            guard ContinuousClock.now < deadline else {
                let said = ["log", "error.log"].map {
                    (try? String(contentsOfFile: directory + "/\($0)", encoding: .utf8)) ?? ""
                }
                throw Failure("nginx did not come up: \(said.joined())")
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    func stop() {
        guard
            let pid = child.withLock({ child in
                defer { child = nil }; return child
            })
        else { return }
        kill(pid, SIGTERM)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }
}
