import CYardstick
package import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import Notices
import Postgres
import Signatures
import Supervision
import Telemetry
import Threads
import Transfers

extension Command {
    package static let loadPush = scenario(
        "push",
        summary: "Measure pushes beside a bare loop over libcurl, and the whole way from a commit to Apple's answer",
        discussion: """
            Sends pushes to one server that speaks HTTP/2 over TLS: with the adapter that alarms use, and with a \
            loop in C over the same libcurl that only sends the same bytes. They take turns. Then, in a Postgres of \
            its own, it measures the whole way: notices in bulk, and alarms one by one, from their commit until the \
            database has the answer. Give the address of a server on this machine that answers 200; \
            deploy/bench/apns starts one.
            """,
        flags: [
            .single("url", "URL", .text, environment: .none, help: "Where the server is."),
            .count("pushes", 1...100_000_000, 20_000, "How many in each round."),
            .count("in-flight", 1...10_000, 64, "How many at a time."),
            .count("rounds", 1...25, 5, "How many rounds."),
            .count("notices", 0...10_000_000, 10_000, "How many notices go the whole way; 0 for none."),
            .count("alarms", 1...100_000, 500, "How many alarms go the whole way, one by one."),
            .single(
                "certificates", "FILE", .path, environment: .none,
                help: "Certificates to trust instead of the system's."),
        ],
        examples: [
            Example("millrace load push --url https://localhost:8443 --certificates ca.pem", "HTTP/2, 64 at a time")
        ],
        settings: .unused
    ) { invocation in
        try await PushScenario(invocation: invocation).run()
    }
}

private struct PushScenario: Sendable {
    let invocation: Invocation

    private static let device = "740f4707bebcf74f9b7c25d48e3358945f6aa01da5ddb387462c7eaf61bb78ad"

    private var pushes: Int { invocation.count("pushes") }
    private var inFlight: Int { invocation.count("in-flight") }

    /// A token without a fleet, because only the adapter is measured.
    private struct OneToken: TokenSource {
        let text: String
        func current(for call: Call) async throws -> String { text }
        func refuse(_ token: String) {}
    }

    func run() async throws -> ExitCode {
        guard let url = invocation.parsed.string("url") else {
            throw Failure(.misused, "load push needs --url", hint: "deploy/bench/apns starts a server and measures it")
        }
        var configuration = HTTPClient.Configuration()
        configuration.loop.trust = Trust(certificates: invocation.parsed.string("certificates"))
        let client = HTTPClient(configuration)
        // The server does not check the token.
        var apns = APNsProvider.Configuration(
            key: SigningKey.newP256(), keyBytes: Array("load".utf8), keyID: "LOAD123456", team: "LOAD123456",
            topic: "com.example.app")
        apns.base = url
        let token = apns.token(at: Int64(Date().timeIntervalSince1970))
        let provider = APNsProvider(apns, client: client, tokens: OneToken(text: token))
        let rates = try await WaysInTurn(invocation).take([
            ("bare libcurl", { _ in try await measureBare(provider, token: token, url: url) }),
            ("millrace", { _ in try await measure(provider) }),
        ])
        let (bare, ours) = (rates[0], rates[1])
        var bars = [
            Bar.atLeast(
                "pushes over HTTP/2, \(inFlight) at a time: \(Humane.count(Int(median(ours))))/s, share of bare libcurl's \(Humane.count(Int(median(bare))))/s",
                0.7, measured: median(ours) / median(bare), unit: "×")
        ]
        var figures: [(String, JSONValue)] = [
            ("in_flight", .init(inFlight)), ("pushes", .init(pushes)), ("rounds", .init(ours.count)),
            ("per_second", .array(ours.map { .double($0) })), ("bare_per_second", .array(bare.map { .double($0) })),
        ]
        if let notices = invocation.parsed.integer("notices"), notices > 0 {
            let way = try await PushWay(
                invocation: invocation, provider: { [apns] in try APNsProvider(apns, client: client, pool: $0) }
            )
            .measure(notices: notices, alarms: invocation.count("alarms"))
            invocation.console.note(
                "the whole way: \(Humane.count(Int(way.perSecond)))/s from rows to recorded answers; an alarm's commit to its recorded answer p50 \(Humane.decimal(way.p50, places: 1)) ms, p99 \(Humane.decimal(way.p99, places: 1)) ms"
            )
            bars.append(
                .atMost("an alarm, from its commit to the recorded answer, p50", 100, measured: way.p50, unit: "ms"))
            bars.append(.atMost("the same, p99", 1000, measured: way.p99, unit: "ms"))
            figures += [
                ("way_per_second", .double(way.perSecond)), ("alarm_p50_ms", .double(way.p50)),
                ("alarm_p99_ms", .double(way.p99)),
            ]
        }
        return invocation.report("push", bars, figures: figures)
    }

    private var sending: Sending {
        Sending(
            id: UUID().uuidString.lowercased(), person: "ada", kind: "alarm.raised", data: Facts(["name": "Ben"]),
            channel: "push", address: Self.device, isAlarm: true, platform: "apns")
    }

    private var words: NoticeWords {
        NoticeWords(title: "Ben may need help", body: "Ben has not checked in as expected.")
    }

    private func measure(_ provider: APNsProvider) async throws -> Double {
        let supervisor = Supervisor(Supervisor.Options(), log: .silent)
        let began = ContinuousClock.now
        try await withThrowingTaskGroup(of: Void.self) { [pushes, inFlight, words] group in
            for worker in 0..<inFlight {
                let share = pushes / inFlight + (worker < pushes % inFlight ? 1 : 0)
                group.addTask {
                    for _ in 0..<share {
                        let sending = self.sending
                        let delivery = try await supervisor.call("apns", isVital: true) { call in
                            await provider.send(sending, words, call: call)
                        }
                        if let fault = delivery.fault { throw Failure("the server does not take pushes: \(fault)") }
                    }
                }
            }
            try await group.waitForAll()
        }
        return Double(pushes) / ((ContinuousClock.now - began) / .seconds(1))
    }

    private func measureBare(_ provider: APNsProvider, token: String, url: String) async throws -> Double {
        let request = provider.request(for: sending, words, token: token)
        guard case .bytes(let body) = request.body else { throw Failure("a push has a body") }
        let headers = request.headers.pairs.map { "\($0.name): \($0.value)" }.joined(separator: "\n")
        let text = String(decoding: body, as: UTF8.self)
        let certificates = invocation.parsed.string("certificates")
        let (pushes, inFlight, address) = (pushes, inFlight, request.url)
        let result = await Thread.run(name: "yardstick") {
            yardstick_posts(address, certificates, headers, text, Int32(inFlight), Int64(pushes))
        }
        return try Yardstick.Result(result, "bare libcurl").perSecond
    }
}
