import Calendars
import Encryption
public import FoundationEssentials
public import MillraceJobs
import MillraceQueues
import Postgres

extension Client {
    /// Makes a schedule, or changes the one with this name; all workers follow at once.
    ///
    /// ```swift
    /// try await millrace.schedule("nightly", "0 2 * * *", zone: "Europe/Berlin", BuildReport(), overlap: .skip)
    /// ```
    /// - Parameters:
    ///   - name: The schedule's name, which identifies it.
    ///   - expression: Five cron fields (six with seconds in front), a word such as `@daily`, or an interval such as `every 15m`.
    ///   - zone: The time zone whose clocks count.
    ///   - job: The job that is enqueued each time.
    ///   - catchUp: What happens to times that passed while no worker looked.
    ///   - overlap: What happens when its last job has not ended.
    ///   - jitter: How much later a job may run, so that not everything starts at once.
    @discardableResult
    public func schedule<Work: Job>(
        _ name: String, _ expression: String, zone: String = "UTC", _ job: Work,
        catchUp: Schedule.CatchUp = .latest, overlap: Schedule.Overlap = .allow, jitter: Duration = .zero,
        queue: String? = nil, priority: Int? = nil, tenant: String? = nil
    ) async throws(QueueError) -> ScheduleChange {
        var schedule = Schedule(name, expression, zone: zone, kind: Work.kind, args: try Self.encode(job))
        schedule.encrypted = Work.encrypted
        schedule.catchUp = catchUp
        schedule.overlap = overlap
        schedule.jitter = jitter
        schedule.queue = queue
        schedule.priority = priority
        schedule.tenant = tenant
        return try await self.schedule(schedule)
    }

    /// Makes or changes a schedule for a job of any kind, by name.
    @discardableResult
    public func schedule(_ schedule: Schedule) async throws(QueueError) -> ScheduleChange {
        try schedule.check()
        let sealed = try schedule.sealed(with: keys)
        return try await using { connection throws(PostgresError) in
            try await Queue.setSchedule(sealed, on: connection)
        }
    }

    /// Removes a schedule; jobs it has enqueued stay.
    public func removeSchedule(_ name: String) async throws(QueueError) {
        try await using { connection throws(PostgresError) in try await Queue.removeSchedule(name, on: connection) }
    }

    /// No fires until it is resumed; the times of a pause are not made good. False when it was paused already.
    @discardableResult
    public func pauseSchedule(_ name: String) async throws(QueueError) -> Bool {
        try await using { connection throws(PostgresError) in try await Queue.pauseSchedule(name, on: connection) }
    }

    /// Goes on with the next time after now. False when it was not paused.
    @discardableResult
    public func resumeSchedule(_ name: String) async throws(QueueError) -> Bool {
        try await using { connection throws(PostgresError) in try await Queue.resumeSchedule(name, on: connection) }
    }

    /// Enqueues its job now, even if it is paused, and returns the job's number; the planned times stay.
    @discardableResult
    public func runSchedule(_ name: String) async throws(QueueError) -> Int64 {
        try await using { connection throws(PostgresError) in try await Queue.runSchedule(name, on: connection) }
    }

    /// All schedules, or the one of a name.
    public func schedules(named name: String? = nil) async throws(QueueError) -> [ScheduleStatus] {
        try await using { connection throws(PostgresError) in try await Queue.schedules(named: name, on: connection) }
            .map(ScheduleStatus.init)
    }
}

/// The state of a schedule.
public struct ScheduleStatus: Sendable {
    /// Its name.
    public let name: String
    /// The kind of its jobs.
    public let kind: String
    /// As it was given.
    public let expression: String
    /// The time zone whose clocks count.
    public let zone: String
    /// Since when it is paused.
    public let pausedAt: Date?
    /// Its next time; nil while it is paused, or no worker has worked it out.
    public let nextAt: Date?
    /// The last time that got a job.
    public let lastFireAt: Date?
    /// Its last job, one enqueued by hand included.
    public let lastJob: Int64?
    /// How many times were missed since it was made.
    public let missed: Int
    /// Why it does not fire: an unknown zone for instance.
    public let problem: String?

    init(_ row: ScheduleRow) {
        name = row.name
        kind = row.kind
        expression = row.expression
        zone = row.zone
        pausedAt = row.pausedAt
        nextAt = row.nextAt
        lastFireAt = row.lastFireAt
        lastJob = row.lastJob
        missed = row.missed
        problem = row.problem
    }
}

extension Schedule {
    /// Checks what SQL cannot check.
    func check() throws(QueueError) {
        do throws(ExpressionError) {
            _ = try Timetable(expression)
        } catch {
            throw QueueError(.invalid, "The schedule \(name) has no valid expression: \(error)")
        }
        do throws(ZoneError) {
            _ = try ZoneFiles.system.zone(zone)
        } catch {
            throw QueueError(.invalid, "The schedule \(name) has no valid time zone: \(error)")
        }
    }
}

extension Schedule {
    /// As the database may see it. Each call encrypts it again, with another nonce, so setting it again counts as a change.
    func sealed(with keys: Keyring) throws(QueueError) -> Schedule {
        guard encrypted else { return self }
        var sealed = self
        do {
            sealed.args = try keys.seal(args, kind: kind)
            sealed.encrypted = false  // nobody encrypts them again
        } catch {
            throw QueueError(error)
        }
        return sealed
    }
}
