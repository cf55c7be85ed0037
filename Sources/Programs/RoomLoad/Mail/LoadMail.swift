package import CommandKit
import Faults
import FoundationEssentials
import LoadKit
import Mail
import Postgres
import Workers

extension Command {
    package static let loadMail = scenario(
        "mail",
        summary:
            "Show how mail fills its requests, lets urgent mail pass, and goes another way when a provider is down",
        discussion: """
            With a Postgres of its own, a worker, and providers that are part of this process. fill has messages \
            wait for a provider that allows 2 requests of 100 messages a second. lanes has a campaign use all of 10 \
            requests a second while password resets are handed in a second apart. down has the first provider refuse \
            everything, and then recover. way goes the whole way from mail_send to an SMTP server's 250, rendered \
            and recorded; it is part of all when --smtp names a server. memory has a worker process send 100 mails, \
            each with 25 MiB attached, to the fake of Resend at --resend; it needs 3 GB in /tmp.
            """,
        flags: [
            .single(
                "part", "NAME", .choice(["all", "fill", "lanes", "down", "way", "memory"]), environment: .none,
                fallback: "all",
                help: "Which part to run."),
            .count("messages", 100...1_000_000, 100_000, "Messages of the campaign."),
            .single(
                "smtp", "HOST:PORT", .text, environment: .none,
                help: "A mail server that keeps nothing, such as postfix's smtp-sink; never a real one."),
            .single(
                "resend", "PORT", .integer(1...65_535), environment: .none,
                help: "The fake of Resend, on this machine; FakeResendServer prints its port."),
            .count("slots", 2...10_000, 100, "Slots of the worker."),
            .count("resets", 3...3600, 200, "Password resets."),
        ],
        examples: [
            Example("millrace load mail --part fill", "2,000 messages, about ten seconds"),
            Example("millrace load mail --part lanes --messages 5000 --resets 20", "resets beside a small campaign"),
        ]
    ) { invocation in
        let part = invocation.parsed.string("part") ?? "all"
        var bars: [Bar] = []
        var figures: [(String, JSONValue)] = []
        let load = MailLoad(invocation: invocation)
        if part == "all" || part == "fill" { try await load.fill(&bars, &figures) }
        if part == "all" || part == "lanes" {
            try await load.lanes(
                messages: invocation.count("messages"),
                resets: invocation.count("resets"), &bars, &figures)
        }
        if part == "all" || part == "down" { try await load.down(&bars, &figures) }
        if part == "memory" {
            guard let port = invocation.parsed.integer("resend") else {
                throw Failure(
                    .misused, "memory needs the fake of Resend",
                    hint: "start it with `swift run FakeResendServer`, and name its port with --resend")
            }
            try await MailMemory(invocation: invocation, port: port).run(&bars, &figures)
        }
        let server = invocation.parsed.string("smtp")
        if part == "way", server == nil {
            throw Failure(.misused, "way needs a server", hint: "name it with --smtp; deploy/bench/smtp starts one")
        }
        if let server, part == "all" || part == "way" {
            try await load.way(
                messages: min(invocation.parsed.integer("messages") ?? 5000, part == "all" ? 5000 : .max),
                to: server,
                &bars, &figures)
        }
        return invocation.report("mail", bars, figures: figures)
    }
}

struct MailLoad {
    let invocation: Invocation

    private func with(
        _ providers: [LoadMailProvider], rate: Double?,
        _ body: @Sendable @escaping (MailWorld, Connection) async throws -> Void
    ) async throws {
        let world = try await MailWorld(invocation, providers, rate: rate)
        let connection = try await world.connect()
        try await body(world, connection)
        await connection.close()
        await world.close()
    }

    /// This many mails that nobody waits for.
    static func campaign(
        _ count: Int, on connection: Connection, progress: (Int) -> Void = { _ in }
    ) async throws(PostgresError) {
        for first in stride(from: 1, through: count, by: 1000) {
            let last = min(first + 999, count)
            try await connection.execute(
                """
                select millrace.mail_send(array['a' || n || '@example.org'], 'News', 'The text of message ' || n, priority => 'low')::text
                  from generate_series($1::int, $2::int) n
                """, [.int4(Int32(first)), .int4(Int32(last))], deadline: .seconds(120)
            )
            progress(last)
        }
    }

    func fill(_ bars: inout [Bar], _ figures: inout [(String, JSONValue)]) async throws {
        let provider = LoadMailProvider("resend", batch: 100, latency: .milliseconds(150))
        let count = min(2000, invocation.count("messages"))
        try await with([provider], rate: 2) { world, connection in
            try await Self.campaign(count, on: connection)
            try await world.working {
                await world.worker.hasStarted()
                _ = try await Patience.waited(.seconds(60), every: .milliseconds(10)) { provider.count >= count }
            }
        }
        let seen = provider.seen
        let took = Self.span(seen.requests)
        bars.append(
            .atMost("\(Humane.count(count)) messages at 2 requests a second leave in", 15, measured: took, unit: "s"))
        bars.append(
            .atMost("requests in any second", 3, measured: Double(Self.busiestSecond(seen.requests)), unit: ""))
        bars.append(
            .atMost("lost or sent twice", 0, measured: Double(count - seen.came.count + seen.twice), unit: "messages"))
        figures += [("fill_requests", .int(seen.requests.count)), ("fill_seconds", .double(took))]
    }

    func lanes(
        messages: Int, resets: Int, _ bars: inout [Bar], _ figures: inout [(String, JSONValue)]
    ) async throws {
        let provider = LoadMailProvider("resend", batch: 1, latency: .milliseconds(50))
        let console = invocation.console
        let (waits, before) = try await withCheckedWorld(provider, messages: messages, resets: resets, console)
        let sorted = waits.sorted()
        bars.append(
            .atMost("password resets handed over, p99", 1, measured: percentile(sorted, 0.99), unit: "s"))
        let seen = provider.seen
        let span = Self.span(seen.requests)
        bars.append(
            .atLeast(
                "requests a second used of the 10 allowed", 8,
                measured: span > 0 ? Double(seen.requests.count) / span : 0, unit: "/s"))
        figures += [
            ("campaign_waiting", .int(before)), ("resets", .int(waits.count)),
            ("reset_p50_s", .double(percentile(sorted, 0.5))), ("reset_max_s", .double(sorted.last ?? .nan)),
        ]
    }

    private func withCheckedWorld(
        _ provider: LoadMailProvider, messages: Int, resets: Int, _ console: Console
    ) async throws -> (waits: [Double], waiting: Int) {
        let world = try await MailWorld(invocation, [provider], rate: 10)
        let connection = try await world.connect()
        console.detail("handing in \(messages) messages")
        try await Self.campaign(messages, on: connection)
        let waits = try await world.working { () -> [Double] in
            await world.worker.hasStarted()
            _ = try await Patience.waited(.seconds(30), every: .milliseconds(10)) { provider.count >= 20 }
            var waits: [Double] = []
            for number in 0..<resets {
                let next = ContinuousClock.now + .seconds(1)
                let id = try await connection.query(
                    "select millrace.mail_password_reset($1, 'tok', null)::text", [.text("r\(number)@example.org")]
                ) { row throws(PostgresError) in try row.string(0) }.first.flatMap { UUID(uuidString: $0) }
                let committed = ContinuousClock.now
                guard let id else { continue }
                let came = try await Patience.waited(.seconds(30), every: .milliseconds(10)) {
                    provider.seen.came[id] != nil
                }
                waits.append(
                    came ? (provider.seen.came[id].map { $0 - committed } ?? .seconds(30)) / .seconds(1) : 30)
                try await Task.sleep(until: next)
            }
            return waits
        }
        await connection.close()
        await world.close()
        return (waits, messages - provider.count)
    }

    func down(_ bars: inout [Bar], _ figures: inout [(String, JSONValue)]) async throws {
        let first = LoadMailProvider("resend", batch: 1, latency: .milliseconds(20))
        let second = LoadMailProvider("smtp", batch: 1, latency: .milliseconds(20))
        // A refusal that does not say whether another would fare better: it is tried again here until the circuit opens.
        first.fail(Fault(.unavailable, code: "503", "the service is down"))
        var switched = 0
        var back: Date?
        let world = try await MailWorld(invocation, [first, second], rate: nil)
        let connection = try await world.connect()
        (switched, back) = try await world.working { () -> (Int, Date?) in
            await world.worker.hasStarted()
            for number in 0..<40 {
                try await connection.execute(
                    "select millrace.mail_send(array[$1], 's', 't')::text", [.text("d\(number)@example.org")]
                )
                try await Task.sleep(for: .milliseconds(50))
            }
            _ = try await Patience.waited(.seconds(30), every: .milliseconds(10)) { second.count >= 40 }
            let rows =
                try await connection.int(
                    "select count(*) from millrace.mail_analytics where type = 'serviceSwitched'"
                )
            first.fail(nil)
            // Forty a second, so that a share can be told from nothing.
            _ = try await Patience.waited(.seconds(60), every: .milliseconds(10)) {
                try await connection.execute("select millrace.mail_send(array['b@example.org'], 's', 't')::text")
                try await Task.sleep(for: .milliseconds(15))
                return try await MailRamp.began("resend", on: connection) != nil
            }
            let came = try await MailRamp.began("resend", on: connection)
            return (rows, came)
        }
        await connection.close()
        await world.close()
        let third = first.seen.refusals.dropFirst(2).first
        let next = third.flatMap { third in second.seen.came.values.filter { $0 >= third }.min().map { $0 - third } }
        bars.append(
            .atMost(
                "third refusal → the next message leaves by the second provider", 2,
                measured: next.map { $0 / .seconds(1) } ?? .infinity, unit: "s"))
        bars.append(.atMost("switches told while it is down", 1, measured: Double(switched), unit: "rows"))
        bars.append(.atLeast("the first provider is used again", 1, measured: back == nil ? 0 : 1, unit: ""))
        if let back {
            let ramp = MailRamp(
                began: back, length: world.rampStep, first: first.seen.requests, second: second.seen.requests)
            bars.append(
                .atMost(
                    "calls in any step of its way back, above our ramp", 0,
                    measured: max(0, ramp.steps.map(\.above).max() ?? 0), unit: ""))
            figures.append(
                (
                    "ramp",
                    .array(
                        ramp.steps.map {
                            ["share": .double($0.share), "offered": .int($0.offered), "got": .int($0.got)]
                        })
                ))
        }
        figures += [("refused_by_first", .int(first.seen.refusals.count)), ("taken_by_second", .int(second.count))]
    }

    private static func span(_ times: [ContinuousClock.Instant]) -> Double {
        guard let first = times.min(), let last = times.max() else { return .infinity }
        return (last - first) / .seconds(1)
    }

    private static func busiestSecond(_ times: [ContinuousClock.Instant]) -> Int {
        let sorted = times.sorted()
        return sorted.indices.map { index in
            sorted[index...].prefix { $0 - sorted[index] < .seconds(1) }.count
        }.max() ?? 0
    }
}
