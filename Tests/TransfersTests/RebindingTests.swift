import TestSupport
import Testing

@testable import Transfers

@Suite struct RebindingTests {
    /// A name server of our own tells another address each time: a public one, then loopback.
    @Test func `a name whose address changes is refused by the address that it has when it is connected to`()
        async throws
    {
        let certificates = try await Certificates.make()
        let network = TinyNetwork(answers: [[93, 184, 216, 34], [127, 0, 0, 1]])
        let problem = Locked<String?>(nil)
        let directory = certificates.directory
        try write("inside", to: "\(directory)/small")
        try write(
            """
            daemon off; master_process off; pid \(directory)/pid; events {}
            http {
                access_log \(directory)/reached; keepalive_timeout 0;
                ssl_certificate \(certificates.certificate); ssl_certificate_key \(certificates.key);
                server { listen 0.0.0.0:8443 ssl; root \(directory); }
            }
            """, to: "\(directory)/conf")
        var configuration = HTTPClient.Configuration.strict()
        configuration.loop.trust = Trust(certificates: certificates.authority)
        configuration.loop.prepare = {
            do {
                try network.enter()
                let nginx = Programs.nginx ?? "nginx"
                let command = "\(nginx) -c \(directory)/conf -p \(directory) -e \(directory)/error"
                guard shell("\(command) & echo $! > \(directory)/process") == 0 else {
                    throw Failed(description: "nginx does not start")
                }
                for _ in 0..<400 where !canConnect(8443) { pause(milliseconds: 20) }
            } catch {
                problem.withLock { $0 = "\(error)" }
            }
        }
        defer { _ = shell("kill -9 $(cat \(directory)/process)") }
        // Every connection looks the name up again.
        configuration.loop.nameLife = .zero
        let client = HTTPClient(configuration)
        var request = HTTPRequest("GET", "https://hooks.example:8443/small")
        request.limits.connect = .seconds(20)
        let first = try await attempt { try await client.send(request) }
        if let problem = problem.withLock({ $0 }) {
            // Only root may make networks. The refusal through the resolve hook is tested in RefusalTests all the same.
            print("SKIPPED: a name server of our own needs a network of its own, and the system refuses: \(problem)")
            return
        }
        // The name was public then, and the request went through.
        let response = try first.get()
        #expect(response.status == 200 && response.text == "inside")
        for _ in 0..<3 {
            let again = try await attempt { try await client.send(request) }
            guard case .failure(let error) = again else {
                Issue.record("loopback was reached")
                return
            }
            #expect(error.kind == .refused && error.stage == .unsent)
        }
        #expect(network.questions >= 4)
        // It listens on loopback too, and has seen one request.
        let reached = String(decoding: try bytes(of: "\(directory)/reached"), as: UTF8.self)
        #expect(reached.split(separator: "\n").count == 1)
    }

    private func attempt(_ body: () async throws -> HTTPResponse) async throws -> Result<HTTPResponse, TransferError> {
        do {
            return .success(try await body())
        } catch let error as TransferError {
            return .failure(error)
        }
    }
}
