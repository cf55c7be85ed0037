import CYardstick
package import CommandKit
import Glibc
import LoadKit
import Threads
import Transfers

extension Command {
    package static let loadHTTP = scenario(
        "http",
        summary: "Measure the HTTP client beside a bare loop over libcurl",
        discussion: """
            Fetches one address again and again, many at a time: with the client that calls all providers, and with \
            a loop in C over the same libcurl that does nothing else. They take turns. Give the address of a server \
            on this machine that answers 200 with a short body; deploy/bench/http starts such servers, and prints \
            h2load's figures beside.
            """,
        flags: [
            .single("url", "URL", .text, environment: .none, help: "What to fetch."),
            .single(
                "http", "VERSION", .choice(["1", "2"]), environment: .none, fallback: "1",
                help: "HTTP/1.1, or HTTP/2 over TLS."),
            .count("requests", 1...100_000_000, 50_000, "How many in each round."),
            .count("in-flight", 1...10_000, 64, "How many at a time."),
            .count("rounds", 1...25, 5, "How many rounds."),
            .single(
                "certificates", "FILE", .path, environment: .none,
                help: "Certificates to trust instead of the system's."),
        ],
        examples: [
            Example("millrace load http --url http://127.0.0.1:8080/small", "HTTP/1.1, 64 at a time"),
            Example("millrace load http --url https://localhost:8443/small --http 2", "HTTP/2 over TLS"),
        ],
        settings: .unused
    ) { invocation in
        try await HTTPScenario(invocation: invocation).run()
    }
}

private struct HTTPScenario: Sendable {
    let invocation: Invocation

    private var requests: Int { invocation.count("requests") }
    private var inFlight: Int { invocation.count("in-flight") }
    private var isTwo: Bool { invocation.parsed.string("http") == "2" }

    func run() async throws -> ExitCode {
        guard let url = invocation.parsed.string("url") else {
            throw Failure(
                .misused, "load http needs --url", hint: "deploy/bench/http starts servers and measures them all")
        }
        var configuration = HTTPClient.Configuration()
        configuration.loop.trust = Trust(certificates: invocation.parsed.string("certificates"))
        let client = HTTPClient(configuration)
        let rates = try await WaysInTurn(invocation).take([
            ("bare libcurl", { _ in try await measureBare(url) }),
            ("millrace", { _ in try await measure(client, url) }),
        ])
        let (bare, ours) = (rates[0], rates[1])
        return invocation.report(
            "http",
            [
                .atLeast(
                    "HTTP/\(isTwo ? "2" : "1.1"), \(inFlight) at a time: \(Humane.count(Int(median(ours))))/s, share of bare libcurl's \(Humane.count(Int(median(bare))))/s",
                    0.7, measured: median(ours) / median(bare), unit: "×")
            ],
            figures: [
                ("http", .string(isTwo ? "2" : "1.1")), ("in_flight", .init(inFlight)), ("requests", .init(requests)),
                ("rounds", .init(ours.count)), ("per_second", .array(ours.map { .double($0) })),
                ("bare_per_second", .array(bare.map { .double($0) })),
            ])
    }

    private func measure(_ client: HTTPClient, _ url: String) async throws -> Double {
        var request = HTTPRequest("GET", url)
        request.version = isTwo ? .automatic : .http1
        let began = ContinuousClock.now
        do {
            try await withThrowingTaskGroup(of: Void.self) { [requests, inFlight, isTwo, request] group in
                for worker in 0..<inFlight {
                    let share = requests / inFlight + (worker < requests % inFlight ? 1 : 0)
                    group.addTask {
                        for _ in 0..<share {
                            let response = try await client.send(request)
                            guard response.status == 200 else {
                                throw Failure("the server answers \(response.status), not 200")
                            }
                            guard response.head.version == (isTwo ? "2" : "1.1") else {
                                throw Failure("the server speaks HTTP/\(response.head.version)")
                            }
                        }
                    }
                }
                try await group.waitForAll()
            }
        } catch let error as TransferError {
            throw Failure(error.sentence)
        }
        return Double(requests) / ((ContinuousClock.now - began) / .seconds(1))
    }

    private func measureBare(_ url: String) async throws -> Double {
        let certificates = invocation.parsed.string("certificates")
        let (requests, inFlight, isTwo) = (requests, inFlight, isTwo)
        let result = await Thread.run(name: "yardstick") {
            yardstick_requests(url, isTwo ? 2 : 1, certificates, Int32(inFlight), Int64(requests))
        }
        return try Yardstick.Result(result, "bare libcurl").perSecond
    }
}
