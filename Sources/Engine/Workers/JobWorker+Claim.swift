import Postgres
import Queues
import Synchronization
import Telemetry
import Threads

extension JobWorker {
    /// One claim in flight, never two; slots that come free meanwhile join the next. Who sleeps does so where calls are heard, and takes there
    /// what the call is about: no other thread need wake for it, and no other backend.
    func claimLoop() async {
        defer { claimsEnded.fire() }
        var state = ClaimState(bytes: BatchSize(options.bytes.claim, least: 0))
        while isClaiming {
            if state.isAsleep, state.claimsWhereItListens, hearing.isOpen {
                await listenLink.run {
                    await sleep(&state.pace)
                    await turn(&state, pickingUpBy: listenLink)
                }
            } else {
                if state.isAsleep { await sleep(&state.pace) }
                await turn(&state, pickingUpBy: claimLink)
            }
        }
    }

    private struct ClaimState {
        var plan = ClaimPlan()
        var pace = ClaimPace()
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        var generation = 0
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

        /// What a job may add to the answer of a claim of so many.
        func carry(_ wanted: Int) -> Int { bytes.size / max(1, wanted) }
    }

    private var isClaiming: Bool { !Task.isCancelled && !desk.isDraining }

    /// One claim, or the wait for a slot, and the pause behind it.
    private func turn(_ state: inout ClaimState, pickingUpBy link: LoopConnection) async {
        state.isAsleep = false
        var order = desk.order()
        order.wanted = min(order.wanted, state.jobs.size)
        let isLookDue = state.orphans.isDue
        guard isClaiming, order.wanted > 0 || isLookDue else {
            stalls.ended(.claiming)
            doorman.busy()
            if isClaiming { await desk.room.wait(for: .seconds(1)) }
            return
        }
        stalls.began(.claiming)
        do throws(PostgresError) {
            // After an outage too: what is claimed can be ended.
            if flushLink.current == nil { _ = try await flushLink.connection() }
            try await returnOrphansIfDue(&state, isLookDue)
            guard order.wanted > 0 else { return stalls.ended(.claiming) }
            let found = try await look(order, &state, pickingUpBy: link)
            stalls.ended(.claiming)
            state.worked()
            switch found {
            case .nothing where state.pace.careful: state.isAsleep = true
            case .nothing: await linger(&state.pace)
            case .few: if let pause = order.gathering { await wakeups.signal.wait(for: pause) }
            case .more: break
            }
        } catch {
            if error.outcomeUnknown || error.isOutage || error.isUnanswerable { state.generation = -1 }
            state.failed(error)
            await stumble(error, pause: state.backoff.next(using: &state.random))
        }
    }

    /// After a reconnect, a lost answer, a wish to be sure; and now and then, for a claim whose connection was lost may be carried out long
    /// after we have asked what it took.
    private func returnOrphansIfDue(_ state: inout ClaimState, _ isLookDue: Bool) async throws(PostgresError) {
        if desk.takeReconcile() { state.generation = -1 }
        if state.generation != claimLink.generation || claimLink.current == nil {
            floors.withLock { $0.reset() }
            try await returnOrphans(&state.orphans)
            state.generation = claimLink.generation
        } else if isLookDue {
            try await returnOrphans(&state.orphans)
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
        _ order: WorkerStateGuard.Order, _ state: inout ClaimState, pickingUpBy link: LoopConnection
    ) async throws(PostgresError) -> Found {
        let news = wakeups.take()
        if news.careful { state.pace.careful = true }
        var table = queues.withLock { $0 }
        // The first job of a new queue may have come before anybody slept: then no lane was named.
        let told = news.lanes.union(news.filled)
        if news.careful || told.contains(where: { table.names[$0.queue] == nil }) {
            try await refreshQueues()
            table = queues.withLock { $0 }
        }
        if state.pace.careful {
            state.pace.lastSample = .now
            try await sample(by: claimLink)
            // With few queues the plan looks at every lane; with many, a walk over those that hold something does.
            if table.open.count > ClaimPlan.fewQueues, lanesWalk.withLock({ $0 }) < .milliseconds(5) {
                try await lookBelowFloors(claimLink, tells: false)
                table = queues.withLock { $0 }
            }
        }
        let now = floors.withLock { floors in
            for lane in told { floors.hint(lane) }
            floors.planned()
            return floors
        }
        let known = kinds.withLock { Array($0.keys) }
        let isLasting = !claimLink.isReplaced(within: Self.strictness) && !link.isReplaced(within: Self.strictness)
        if !state.pace.careful, news.filled.isEmpty,
            let stretch = state.plan.pickUp(
                news.lanes, floors: now, queues: table.open, lines: table.lines, limited: table.limited,
                room: desk.roomPerQueue, narrow: desk.narrow),
            try await pickUp(from: stretch, by: link, &state, for: order, of: table, kinds: known, isLoose: isLasting)
        {
            state.pace.worked()
            askForLateOnes(&state.pace)
            return .few
        }
        askForLateOnes(&state.pace)
        var stretches = state.plan.stretches(
            floors: now, queues: table.open, lines: table.lines, room: desk.roomPerQueue, narrow: desk.narrow,
            wanted: order.wanted, allowance: desk.allowance, hurried: !state.pace.careful)
        if !state.pace.careful { stretches = state.plan.apart(stretches, floors: now, limited: table.limited) }
        guard !stretches.isEmpty else { return .nothing }
        let turn = ClaimPlan.turn(among: stretches, floors: now)
        return try await claim(stretches, turn: turn, &state, for: order, of: table, kinds: known, isLasting: isLasting)
    }

    /// As many as are wanted, from these stretches.
    private func claim(
        _ visited: [ClaimRange], turn: Int, _ state: inout ClaimState, for order: WorkerStateGuard.Order,
        of table: KnownQueues,
        kinds: [Int32], isLasting: Bool
    ) async throws(PostgresError) -> Found {
        let isLimited = visited.contains { table.limited.contains($0.lane.queue) }
        let carry = state.carry(order.wanted)
        let found = try await claimLink.use { connection throws(PostgresError) in
            try await Queue.claim(
                on: connection, session: order.session, number: order.number, kinds: kinds, from: visited,
                wanted: order.wanted, shortQueues: table.short, longQueues: table.long,
                limited: isLimited, patience: order.patience, turn: turn, loose: isLimited ? order.isLoose : isLasting,
                carry: carry)
        }
        let places = found.places
        floors.withLock { $0.claimed(places, from: visited, wanted: order.wanted, heldBack: found.heldBack) }
        state.plan.given(places, lines: table.lines)
        let isToFollow = state.plan.went(brought: places.count, heldBack: !found.heldBack.isEmpty)
        // Somebody may have given a slot back while we found the gate shut.
        gates.ask(found.parkedAt)
        if !found.heldBack.isEmpty { gates.holdBack() }
        guard found.count > 0 else { return isToFollow || found.turnedAway.count > 0 ? .more : .nothing }
        state.pace.worked()
        doorman.woke(full: found.count >= order.wanted && order.wanted > 8)
        if !found.parcels.isEmpty { desk.expect(found.parcels, gates: found.gates) }
        if !found.jobs.isEmpty {
            desk.accept(
                found.jobs.sorted { ($0.lane.priority, $0.seq) < ($1.lane.priority, $1.seq) }, gates: found.gates)
            // A few begin at once; while many do, the next claim goes out.
            if found.jobs.count < Self.few { startRuns() } else { Task { startRuns() } }
        }
        return found.count < min(order.wanted, order.enough) && !isToFollow ? .few : .more
    }

    /// Beside the next claim, and behind a job that was called for: that goes first.
    private func askForLateOnes(_ pace: inout ClaimPace) {
        guard pace.isSampleDue() else { return }
        pace.lastSample = .now
        samples.fire()
    }

    /// One job, from where somebody has said that it is; false: there is none, or a claim has to decide.
    private func pickUp(
        from stretch: ClaimRange, by link: LoopConnection, _ state: inout ClaimState, for order: WorkerStateGuard.Order,
        of table: KnownQueues,
        kinds: [Int32], isLoose: Bool
    ) async throws(PostgresError) -> Bool {
        let number = order.number + table.leaseClass(of: stretch.lane.queue)
        let link = link.current == nil ? claimLink : link  // who listens reconnects by himself
        let job: Claimed?
        let carry = state.carry(1)
        do throws(PostgresError) {
            job = try await link.use { connection throws(PostgresError) in
                try await Queue.claimOne(
                    on: connection, session: order.session, number: number, kinds: kinds, from: stretch, loose: isLoose,
                    carry: carry)
            }
        } catch {
            guard link === listenLink, error.sqlState == "42501" else { throw error }
            state.claimsWhereItListens = false
            log.warning(
                "the role that listens may not claim, so a call takes a moment longer; MILLRACE_DIRECT_URL should name the role of DATABASE_URL",
                [("error", error.description)])
            return false
        }
        guard let job else { return false }
        let place = QueuePosition(lane: job.lane, seq: job.seq)
        floors.withLock { $0.claimed([place], from: [stretch], wanted: 1) }
        doorman.woke(full: false)
        desk.accept([job], gates: [])
        startRuns()
        return true
    }

    /// Nothing found: linger, then one careful look, then sleep.
    private func linger(_ pace: inout ClaimPace) async {
        if !doorman.holds, let pause = pace.pause() {
            await wakeups.signal.wait(for: pause)
        } else {
            pace.careful = true
        }
    }

    private func sleep(_ pace: inout ClaimPace) async {
        pace.sleeps()
        doorman.quiet()
        let pause = doorman.impatience ?? ClaimPace.nap(options.poll)
        let called = await wakeups.signal.wait(for: pause)
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
        let session = desk.session
        let began = ContinuousClock.now
        // What is flushed while we ask is in neither.
        let known = desk.leaseNumbers
        let orphans = try await claimLink.use { connection throws(PostgresError) in
            try await Queue.leasesHeld(on: connection, session: session)
        }.subtracting(known).subtracting(desk.leaseNumbers)
        looks.took = began.duration(to: .now)
        looks.ended = .now
        guard !orphans.isEmpty else { return }
        let jobs = try await claimLink.use { connection throws(PostgresError) in
            try await Queue.returnLeases(on: connection, session: session, numbers: orphans)
        }
        log.info("returned what a claim took whose answer was lost", [("jobs", "\(jobs)")])
    }

    private func stumble(_ error: PostgresError, pause: Duration) async {
        switch error {
        case .cancelled: return
        case .server(let server) where server.constraint?.hasPrefix("lease_session") == true:
            sessionGone.fire()  // the beat opens another
            await sessionChanged.wait(for: .seconds(2))
        case .server, .unreachable, .lost, .timedOut, .exhausted, .undecodable, .misconfigured:
            complaints.say("a claim failed", error)
            try? await Task.sleep(for: pause)
        }
    }
}
