import MillraceJobs
import MillraceQueues
import Postgres

/// Follows one job to its end, through outages of the database, until the timeout.
struct Follower {
    enum Ending {
        case ended(JobDetail)
        /// With its last seen state.
        case timedOut(JobDetail?)
        /// There is no such job, or no longer.
        case gone
    }

    let id: Int64
    let options: ConnectionOptions
    let console: Console
    let deadline: ContinuousClock.Instant?
    /// Called for every change of state, attempt or progress.
    var onChange: (JobDetail) -> Void = { _ in }

    private static let first = Duration.milliseconds(100)
    private static let slowest = Duration.seconds(1)

    func follow(on given: Connection) async throws -> Ending {
        var connection: Connection? = given
        var pause = Self.first
        var last: JobDetail?
        var isAway = false
        var told: String?
        let region = console.live()
        let started = ContinuousClock.now
        while true {
            do throws(PostgresError) {
                let now = try await usable(connection)
                connection = now
                let found = try await Queue.job(id, on: now)
                if isAway { console.note("the database is back") }
                isAway = false
                guard let job = found else { return .gone }
                if job.state != last?.state || job.attempt != last?.attempt || job.crashes != last?.crashes
                    || job.progress != last?.progress
                {
                    onChange(job)
                    pause = Self.first
                }
                last = job
                draw(job, since: started, in: region)
                // In line for long: say what it waits for.
                if job.state == .ready || job.state == .blocked, pause >= Self.slowest,
                    let reason = try await reason(on: now), reason != told
                {
                    told = reason
                    console.note("job \(id) does not run: \(reason)")
                }
                if job.state.isFinal {
                    await now.close()
                    return .ended(job)
                }
            } catch {
                guard error.isOutage || error.isSlowness else { throw DatabaseFailure(error) }
                if !isAway { console.warning("the database is unreachable; waiting for it (\(error))") }
                isAway = true
                if let broken = connection { await broken.close() }
                connection = nil
            }
            let left = deadline.map { $0 - .now } ?? pause
            guard left > .zero else { return .timedOut(last) }
            try await Task.sleep(for: min(pause, left))
            pause = min(pause * 1.5, Self.slowest)
        }
    }

    private func reason(on connection: Connection) async throws(PostgresError) -> String? {
        guard let bytes = try await Queue.why(id, on: connection), let why = try? JSONValue.read(bytes),
            let sentence = why["sentence"]?.text
        else { return nil }
        return DisplayWidth.harmless(sentence + (why["hint"]?.text.map { " (\($0))" } ?? ""))
    }

    private func usable(_ connection: Connection?) async throws(PostgresError) -> Connection {
        if let connection, await !connection.isBroken { return connection }
        var options = options
        // Neither connecting nor asking may outlast the wait.
        let left = deadline.map { max(.milliseconds(100), $0 - .now) } ?? .seconds(5)
        options.connectDeadline = min(.seconds(5), left)
        return try await Connection.open(options, name: "millrace-watch")
    }

    private func draw(_ job: JobDetail, since started: ContinuousClock.Instant, in region: LiveRegion) {
        guard console.errors.isTerminal, console.verbosity > .quiet else { return }
        if job.state.isFinal {
            region.update([])
            return
        }
        var parts = ["job \(job.id)", job.style.paint(job.state.rawValue, on: console.colorsErrors)]
        if job.attempt > 0 { parts.append("attempt \(job.attempt)") }
        if job.crashes > 0 { parts.append("crashes \(job.crashes)") }
        if let worker = job.worker { parts.append(DisplayWidth.harmless(worker)) }
        if let advance = job.advance { parts.append(DisplayWidth.harmless(advance.sentence)) }
        parts.append(Humane.duration(.seconds((ContinuousClock.now - started).components.seconds)))
        region.update([parts.joined(separator: " · ")])
    }
}

extension ExitCode {
    /// The exit code for the end of an awaited job.
    init(awaiting state: JobState) {
        switch state {
        case .succeeded: self = .done
        case .dead, .cancelled: self = .jobDied
        case .ready, .scheduled, .blocked, .running: self = .timedOut
        }
    }
}
