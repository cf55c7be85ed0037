import Encryption
import MillraceJobs
import MillraceQueues
import Postgres
import Synchronization
import Telemetry
import Threads

/// What handlers report while they run, on its way to the database: gathered for all runs of the process, written at most twice a
/// second, and before the end of a run that has reported. On connections of its own, opened with the first report or step: no claim
/// and no flush waits for it.
final class ReportWriter: WorkerPart {
    private struct State {
        var notes = ReportBuffer()
        /// Ends that wait for their run's notes.
        var waiting: [(key: ReportBuffer.Key, signal: Wakeup)] = []
    }

    /// Between two writes.
    static let pause = Duration.milliseconds(500)
    /// How long the end of a run waits for its notes at most. Only where the database is slow does it come to that.
    static let patience = Duration.seconds(5)

    let pool: Pool
    /// Of progress and log lines: steps and waits go before them where connections are few.
    private let notes: Pool
    let keys: Keyring
    let workerState: WorkerStateGuard
    let log: Log
    private let outage: Outage
    private let limitedLog: LogLimiter
    private let state = Mutex(State())
    private let signal = Wakeup()

    init(_ shared: WorkerShared) {
        keys = shared.options.keys
        let database = shared.options.database
        pool = Pool(database, size: 4)
        notes = database.budget == nil ? pool : Pool(database.urgent(.late), size: 4)
        workerState = shared.state
        outage = shared.outage
        limitedLog = shared.limitedLog
        log = shared.log
    }

    /// For the contexts of this worker's runs.
    var backend: RunBackend {
        RunBackend(
            steps: { try await self.steps($0) },
            record: { try await self.record($0, $1, $2) },
            progress: { context, progress in
                self.note { $0.progress(progress, of: ReportBuffer.Key(context), attempt: context.attempt, at: .now) }
            },
            line: { context, line in
                self.say(line, context)
                self.note { $0.line(line, of: ReportBuffer.Key(context), attempt: context.attempt, at: .now) }
            },
            spawn: { try await self.spawn($0, $1) },
            recordUndoable: { try await self.record($0, $1, $2, isUndoable: true) },
            undone: { try await self.undone($0) },
            wait: { try await self.wait($0, $1) },
            publish: { try await self.publish($0, $1, key: $2, call: $3) },
            putState: { try await self.putState($0, $1) },
            earlier: { try await self.earlier($0, after: $1) },
            changed: { try await self.changed($0, step: $1, $2) })
    }

    /// The process's own log has every line, whatever becomes of the job's.
    private func say(_ line: LogLine, _ context: Context) {
        let level: Log.Level =
            switch line.level {
            case .debug: .debug
            case .info: .info
            case .warning: .warning
            case .error: .error
            }
        log.write(level, line.text) { context.data }
    }

    private func note(_ change: (inout ReportBuffer) -> Void) {
        let isFirst = state.withLock { state in
            defer { change(&state.notes) }
            return state.notes.isEmpty
        }
        if isFirst { signal.fire() }
    }

    /// Before the end of a run is told: what it has reported should be there when its end is. Not while the database is unreachable.
    func settle(_ context: Context) async {
        let key = ReportBuffer.Key(context)
        let written = Wakeup()
        let waits = state.withLock { state in
            guard outage.lasts == nil, state.notes.holds(key) else { return false }
            state.waiting.append((key, written))
            return true
        }
        guard waits else { return }
        signal.fire()
        // A cancelled run's notes count as well: the wait is not the run's.
        await uncancelled { _ = await written.wait(for: Self.patience) }
    }

    /// Writes until it is cancelled, and then what is left; what is not taken then is lost to the job, and stands in the process's log.
    func run() async {
        var last = ContinuousClock.now - Self.pause
        while true {
            guard state.withLock({ !$0.notes.isEmpty }) else {
                if Task.isCancelled { return }
                await signal.wait()
                continue
            }
            while !Task.isCancelled, state.withLock({ $0.waiting.isEmpty }) {
                let left = Self.pause - last.duration(to: .now)
                guard left > .zero else { break }
                await signal.wait(for: left)
            }
            last = .now
            let isTaken = await uncancelled { await write() }  // a broken write would be written again
            if Task.isCancelled, !isTaken { return }
        }
    }

    private func write() async -> Bool {
        guard let reports = state.withLock({ $0.notes.take(at: .now) }) else { return true }
        var isTaken = true
        do {
            let later = try await notes.withConnection { connection throws(PostgresError) in
                try await Queue.report(reports, on: connection)
            }
            state.withLock { $0.notes.written(except: later) }
            isTaken = later.isEmpty
        } catch let error as PostgresError where error.isOutage || error.outcomeUnknown {
            state.withLock { $0.notes.failed() }
            isTaken = false
        } catch {
            if let error = error as? PostgresError { limitedLog.say("progress and log lines were not taken", error) }
            state.withLock { $0.notes.written() }
        }
        let settled = state.withLock { state in
            // An end does not wait for a second try.
            let settled = state.waiting.filter { !isTaken || !state.notes.holds($0.key) }
            state.waiting.removeAll { !isTaken || !state.notes.holds($0.key) }
            return settled
        }
        for end in settled { end.signal.fire() }
        return isTaken
    }
}
