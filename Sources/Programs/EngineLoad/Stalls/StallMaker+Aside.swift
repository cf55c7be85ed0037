import Encryption
import LoadKit
import Postgres
import Supervision

/// Stalls of what stands in no line: scheduled, blocked and ended jobs, schedules, and the work of rooms.
extension StallMaker {
    private static let runner = 90

    /// Runs a new job once, on a worker that is gone afterwards.
    private mutating func run(
        _ kind: String, args: String = "{}", outcome: Int, error: String?, wait: Int
    ) async throws(PostgresError) -> Int64 {
        let job = try await world.enqueue(kind, in: queue, args: args, ", priority => 0")
        try await world.open(Self.runner)
        try await world.claim(Self.runner, kinds: [kind], wanted: 1)
        try await world.end(job, session: Self.runner, outcome: outcome, error: error, wait: wait)
        try await world.run("select millrace.session_close(\(Self.runner))")
        return job
    }

    mutating func aside(_ stall: inout Stall) async throws(PostgresError) {
        let wait = Int.random(in: 60...3600, using: &random)
        let job: Int64
        switch stall.cause {
        case .retryPause:
            job = try await run(kind, outcome: 4, error: "connection refused: upstream 7", wait: wait + 3600)
            stall.mentions = ["connection refused"]
        case .providerOpen, .providerForced, .providerThrottled, .providerQuota:
            job = try await provider(&stall, wait: wait + 3600)
        case .keyMissing:
            let isDead = random.chance(0.4)
            job = try await run(
                kind, args: #"{"$millrace": "sealed", "v": 1, "key": "k7", "data": "AAAA"}"#, outcome: isDead ? 3 : 4,
                error: SealError.missingKey("k7").description, wait: wait + 3600)
            stall.mentions = ["k7"]
        case .flow:
            let before = try await world.enqueue(kind, in: queue)
            job = try await world.number(
                "select millrace.enqueue('\(kind)', '{}', queue => '\(queue)', options => '{\"after\": {\"jobs\": [\(before)]}}')"
            )
            stall.mentions = ["job \(before)"] + (stall.companions.contains(.queuePaused) ? ["paused"] : [])
        case .keyHeld:
            let holder = try await world.enqueue(kind, in: queue, ", unique_key => 'k', priority => 0")
            try await world.open(Self.runner)
            try await world.claim(Self.runner, kinds: [kind], wanted: 1)
            job = try await world.enqueue(kind, in: queue, ", unique_key => 'k', on_conflict => 'replace'")
            stall.mentions = ["job \(holder)"]
        case .quarantined:
            job = try await world.enqueue(kind, in: queue)
            try await world.suspect(job, crashes: 4)
            try await world.open(Self.runner)
            try await world.claim(Self.runner, kinds: [kind], wanted: 1)
            try await world.run("select millrace.rescue(\(Self.runner), null)")
        default:
            job = try await world.enqueue(kind, in: queue, ", run_at => millrace.now() + interval '\(wait + 3600) s'")
        }
        stall.question = .job(job)
        try await surround(stall.companions)
    }

    /// A job that was put off because its provider is not called: by a handler's error, or as mail is.
    private mutating func provider(_ stall: inout Stall, wait: Int) async throws(PostgresError) -> Int64 {
        let isMail = random.chance(0.5)
        let name = isMail ? (random.chance(0.5) ? "resend" : "smtp") : "maps.example"
        stall.mentions = [name]
        let refusal: CallRefusal
        switch stall.cause {
        case .providerForced:
            refusal = CallRefusal(provider: name, why: .forced, reason: "maintenance", wait: .seconds(60))
            try await world.run("select millrace.provider_force('\(name)', 'open', 'maintenance', '5 hours')")
        case .providerThrottled:
            refusal = CallRefusal(provider: name, why: .pace, wait: .seconds(60))
            try await world.run(
                "insert into millrace.provider_pace (provider, rate, blocked_until, changed_at) values ('\(name)', 1, millrace.now() + interval '5 hours', millrace.now())"
            )
        case .providerQuota:
            refusal = CallRefusal(provider: name, why: .reserve, reason: "95 of 100 are used", wait: .seconds(60))
            try await world.run(
                "insert into millrace.provider_pace (provider, quota_used, quota_limit, quota_resets_at, changed_at) values ('\(name)', 95, 100, millrace.now() + interval '5 hours', millrace.now())"
            )
        default:
            refusal = CallRefusal(provider: name, why: .open, reason: "5 of 6 calls failed", wait: .seconds(60))
            try await world.run(
                "insert into millrace.provider_circuit (provider, class, state, generation, reason, until, changed_at) values ('\(name)', '*', 'open', 1, '5 of 6 calls failed', millrace.now() + interval '1 min', millrace.now())"
            )
        }
        guard isMail else { return try await run(kind, outcome: 4, error: refusal.description, wait: wait) }
        try await world.run(
            "insert into millrace.mail_route (chosen, current, changed_at) values ('\(name)', '\(name)', millrace.now())"
        )
        try await world.register(["mail.send"])
        let message = try await world.text("select gen_random_uuid()::text")
        return try await run("mail.send", args: "{\"message\": \"\(message)\"}", outcome: 5, error: nil, wait: wait)
    }

    mutating func room(_ stall: inout Stall) async throws(PostgresError) {
        switch stall.cause {
        case .schedulePaused, .scheduleProblem:
            let isPaused = stall.cause == .schedulePaused
            try await world.run(
                """
                select millrace.register_queues(array['fed']);
                select millrace.schedule_set('nightly', '0 2 * * *', '\(kind)', queue => 'fed', paused => \(isPaused));
                update millrace.schedule set problem = 'the zone Mars/Base is unknown', problem_at = millrace.now() where name = 'nightly' and not \(isPaused);
                """)
            stall.question = .queue(random.chance(0.5) ? "nightly" : "fed")
            stall.mentions = ["nightly"] + (isPaused ? [] : ["Mars/Base"])
        case .mailParked:
            let message = try await world.text("select millrace.mail_send(array['a@b.example'], 's', 't')::text")
            let job = try await world.number("select m.job from millrace.mail m where m.id = '\(message)'")
            try await succeed(job, kind: "mail.send")
            try await world.run("update millrace.mail m set status = 'parked' where m.id = '\(message)'")
            stall.question = random.chance(0.5) ? .queue("mail") : .job(job)
            stall.mentions = [message]
        case .documentPage:
            let document = try await world.text(
                "select millrace.document_register('https://a.example/x', actor => 'anna')::text")
            let job = try await world.number("select d.job from millrace.document d where d.id = '\(document)'")
            try await succeed(job, kind: "document.receive")
            let page = Int.random(in: 1...12, using: &random)
            try await world.run(
                """
                update millrace.document d set stage = 'classify', pages = 12, pages_done = \(page - 1) where d.id = '\(document)';
                insert into millrace.document_page (document, page, status, stage, changed_at)
                select '\(document)', n, case when n < \(page) then 'done' else 'waiting' end, 'classify', millrace.now() from generate_series(1, 12) n;
                select millrace.document_enqueue_pages(d) from millrace.document d where d.id = '\(document)';
                """)
            stall.question = random.chance(0.5) ? .queue("documents") : .job(job)
            stall.mentions = ["page \(page) of 12"]
        default:
            try await world.run("select millrace.check_in_help('ben', actor => 'ben')")
            stall.question = .queue("check-ins")
            if random.chance(0.5) { try await world.run("update millrace.alarm set state = 'unreachable'") }
        }
        try await surround(stall.companions)
    }

    private func succeed(_ job: Int64, kind: String) async throws(PostgresError) {
        try await world.open(Self.runner)
        try await world.claim(Self.runner, kinds: [kind], wanted: 1)
        try await world.end(job, session: Self.runner, outcome: 1)
        try await world.run("select millrace.session_close(\(Self.runner))")
    }
}
