package import CommandKit
import FoundationEssentials
import LoadKit
import MillraceQueues
import Postgres

extension Command {
    package static let loadRecovery = scenario(
        "recovery",
        summary: "Show how soon each room gets through again after its provider was down",
        discussion: """
            Starts a worker and, on loopback, the providers of mail, notices (SMS and pushes), AI and webhooks. Each \
            outage is tried with one caller in each room and with a thousand; the providers answer 503 meanwhile. Once \
            more with a batch of questions that may wait, whose job is one caller, and once more with one mail, of which \
            they take requests and answer nothing, so that it is in doubt. Measured are the time from the end of the outage to the \
            first success, and from the caller's next try, which is when it was told to come back; the calls made \
            meanwhile; and the tries used up, of which a refusal must use none. A provider that has failed three times is \
            not called for --open, and twice as long each further time. A lone webhook comes back when its schedule \
            says, which is after five minutes the third time, and a batch that was refused after half a minute. \
            Documents are not among these. The one thing that they call through the supervisor is the addresses from which they are \
            fetched: only public ones are, and each is a stranger's own, so a failure stops no other document and there \
            is no breaker to recover from. Pages are read by programs of this machine, files in S3 are \
            fetched without a breaker, and what language models make of documents is a question like those of AI.
            """,
        flags: [
            .repeated(
                "outage", "SECONDS", .integer(1...3600), environment: .none,
                help: "How long the providers are down; may be given several times. [default: 5, 25 and 120]"),
            .count("callers", 2...100_000, 1000, "How many callers each room has, beside one."),
            .single(
                "open", "SECONDS", .integer(1...300), environment: .none, fallback: "5",
                help: "How long a provider is not called."),
            .toggle(
                "quick", environment: .none,
                help: "Outages of 1 and 3 seconds, with one caller and with 50, and one batch."),
        ],
        examples: [
            Example("millrace load recovery", "all of it, about half an hour"),
            Example("millrace load recovery --quick", "about two minutes"),
        ]
    ) { invocation in
        try await RecoveryScenario(invocation: invocation).run()
    }
}

struct RecoveryScenario: Sendable {
    let invocation: Invocation

    /// What one room did in one outage.
    private struct Outcome: Sendable {
        var room: RecoveryServer.Room
        var seconds: Int
        var callers: Int
        var fromBack = Double.infinity
        var fromNextTry = Double.infinity
        var seen = RecoveryServer.Seen()
        var tries = 0
        var undone = 0
    }

    private var isQuick: Bool { invocation.parsed.isOn("quick") }
    private var outages: [Int] {
        let given = invocation.parsed.integers("outage")
        return given.isEmpty ? isQuick ? [1, 3] : [5, 25, 120] : given
    }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        try await SchemaCheck.check(on: connection)
        let server = try RecoveryServer()
        defer { server.stop() }
        let target =
            try await connection.text(
                "select id::text from millrace.webhook_add($1, '{com.example.recovery}', 'binary', null, false)",
                [.text(server.url + "/hook")]
            )
        try await connection.execute("select millrace.ai_switch('tenant', 'recovery', true)")
        let directory = try Scratch.directory("recovery", isOpen: false)
        let key = directory + "/push.p8"
        try RecoveryServer.pushKey.write(toFile: key, atomically: true, encoding: .utf8)
        let workers = try await LoadWorkers.start(
            1, invocation, arguments: ["--slots", "200"], environment: environment(server, pushKey: key), on: connection
        )
        var outcomes: [Outcome] = []
        for seconds in outages {
            for callers in [1, isQuick ? 50 : invocation.count("callers")] {
                outcomes += try await go(
                    through: seconds, callers, RecoveryServer.Room.refused, server, target: target, on: connection)
            }
            for room in others(after: seconds) {
                outcomes += try await go(through: seconds, 1, [room], server, target: target, on: connection)
            }
        }
        try await workers.stop()
        await connection.close()
        return invocation.report("recovery", Self.bars(outcomes), figures: figures(outcomes))
    }

    /// Those that go alone, because another room has the same provider. A batch takes half a minute, which is long in the short form.
    private func others(after seconds: Int) -> [RecoveryServer.Room] {
        isQuick && seconds != outages.last ? [.doubts] : [.batches, .doubts]
    }

    private func environment(_ server: RecoveryServer, pushKey: String) -> [String: String] {
        [
            "MILLRACE_BREAKER_OPEN": "\(isQuick ? 1 : invocation.parsed.integer("open") ?? 5)s",
            "RESEND_API_KEY": "re_load", "RESEND_EMAIL_ENABLED": "true", "RESEND_BASE_URL": server.url,
            "EMAIL_SERVICE_PROVIDER": "resend", "EMAIL_FROM_ADDRESS": "load@example.net",
            "MILLRACE_SMS_URL": server.url + "/sms", "MILLRACE_AI_OPENAI_MODEL": "small",
            "MILLRACE_AI_OPENAI_URL": server.url + "/v1", "MILLRACE_WEBHOOK_ALLOW": server.url,
            "MILLRACE_EVENT_SOURCE": "load.example", "MILLRACE_AI_BATCHES": "on",
            "MILLRACE_APNS_URL": server.url, "MILLRACE_APNS_KEY_FILE": pushKey, "MILLRACE_APNS_KEY_ID": "LOAD123456",
            "MILLRACE_APNS_TEAM": "LOAD123456", "MILLRACE_APNS_TOPIC": "com.example.load",
        ]
    }

    /// These rooms at once: each has a provider of its own.
    private func go(
        through seconds: Int, _ callers: Int, _ which: [RecoveryServer.Room], _ server: RecoveryServer, target: String,
        on connection: Connection
    ) async throws -> [Outcome] {
        let rooms = which.map { room in
            RecoveryRoom(
                room: room, mark: "\(room.mark)-\(seconds)-\(callers)",
                provider: room.provider + (room == .webhooks ? target : ""))
        }
        for room in rooms {
            try await connection.execute(
                "select millrace.provider_force($1, 'auto', 'the next outage')", [.text(room.provider)]
            )
        }
        server.begin(isSilent: which.contains(.doubts))
        for room in rooms { try await room.handIn(callers, on: connection) }
        try await come("every room has called its provider", within: .seconds(60)) {
            rooms.allSatisfy { server.seen($0.room).requests > 0 }
        }
        try await Task.sleep(for: .seconds(seconds))
        var nextTries: [ContinuousClock.Instant] = []
        for room in rooms {
            let wait = try await room.nextTry(on: connection)
            nextTries.append(ContinuousClock.now + wait)
        }
        let back = ContinuousClock.now
        server.comeBack()
        // A try that began in the last instant of the outage has failed by now, and moved the next one.
        try await Task.sleep(for: .milliseconds(1500))
        for (number, room) in rooms.enumerated() {
            let seen = server.seen(room.room)
            guard seen.firstServed == nil, let last = seen.lastRefused, back - last < .seconds(2) else { continue }
            let wait = try await room.nextTry(on: connection)
            nextTries[number] = max(nextTries[number], ContinuousClock.now + wait)
        }
        try await come("every room gets through", within: .seconds(600), isNeeded: false) {
            rooms.allSatisfy { server.seen($0.room).firstServed != nil }
        }
        try await come("all is done", within: .seconds(callers == 1 && which != [.batches] ? 30 : 120), isNeeded: false)
        {
            for room in rooms {
                let rest = try await room.rest(on: connection)
                if rest.open > 0 { return false }
            }
            return true
        }
        var outcomes: [Outcome] = []
        for (room, next) in zip(rooms, nextTries) {
            let rest = try await room.rest(on: connection)
            var outcome = Outcome(room: room.room, seconds: seconds, callers: callers)
            outcome.seen = server.seen(room.room)
            if let first = outcome.seen.firstServed {
                outcome.fromBack = (first - back) / .seconds(1)
                outcome.fromNextTry = max(0, (first - max(back, next)) / .seconds(1))
            }
            (outcome.undone, outcome.tries) = rest
            outcomes.append(outcome)
            try await room.end(on: connection)
            invocation.console.note(
                "\(room.room.rawValue), down \(seconds) s, \(Humane.count(callers, "caller")): back to first success "
                    + "\(Humane.decimal(outcome.fromBack, places: 1)) s, calls meanwhile \(outcome.seen.whileDown), "
                    + "tries used up \(outcome.tries)")
        }
        return outcomes
    }

    private func come(
        _ what: String, within limit: Duration, isNeeded: Bool = true, _ condition: () async throws -> Bool
    ) async throws {
        let came = try await Patience.waited(limit, every: .milliseconds(20), until: condition)
        if isNeeded, !came { throw Failure("this did not come about: \(what)") }
    }

    private static func bars(_ outcomes: [Outcome]) -> [Bar] {
        var bars = outcomes.map { one in
            Bar.atMost(
                "\(one.room.rawValue), down \(one.seconds) s, \(Humane.count(one.callers, "caller")): first success after its next try",
                5, measured: one.fromNextTry, unit: "s")
        }
        let used = outcomes.map { max(0, $0.tries - $0.seen.carried) }.reduce(0, +)
        bars.append(.atMost("tries used up without a call", 0, measured: Double(used), unit: "tries"))
        bars.append(
            .atMost(
                "not done two minutes after the end of the outage", 0,
                measured: Double(outcomes.map(\.undone).reduce(0, +)), unit: ""))
        return bars
    }

    private func figures(_ outcomes: [Outcome]) -> [(String, JSONValue)] {
        [
            ("open_seconds", .int(isQuick ? 1 : invocation.parsed.integer("open") ?? 5)),
            (
                "outages",
                .array(
                    outcomes.map { one in
                        [
                            "room": .string(one.room.rawValue), "down_s": .int(one.seconds),
                            "callers": .int(one.callers), "from_back_s": .double(one.fromBack),
                            "from_next_try_s": .double(one.fromNextTry), "calls_while_down": .int(one.seen.whileDown),
                            "requests": .int(one.seen.requests), "tries": .int(one.tries), "undone": .int(one.undone),
                        ]
                    })
            ),
        ]
    }
}
