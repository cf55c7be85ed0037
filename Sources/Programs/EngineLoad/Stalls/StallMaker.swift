import LoadKit
import Postgres

/// Makes a stall of a cause, mixed with others that hold the same thing up besides, and with what has nothing to do with it.
struct StallMaker: Sendable {
    let world: StallWorld
    var random: SeededChoices

    // Names as people choose them; the queue may be the one with the backlog.
    var kind = ""
    var queue = ""
    var tenant: String?
    var key: String?

    init(_ connection: Connection, seed: UInt64) {
        world = StallWorld(connection: connection)
        random = SeededChoices(seed: seed)
    }

    /// Two causes of one rank never stand beside each other: neither would be the answer.
    mutating func companions(of cause: StallCause, most: Int) -> [StallCause] {
        var chosen: [StallCause] = []
        for other in cause.companions.shuffled(using: &random) where chosen.count < most {
            let isNew = !chosen.contains { $0.rank / 10 == other.rank / 10 }
            if isNew { chosen.append(other) }
        }
        return chosen
    }

    mutating func make(_ cause: StallCause, with companions: [StallCause]) async throws(PostgresError) -> Stall {
        kind = ["report.build", "invoice.send", "image.scale", "sync.user"].randomElement(using: &random) ?? "a"
        queue = ["default", "reports", "slow", "a.b/c"].randomElement(using: &random) ?? "default"
        tenant = random.chance(0.3) ? "acme" : nil
        key = random.chance(0.3) ? "user:1" : nil
        try await noise()
        var stall = Stall(cause: cause, companions: companions, question: .queue(queue))
        switch cause.place {
        case .line: try await line(&stall)
        case .aside: try await aside(&stall)
        case .room: try await room(&stall)
        }
        return stall
    }

    /// What has nothing to do with it: other queues, kinds, limits and workers.
    private mutating func noise() async throws(PostgresError) {
        try await world.register([kind, "noise.a", "noise.b", "busy.a", "busy.b"])
        for n in 0..<Int.random(in: 0...4, using: &random) {
            _ = try await world.enqueue("noise.a", in: "noise", n == 0 ? ", tenant => 'loud'" : "")
        }
        if random.chance(0.5) { try await world.run("select millrace.pause('noise')") }
        if random.chance(0.5) {
            try await world.run("select millrace.limit_set('queue', 'noise', '{\"concurrency\": 0}')")
        }
        if random.chance(0.5) {
            try await world.run("select millrace.provider_force('elsewhere', 'open', 'not this one')")
        }
        if random.chance(0.5) {
            try await world.run(
                "select millrace.schedule_set('idle', '0 2 * * *', 'noise.a', queue => 'noise', paused => true)")
        }
    }

    /// The workers as they were before anything went wrong: one to three that take the job.
    private mutating func fleet(_ causes: Set<StallCause>) async throws(PostgresError) {
        if !causes.isDisjoint(with: [.noWorker]) { return }
        if causes.contains(.workerTooOld) {
            if random.chance(0.5) { try await world.open(8, kinds: ["noise.a"]) }
            try await world.run(
                "select millrace.worker_refused('old', 'host-9', 1, '0.9', 10, \(StallWorld.list([kind, "x"])), \(random.chance(0.5) ? "null" : StallWorld.list([queue])))"
            )
            return
        }
        let slots = Int.random(in: 2...8, using: &random)
        for n in 1...Int.random(in: 1...3, using: &random) {
            if causes.contains(.kindUnserved) {
                try await world.open(n, kinds: ["noise.a", "noise.b"], slots: slots)
            } else if causes.contains(.queueUnserved) {
                try await world.open(n, queues: ["noise", "other"], slots: slots)
            } else {
                try await world.open(n, queues: random.chance(0.5) ? nil : [queue, "noise"], slots: slots)
            }
        }
    }

    private var more: String {
        (tenant.map { ", tenant => '\($0)'" } ?? "") + (key.map { ", limit_key => '\($0)'" } ?? "")
    }

    /// Jobs that fill the workers' slots.
    private mutating func fill(tenant: String?) async throws(PostgresError) {
        for n in 0..<6 {
            let tenant = tenant.map { ", tenant => '\($0)'" } ?? ""
            _ = try await world.enqueue(n % 3 == 0 ? "busy.b" : "busy.a", in: queue, ", priority => 0\(tenant)")
        }
        try await world.claim(1, kinds: ["busy.a", "busy.b"], number: 80)
    }

    private mutating func line(_ stall: inout Stall) async throws(PostgresError) {
        let causes = Set([stall.cause] + stall.companions)
        if causes.contains(.keyLimit) { key = "user:1" }
        if causes.contains(.tenantLimit) { tenant = "acme" }
        if stall.cause == .slotsBusy { tenant = nil }
        try await fleet(causes)
        let hasFleet = causes.isDisjoint(with: [.noWorker, .workerTooOld, .kindUnserved, .queueUnserved])
        if hasFleet, !causes.isDisjoint(with: [.slotsBusy, .tenantShare]) {
            try await fill(tenant: causes.contains(.tenantShare) ? "loud" : tenant)
        }
        if stall.cause == .tenantShare {
            tenant = random.chance(0.7) ? "quiet" : nil
            stall.mentions = ["loud"]
        }
        if stall.cause == .slotsBusy { stall.mentions = ["busy.a"] }
        try await gate(&stall)
        for _ in 0..<Int.random(in: 0...3, using: &random) { _ = try await world.enqueue(kind, in: queue, more) }
        let job = try await world.enqueue(kind, in: queue, more)
        if causes.contains(.suspect) { try await world.suspect(job, crashes: random.chance(0.5) ? 3 : 2) }
        for one in stall.companions where (40..<50).contains(one.rank) {
            try await world.run("select millrace.limit_set(\(limitName(one)), '{\"concurrency\": 0}')")
        }
        try await obstruct(causes)
        stall.question = .job(job)
        if stall.cause == .kindUnserved { stall.mentions = [kind] }
        if [.queueUnserved, .queuePaused].contains(stall.cause) { stall.mentions = [queue] }
        if stall.cause == .queuePaused, random.chance(0.5) { stall.question = .queue(queue) }
    }

    /// Pauses, ages and fills, as the causes say; the beats come last, because the clock moves.
    private func obstruct(_ causes: Set<StallCause>) async throws(PostgresError) {
        if causes.contains(.queuePaused) { try await world.run("select millrace.pause('\(queue)')") }
        if causes.contains(.snapshotPinned) { try await world.run("select millrace.test_clock_advance('20 min')") }
        if causes.contains(.workerTooOld) {
            try await world.run("update millrace.refused_worker set at = millrace.now()")
        }
        try await world.beat(
            causes.contains(.workerDraining) ? "draining" : causes.contains(.workerCutOff) ? "cut off" : "working",
            age: causes.contains(.workerFrozen) ? 60 : 0,
            isFull: !causes.isDisjoint(with: [.slotsBusy, .tenantShare]))
    }

    private func limitName(_ cause: StallCause) -> String {
        switch cause {
        case .tenantLimit: "'tenant', '\(tenant ?? "acme")'"
        case .keyLimit: "'key', 'user:*'"
        case .rateLimit where key != nil: "'key', 'user:*'"
        case .rateLimit where tenant != nil: "'tenant', '\(tenant ?? "acme")'"
        default: "'queue', '\(queue)'"
        }
    }

    /// A limit that is 0, or that another job uses up.
    private mutating func gate(_ stall: inout Stall) async throws(PostgresError) {
        guard (40..<50).contains(stall.cause.rank) else { return }
        let name = limitName(stall.cause)
        if stall.cause != .rateLimit, random.chance(0.4) {
            return try await world.run("select millrace.limit_set(\(name), '{\"concurrency\": 0}')")
        }
        let limit = stall.cause == .rateLimit ? "{\"rate\": 1, \"per\": 3600}" : "{\"concurrency\": 1}"
        try await world.run("select millrace.limit_set(\(name), '\(limit)')")
        let holder = try await world.enqueue("busy.b", in: queue, more + ", priority => 0")
        try await world.claim(1, kinds: ["busy.b"], wanted: 1, number: 16)
        if stall.cause != .rateLimit { stall.mentions = ["\(holder)"] }
    }

    /// Whatever else holds up those in line.
    mutating func surround(_ companions: [StallCause]) async throws(PostgresError) {
        let causes = Set(companions)
        try await fleet(causes)
        try await obstruct(causes)
    }
}
