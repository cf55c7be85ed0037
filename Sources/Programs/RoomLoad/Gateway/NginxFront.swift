import CommandKit
import FoundationEssentials
import Glibc
import LoadKit

/// A real nginx before gateways, run without privileges: HTTP/2 in clear on a port of this machine, connections to the gateways kept.
/// For users there is deploy/nginx/gateway.conf; this one measures.
final class NginxFront: Sendable {
    let port: UInt16
    let directory: String

    static func start(before gateways: [UInt16]) async throws -> NginxFront {
        let front = try NginxFront()
        try front.configure(gateways)
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
            daemon off; worker_processes 1; pid \(directory)/pid; error_log \(directory)/log warn;
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
        let child = try StartedProcess(
            "nginx", ["-c", directory + "/nginx.conf", "-e", directory + "/log", "-p", directory],
            environment: ["PATH": "/usr/sbin:/usr/bin:/bin"], log: directory + "/log", program: program)
        try await Patience.wait(.seconds(10), every: .milliseconds(20), else: "nginx did not come up: \(child.said)") {
            guard let client = Loopback.connection(to: port) else { return false }
            close(client)
            return true
        }
    }
}
