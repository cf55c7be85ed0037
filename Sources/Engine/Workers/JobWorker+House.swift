import FoundationEssentials
import Jobs
import Postgres
import Queues
import Synchronization
import Telemetry
import Threads

extension JobWorker {
    /// Timeouts, cancels from outside, and handlers that ignore both.
    func pulseLoop() async {
        var asked = ContinuousClock.now - .seconds(1)
        while !Task.isCancelled {
            let now = ContinuousClock.now
            var next = now + .milliseconds(500)
            let runs = desk.runs
            for run in runs {
                if let deadline = run.deadline {
                    if deadline <= now { run.cancel(.timeout) } else { next = min(next, deadline) }
                }
                if run.turnsStuck(at: now, grace: options.stuckGrace) {
                    log.warning("a handler ignores its cancellation and keeps its slot", run.data)
                }
            }
            if !runs.isEmpty, outage.lasts == nil, asked.duration(to: now) >= .milliseconds(450) {
                asked = now
                do throws(PostgresError) {
                    let cancels = try await houseLink.use { connection throws(PostgresError) in
                        try await Queue.cancels(on: connection, session: desk.session)
                    }
                    for cancel in cancels {
                        desk.run(number: cancel.number, id: cancel.job)?.cancel(.requested)
                    }
                } catch {
                    complaints.say("reading cancels failed", error)
                }
            }
            // Every run with a timeout fires the pulse: not more often than every 20 ms for all of them.
            try? await Task.sleep(for: .milliseconds(20))
            let pause = ContinuousClock.now.duration(to: next)
            if pause > .zero { await pulse.wait(for: pause) }
        }
    }

    /// Moves what comes due. Sleeps until the next due time it knows, at most a second; while busy it looks more often, for then
    /// nobody notifies. It walks over nothing that it has moved before, but for a look ten times a second at what has committed
    /// behind it within a second; what commits later, `lanesLoop` finds.
    func promoteLoop() async {
        var floor: Date?
        var lookedBack = ContinuousClock.now
        while !Task.isCancelled, !desk.isDraining {
            var pause = doorman.holds ? Duration.seconds(1) : .milliseconds(50)
            do throws(PostgresError) {
                var from = floor
                if lookedBack.duration(to: .now) > .milliseconds(100) {
                    from = floor?.addingTimeInterval(-1)
                    lookedBack = .now
                }
                let promotion = try await houseLink.use { [from] connection throws(PostgresError) in
                    try await Queue.promote(on: connection, floor: from, wanted: 5000)
                }
                if let upTo = promotion.upTo { floor = max(floor ?? upTo, upTo) }
                wakeups.filled(promotion.lanes)
                if let due = promotion.nextDue {
                    // One by one, each that comes due right behind another would cost a statement of its own.
                    let least = promotion.moved > 0 ? Duration.milliseconds(4) : .milliseconds(1)
                    pause = min(pause, max(least, .seconds(due.timeIntervalSince(promotion.now))))
                }
            } catch {
                complaints.say("promoting failed", error)
                floor = nil
                pause = .seconds(1)
            }
            await promotion.wait(for: pause)
        }
    }

    /// Claims that follow each other do not wait for what may have committed late: it is asked for beside them.
    func sampleLoop() async {
        while !Task.isCancelled, !desk.isDraining {
            guard await samples.wait(for: nil) else { continue }
            do throws(PostgresError) {
                try await sample(by: houseLink)
            } catch {
                complaints.say("looking for what committed late failed", error)
            }
        }
    }

    func sample(by link: LoopConnection) async throws(PostgresError) {
        let horizon = try await horizon(by: link)
        if options.sweeps { floors.withLock { $0.sample(horizon) } }
    }

    func horizon(by link: LoopConnection) async throws(PostgresError) -> Horizon {
        try await link.use { connection throws(PostgresError) in try await Queue.horizon(on: connection) }
    }

    /// Once a second: what may have committed late, which queues there are, what the slots' counts left behind; every five: unique keys that
    /// nobody has wanted again; once a minute: partitions.
    func sweepLoop() async {
        var lastMaintenance = ContinuousClock.now - .seconds(50)
        var slots: (resume: Int64?, next: ContinuousClock.Instant) = (nil, .now)
        var keys: (floor: Date?, next: ContinuousClock.Instant) = (nil, .now)
        while !Task.isCancelled, !desk.isDraining {
            do throws(PostgresError) {
                try await refreshQueues()
                try await sample(by: sweepLink)
                try await sweepLink.use { connection throws(PostgresError) in
                    try await Queue.heedCancels(on: connection)
                }
                if slots.next <= .now {
                    let began = ContinuousClock.now
                    slots.resume = try await sweepLink.use { [slots] connection throws(PostgresError) in
                        try await Queue.sweepSlots(on: connection, after: slots.resume)
                    }
                    // Claims wait meanwhile, and what a snapshot keeps makes it dear.
                    slots.next = .now + min(began.duration(to: .now) * 400, .seconds(60))
                }
                if keys.next <= .now {
                    let expired = try await sweepLink.use { [keys] connection throws(PostgresError) in
                        try await Queue.expireKeys(on: connection, floor: keys.floor, most: 10_000)
                    }
                    keys = (expired.upTo ?? keys.floor, expired.isAll ? .now + .seconds(5) : .now)
                }
                if lastMaintenance.duration(to: .now) > .seconds(60) {
                    lastMaintenance = .now
                    try await maintain()
                }
            } catch {
                complaints.say("housekeeping failed", error)
            }
            try? await Task.sleep(for: .seconds(1))
        }
    }

    private func maintain() async throws(PostgresError) {
        do throws(PostgresError) {
            let work = try await sweepLink.use { connection throws(PostgresError) in
                try await Queue.maintain(on: connection)
            }
            if work.made + work.dropped > 0 {
                log.info("partitions were made or dropped", [("made", "\(work.made)"), ("dropped", "\(work.dropped)")])
            }
            let strays = try await sweepLink.use { connection throws(PostgresError) in
                try await Queue.mendSlots(on: connection)
            }
            if strays > 0 {
                log.warning(
                    "the counts of limits did not agree with the running jobs and were corrected",
                    [("limits", "\(strays)")])
                gates.askAll()
            }
        } catch {
            // 55P03: a long transaction reads the tables; the partitions stand days ahead, so there is time.
            guard error.sqlState == "55P03" else { throw error }
        }
    }

    /// Hears who calls: us, and other rooms.
    func listenLoop() async {
        var backoff = Backoff()
        var random = SystemRandomNumberGenerator()
        var generation = listenLink.generation
        while !Task.isCancelled {
            do throws(PostgresError) {
                let connection = try await listenLink.connection()
                if generation != listenLink.generation {
                    generation = listenLink.generation
                    // Tried, not waited for: any login can see the number, and take the lock when our connection is lost. Without it we
                    // are found dead only by our beat.
                    try await connection.execute("select pg_try_advisory_lock($1)", [.int8(desk.session)])
                    try await hearing.begin(on: connection)
                }
                try await hearing.hear(on: connection)
                backoff.reset()
            } catch {
                if error == .cancelled { continue }
                hearing.end()
                listenLink.drop()
                try? await Task.sleep(for: backoff.next(using: &random))
            }
        }
        hearing.end()
    }

    func heard(_ news: NotificationHub.News) {
        switch news {
        case .began: wakeups.lookEverywhere()
        case .said(let payload): heed(payload)
        case .ended: break
        }
    }

    private func heed(_ payload: String) {
        if payload == "schedules" { return timetables.fire() }
        let parts = payload.split(separator: ".").map { Int32($0) }
        switch (parts.first ?? nil, parts.count > 1 ? parts[1] : nil) {
        case (let queue?, let code?):
            guard queues.withLock({ $0.serves?.contains(queue) ?? true }) else { return }
            wakeups.hint(Lane(queue: queue, code: code))
            // A third part says that the job is in the lane; without, it may be about to come due.
            if parts.count == 2 { promotion.fire() }
        case (_?, nil): wakeups.lookEverywhere()
        default:
            switch payload {
            case "limits":
                wakeups.lookEverywhere()
                gates.askAll()
            case "flows": flowEnds.fire()
            default: doorman.signal.fire()
            }
        }
    }
}
