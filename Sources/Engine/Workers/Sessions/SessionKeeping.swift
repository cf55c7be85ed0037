import MillraceJobs
import MillraceQueues
import Postgres
import Telemetry
import Threads

/// Keeps the worker's session: opens it, tells every few seconds that it lives, opens another when it was taken for dead, and closes it.
/// The last part that stops. Nothing else waits on its connection.
actor SessionKeeping: SharingPart {
    nonisolated let shared: WorkerShared
    let running: Running
    /// Every session that the database may know: an opening whose answer was lost counts, and all are closed at the end.
    var opened: Set<Int64> = []
    /// Why this program cannot work with the schema.
    var misfit: JobWorker.Failure?
    /// The kinds of its handlers, as it has registered them.
    var known: [Int32] = []
    let worked: [String: WorkedKind]
    /// What `Queue.versionsMark` said when it last read which kinds it takes.
    var mark: String?

    init(_ shared: WorkerShared, _ running: Running) {
        self.shared = shared
        self.running = running
        worked = Dictionary(
            running.handlers.map {
                ($0.kind, WorkedKind(handler: $0, chunkRunner: running.chunkRunners[$0.kind]))
            }, uniquingKeysWith: { first, _ in first })
    }

    func run() async {
        var generation = links.beat.generation
        var lastBeat = ContinuousClock.now
        while !Task.isCancelled {
            stalls.began(.beating)
            do throws(PostgresError) {
                let stands = try await beat()
                if generation != links.beat.generation {
                    generation = links.beat.generation
                    try await checkLeases()
                }
                stalls.ended(.beating)
                lastBeat = .now
                state.handBackHoarded()  // not in an outage, when nobody could start them either
                if stands { try await heedVersions() } else { try await renewSession() }
                shared.tellLife(hasBeaten: true)
            } catch {
                limitedLog.say("a beat failed", error)
                shared.tellLife(hasBeaten: false)
                if lastBeat.duration(to: .now) > options.cutOffAfter { cutOff() }
            }
            options.observer?.lives(shared.health)
            await shared.sessionGone.wait(for: outage.lasts == nil ? options.beat : .milliseconds(250))
        }
    }

    func beat() async throws(PostgresError) -> Bool {
        let (tallies, failures) = (state.takeTallies(), state.takeFailures())
        let counts = state.counts
        let stuck = state.runs.count { $0.isStuck }
        let isStalled = stalls.longest(atLeast: options.stallsAfter) != nil
        let word = state.isDraining ? "draining" : isStalled ? "cut off" : "working"
        do throws(PostgresError) {
            return try await links.beat.use { connection throws(PostgresError) in
                try await Queue.beat(
                    on: connection, session: state.session, state: word,
                    running: counts.running, waiting: counts.waiting, stuck: stuck, tallies: tallies,
                    failures: failures)
            }
        } catch {
            // A beat whose answer was lost may have been counted: then it is not counted twice.
            if !error.outcomeUnknown { state.putBack(tallies, failures) }
            throw error
        }
    }

    /// Leases that are gone from the database: their jobs belong to others now.
    private func checkLeases() async throws(PostgresError) {
        let ours = state.leaseNumbers
        let live = try await links.beat.use { connection throws(PostgresError) in
            try await Queue.leasesHeld(on: connection, session: state.session)
        }
        cancelLost(ours.subtracting(live))
    }

    private func cancelLost(_ numbers: Set<Int64>) {
        let loss = state.lose(numbers)
        loss.settle(session: state.session, log: log)
        if !loss.runs.isEmpty {
            log.warning("leases were lost; their runs are cancelled", [("runs", "\(loss.runs.count)")])
        }
    }

    /// Another worker took this one for dead. Everything it held is lost; it begins again under another number.
    private func renewSession() async throws(PostgresError) {
        log.warning("this worker was taken for dead and its jobs given to others; opening a new session")
        cancelLost(state.leaseNumbers)
        let direct: Bool
        if let connection = links.listen.current { direct = await !connection.isPooled } else { direct = false }
        try await openSession(direct: direct)
        shared.sessionChanged.fire()
    }

    /// For too long without the database: kinds that are strict about it stop here, long before anybody starts their jobs again.
    private func cutOff() {
        for run in state.runs where run.whenCutOff == .cancel { run.cancel(.cutOff) }
    }
}
