import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Threads

/// Claims jobs. One claim is in flight, never two; slots that come free meanwhile join the next. An idle worker sleeps where it hears
/// notifications, and claims there what it was notified of: no other thread has to wake, and no other backend.
actor Claiming: SharingPart {
    nonisolated let shared: WorkerShared
    private let running: Running
    private let survey: LaneSurvey

    init(_ shared: WorkerShared, _ running: Running) {
        self.shared = shared
        self.running = running
        survey = LaneSurvey(shared)
    }

    func run() async {
        await links.claim.run { await loop() }
    }

    private func loop() async {
        defer {
            sleepLock.ends()
            shared.claimsEnded.fire()
        }
        var claims = ClaimState(bytes: BatchSize(options.bytes.claim, least: 0))
        while isClaiming {
            if claims.isAsleep, claims.claimsWhereItListens, hub.isOpen {
                await links.listen.run {
                    await sleep(&claims.pace)
                    await turn(&claims, pickingUpBy: links.listen)
                }
            } else {
                if claims.isAsleep { await sleep(&claims.pace) }
                await turn(&claims, pickingUpBy: links.claim)
            }
        }
    }

    private struct ClaimState {
        var plan = ClaimPlan()
        var pace = ClaimPace()
        var backoff = Backoff()
        var generation = 0
        /// Of the kinds that claims take.
        var kindTurn = 0
        var orphans = OrphanLooks()
        /// What a claim may ask for, of jobs and of bytes.
        var jobs = BatchSize(ClaimDemand.most, least: 16)
        var bytes: BatchSize
        /// Nothing was found, after a linger and a careful look.
        var isAsleep = false
        /// Unless it listens around a pooler under another role, which may not.
        var claimsWhereItListens = true

        mutating func worked() {
            backoff.reset()
            jobs.worked()
            bytes.worked()
        }

        /// A claim that was too slow is followed by a smaller one, and one that cannot be answered by one that brings no contents: whatever of
        /// them was in its way is then read by itself.
        mutating func failed(_ error: PostgresError) {
            if error.isSlowness {
                jobs.failed()
                bytes.failed()
            } else if error.isUnanswerable {
                bytes.gaveWay()
            }
        }

        /// The bytes that each job may add to the answer of a claim of `wanted` jobs.
        func carry(_ wanted: Int) -> Int { bytes.size / max(1, wanted) }
    }

    private var isClaiming: Bool { !Task.isCancelled && !state.isDraining }

    /// One claim, or the wait for a slot, and the pause behind it.
    private func turn(_ claims: inout ClaimState, pickingUpBy link: LoopConnection) async {
        claims.isAsleep = false
        var order = state.order()
        order.wanted = min(order.wanted, claims.jobs.size)
        let isLookDue = claims.orphans.isDue
        guard isClaiming, order.wanted > 0 || isLookDue else {
            stalls.ended(.claiming)
            sleepLock.busy(isFull: true)
            if isClaiming { await state.room.wait(for: .seconds(1)) }
            return
        }
        if order.wanted > 0 { sleepLock.looks(everywhere: takesOfAll) }
        stalls.began(.claiming)
        do throws(PostgresError) {
            // After an outage too: what is claimed can be ended.
            if links.flush.current == nil { try await links.flush.reach() }
            try await returnOrphansIfDue(&claims, isLookDue)
            guard order.wanted > 0 else { return stalls.ended(.claiming) }
            let found = try await look(order, &claims, pickingUpBy: link)
            stalls.ended(.claiming)
            claims.worked()
            switch found {
            case .nothing where claims.pace.careful: claims.isAsleep = true
            case .nothing where sleepLock.isRelieved, .few where sleepLock.isRelieved: claims.isAsleep = true
            case .nothing: await linger(&claims.pace)
            case .few: if let pause = order.gathering { await wakeups.signal.wait(for: pause) }
            case .more: break
            }
        } catch {
            if error.outcomeUnknown || error.isOutage || error.isUnanswerable { claims.generation = -1 }
            claims.failed(error)
            await stumble(error, pause: claims.backoff.next())
        }
    }

    /// Whether it may take jobs of each of its queues.
    private var takesOfAll: Bool {
        state.roomPerQueue.values.allSatisfy { $0 > 0 } && state.narrow.values.allSatisfy { $0 > 0 }
    }

    /// After a reconnect, a lost answer, a wish to be sure; and now and then, for a claim whose connection was lost may be carried out long
    /// after we have asked what it took.
    private func returnOrphansIfDue(_ claims: inout ClaimState, _ isLookDue: Bool) async throws(PostgresError) {
        if state.takeReconcile() { claims.generation = -1 }
        if claims.generation != links.claim.generation || (links.claim.current == nil && !links.claim.borrows) {
            shared.floors.withLock { $0.reset() }
            try await returnOrphans(&claims.orphans)
            claims.generation = links.claim.generation
        } else if isLookDue {
            try await returnOrphans(&claims.orphans)
        }
    }

    private enum Found {
        /// There was nothing to do.
        case nothing
        /// All that there was, and that was little.
        case few
        /// Another claim should follow at once.
        case more
    }

    /// One claim: of the job that the worker was called for, or of all that the plan visits.
    private func look(
        _ order: WorkerStateGuard.Order, _ claims: inout ClaimState, pickingUpBy link: LoopConnection
    ) async throws(PostgresError) -> Found {
        let news = wakeups.take()
        if news.careful { claims.pace.careful = true }
        var table = catalog.known
        // The first job of a new queue may have come before anybody slept: then no lane was named.
        let told = news.lanes.union(news.filled)
        if news.careful || told.contains(where: { table.names[$0.queue] == nil }) {
            try await catalog.refresh()
            table = catalog.known
        }
        if claims.pace.careful {
            claims.pace.lastSample = .now
            try await survey.sample(by: links.claim)
            // With few queues the plan looks at every lane; with many, a walk over those that hold something does.
            if table.open.count > ClaimPlan.fewQueues, catalog.lastWalk < .milliseconds(5) {
                try await survey.walk(by: links.claim, tells: false)
                table = catalog.known
            }
        }
        let kindTurn = catalog.kindTurn
        let known = catalog.kindIDs
        let now = shared.floors.withLock { floors in
            // Jobs of other kinds have been passed over.
            if claims.kindTurn != kindTurn { floors.reset() }
            for lane in told { floors.hint(lane) }
            floors.planned()
            return floors
        }
        claims.kindTurn = kindTurn
        claims.plan.returned(state.takeReturned(), lines: table.lines)
        let isLasting = !links.claim.isReplaced(within: Self.strictness) && !link.isReplaced(within: Self.strictness)
        if !claims.pace.careful, news.filled.isEmpty,
            let range = claims.plan.pickUp(
                news.lanes, floors: now, queues: table.open, lines: table.lines, limited: table.limited,
                room: state.roomPerQueue, narrow: state.narrow),
            try await pickUp(from: range, by: link, &claims, for: order, of: table, kinds: known, isLoose: isLasting)
        {
            claims.pace.worked()
            askForLateOnes(&claims.pace)
            return .few
        }
        askForLateOnes(&claims.pace)
        var ranges = claims.plan.ranges(
            floors: now, queues: table.open, lines: table.lines, room: state.roomPerQueue, narrow: state.narrow,
            wanted: order.wanted, allowance: state.allowance, hurried: !claims.pace.careful)
        if !claims.pace.careful { ranges = claims.plan.apart(ranges, floors: now, limited: table.limited) }
        guard !ranges.isEmpty else { return .nothing }
        let turn = ClaimPlan.turn(among: ranges, floors: now)
        return try await claim(
            ranges, turn: turn, &claims, for: order, of: table, kinds: known, isLasting: isLasting)
    }

    /// As many as are wanted, from these ranges.
    private func claim(
        _ visited: [ClaimRange], turn: Int, _ claims: inout ClaimState, for order: WorkerStateGuard.Order,
        of table: KnownQueues,
        kinds: [Int32], isLasting: Bool
    ) async throws(PostgresError) -> Found {
        let isLimited = visited.contains { table.limited.contains($0.lane.queue) }
        let carry = claims.carry(order.wanted)
        let found = try await links.claim.use { connection throws(PostgresError) in
            try await Queue.claim(
                on: connection, session: order.session, number: order.number, kinds: kinds, from: visited,
                wanted: order.wanted, shortQueues: table.short, longQueues: table.long,
                limited: isLimited, patience: order.patience, turn: turn, loose: isLimited ? order.isLoose : isLasting,
                carry: carry)
        }
        let places = found.places
        shared.floors.withLock { $0.claimed(places, from: visited, wanted: order.wanted, heldBack: found.heldBack) }
        claims.plan.given(places, lines: table.lines)
        let isToFollow = claims.plan.went(brought: places.count, heldBack: found.heldBack)
        // Somebody may have given a slot back while we found the gate shut.
        gates.ask(found.parkedAt)
        if !found.heldBack.isEmpty { gates.holdBack() }
        guard found.count > 0 else { return isToFollow || found.turnedAway.count > 0 ? .more : .nothing }
        claims.pace.worked()
        sleepLock.woke(full: found.count >= order.wanted && order.wanted > 8)
        if !found.unreadLeases.isEmpty, !state.expect(found.unreadLeases, gates: found.gates, of: order.session) {
            return tooLate(found.count)
        }
        if !found.jobs.isEmpty {
            let jobs = found.jobs.sorted { ($0.lane.priority, $0.seq) < ($1.lane.priority, $1.seq) }
            guard state.accept(jobs, gates: found.gates, of: order.session) else { return tooLate(found.count) }
            // A few begin at once; while many do, the next claim goes out.
            if found.jobs.count < Self.few {
                running.startRuns()
            } else {
                Task { @concurrent [running] in running.startRuns() }
            }
        }
        return found.count < min(order.wanted, order.enough) && !isToFollow ? .few : .more
    }

    /// Beside the next claim, and behind a job that was called for: that goes first.
    private func askForLateOnes(_ pace: inout ClaimPace) {
        guard pace.isSampleDue() else { return }
        pace.lastSample = .now
        shared.samples.fire()
    }

    /// One job, from where somebody has said that it is; false: there is none, or a claim has to decide.
    private func pickUp(
        from range: ClaimRange, by link: LoopConnection, _ claims: inout ClaimState,
        for order: WorkerStateGuard.Order,
        of table: KnownQueues,
        kinds: [Int32], isLoose: Bool
    ) async throws(PostgresError) -> Bool {
        let number = order.number + table.leaseClass(of: range.lane.queue)
        let link = link.current == nil ? links.claim : link  // who listens reconnects by himself
        let job: Claimed?
        let carry = claims.carry(1)
        do throws(PostgresError) {
            job = try await link.use { connection throws(PostgresError) in
                try await Queue.claimOne(
                    on: connection, session: order.session, number: number, kinds: kinds, from: range, loose: isLoose,
                    carry: carry)
            }
        } catch {
            guard link === links.listen, error.sqlState == "42501" else { throw error }
            claims.claimsWhereItListens = false
            log.warning(
                "the role that listens may not claim, so a call takes a moment longer; MILLRACE_DIRECT_URL should name the role of DATABASE_URL",
                [("error", error.description)])
            return false
        }
        guard let job else { return false }
        let place = QueuePosition(lane: job.lane, seq: job.seq)
        shared.floors.withLock { $0.claimed([place], from: [range], wanted: 1) }
        sleepLock.woke(full: false)
        guard state.accept([job], gates: [], of: order.session) else {
            _ = tooLate(1)
            return true
        }
        running.startRuns()
        return true
    }

    /// The answer came when this worker had been taken for dead, and had begun another session.
    private func tooLate(_ count: Int) -> Found {
        log.info("the answer of a claim came too late; others have its jobs", [("jobs", "\(count)")])
        return .more
    }

    /// Nothing found: linger, then one careful look, then sleep. No careful look where others look.
    private func linger(_ pace: inout ClaimPace) async {
        if !sleepLock.isCovered, let pause = pace.pause() {
            await wakeups.signal.wait(for: pause)
        } else {
            pace.careful = true
        }
    }

    private func sleep(_ pace: inout ClaimPace) async {
        pace.sleeps()
        sleepLock.quiet()
        let isUnheard = hub.lacksSessions && !hub.isOpen
        let pause = sleepLock.impatience ?? (isUnheard ? pace.unheardNap(options.poll) : ClaimPace.nap(options.poll))
        let called = await wakeups.signal.wait(for: pause)
        if sleepLock.takeAsked() { pace.watches() }
        if !called { pace.careful = true }
    }

    private static var few: Int { 100 }

    /// How the looks for orphaned leases have gone. What an old snapshot keeps makes one dear, and then it comes rarely.
    private struct OrphanLooks {
        var ended = ContinuousClock.now
        var took = Duration.zero

        var isDue: Bool { ended.duration(to: .now) > max(.seconds(5), took * 400) }
    }

    /// For so long after a connection was lost, claims wait for the disk: if a job took the server down, and its claim with it, the next claim
    /// of it holds.
    private static var strictness: Duration { .seconds(60) }

    /// Leases that the database has and we do not go back: after a reconnect or a lost answer, and now and then. Claims wait meanwhile.
    private func returnOrphans(_ looks: inout OrphanLooks) async throws(PostgresError) {
        let session = state.session
        let began = ContinuousClock.now
        // What is flushed while we ask is in neither.
        let known = state.leaseNumbers
        let orphans = try await links.claim.use { connection throws(PostgresError) in
            try await Queue.leasesHeld(on: connection, session: session)
        }.subtracting(known).subtracting(state.leaseNumbers)
        looks.took = began.duration(to: .now)
        looks.ended = .now
        guard !orphans.isEmpty else { return }
        let jobs = try await links.claim.use { connection throws(PostgresError) in
            try await Queue.returnLeases(on: connection, session: session, numbers: orphans)
        }
        log.info("returned what a claim took whose answer was lost", [("jobs", "\(jobs)")])
    }

    private func stumble(_ error: PostgresError, pause: Duration) async {
        switch error {
        case .cancelled: return
        case .server(let server) where server.constraint?.hasPrefix("lease_session") == true:
            shared.sessionGone.fire()  // the beat opens another
            await shared.sessionChanged.wait(for: .seconds(2))
        case .server, .unreachable, .lost, .timedOut, .exhausted, .undecodable, .misconfigured:
            limitedLog.say("a claim failed", error)
            try? await Task.sleep(for: pause)
        }
    }
}
