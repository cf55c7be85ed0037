import Jobs
import Postgres
import Queues
import Telemetry
import Threads

extension JobWorker {
    /// One sign of life for all jobs. The last thing that stops, and nothing else waits on its connection.
    func beatLoop() async {
        var generation = beatLink.generation
        var lastBeat = ContinuousClock.now
        while !Task.isCancelled {
            stalls.began(.beating)
            do throws(PostgresError) {
                let stands = try await beat()
                if generation != beatLink.generation {
                    generation = beatLink.generation
                    try await checkLeases()
                }
                stalls.ended(.beating)
                lastBeat = .now
                desk.handBackHoarded()  // not in an outage, when nobody could start them either
                if !stands { try await renewSession() }
                tellLife(hasBeaten: true)
            } catch {
                complaints.say("a beat failed", error)
                tellLife(hasBeaten: false)
                if lastBeat.duration(to: .now) > options.cutOffAfter { cutOff() }
            }
            options.observer?.lives(health)
            await sessionGone.wait(for: outage.lasts == nil ? options.beat : .milliseconds(250))
        }
    }

    private func beat() async throws(PostgresError) -> Bool {
        let tallies = desk.takeTallies()
        let counts = desk.counts
        let stuck = desk.runs.count { $0.isStuck }
        let isStalled = stalls.longest(atLeast: options.stallsAfter) != nil
        let state = desk.isDraining ? "draining" : isStalled ? "cut off" : "working"
        do throws(PostgresError) {
            return try await beatLink.use { connection throws(PostgresError) in
                try await Queue.beat(
                    on: connection, session: desk.session, state: state,
                    running: counts.running, waiting: counts.waiting, stuck: stuck, tallies: tallies)
            }
        } catch {
            // A beat whose answer was lost may have been counted: then it is not counted twice.
            if !error.outcomeUnknown { desk.putBack(tallies) }
            throw error
        }
    }

    /// Leases that are gone from the database: their jobs belong to others now.
    private func checkLeases() async throws(PostgresError) {
        let ours = desk.leaseNumbers
        let live = try await beatLink.use { connection throws(PostgresError) in
            try await Queue.leasesHeld(on: connection, session: desk.session)
        }
        cancelLost(ours.subtracting(live))
    }

    private func cancelLost(_ numbers: Set<Int64>) {
        let loss = desk.lose(numbers)
        loss.settle(session: desk.session, log: log)
        if !loss.runs.isEmpty {
            log.warning("leases were lost; their runs are cancelled", [("runs", "\(loss.runs.count)")])
        }
    }

    /// Somebody took us for dead. Everything we held is lost; begin anew under another number.
    private func renewSession() async throws(PostgresError) {
        log.warning("this worker was taken for dead and its jobs given to others; opening a new session")
        cancelLost(desk.leaseNumbers)
        let direct: Bool
        if let connection = listenLink.current { direct = await !connection.isPooled } else { direct = false }
        try await openSession(direct: direct)
        sessionChanged.fire()
    }

    /// The watch over the other workers. A rescue may be long, and this worker's own sign of life does not wait for it.
    func watchLoop() async {
        var watch = Watch(limits: options.watch)
        var generation = houseLink.generation
        while !Task.isCancelled {
            do throws(PostgresError) {
                try await rescue(&watch, since: &generation)
            } catch {
                complaints.say("the watch over the other workers failed", error)
            }
            try? await Task.sleep(for: outage.lasts == nil ? options.beat : .milliseconds(250))
        }
    }

    private func rescue(_ watch: inout Watch, since generation: inout Int) async throws(PostgresError) {
        let signs = try await houseLink.use { connection throws(PostgresError) in
            try await Queue.watch(on: connection, session: desk.session)
        }
        // Behind the look, which may have opened the connection: while it was away nobody's beats were seen.
        if generation != houseLink.generation {
            watch.reconnected()
            generation = houseLink.generation
        }
        for (session, beat) in watch.look(signs, at: .now) {
            log.warning("a worker is lost; rescuing its jobs", [("session", String(session, radix: 16))])
            let began = ContinuousClock.now
            let rescue = try await houseLink.use { connection throws(PostgresError) in
                try await Queue.rescue(on: connection, session: session, beat: beat)
            }
            log.warning(
                "jobs were rescued",
                [
                    ("session", String(session, radix: 16)), ("jobs", "\(rescue.jobs)"),
                    ("quarantined", "\(rescue.quarantined)"),
                    ("took_ms", "\(Int(began.duration(to: .now) / .milliseconds(1)))"),
                ])
            if rescue.jobs > 0 {
                wakeups.lookEverywhere()
                gates.askAll()
                flowEnds.fire()
            }
        }
    }

    /// For too long without the database: kinds that are strict about it stop here, long before anybody starts their jobs again.
    private func cutOff() {
        for run in desk.runs where run.whenCutOff == .cancel { run.cancel(.cutOff) }
    }
}
