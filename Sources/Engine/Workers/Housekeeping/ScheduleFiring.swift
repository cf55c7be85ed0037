import Calendars
import FoundationEssentials
import MillraceQueues
import Postgres
import Telemetry
import Threads

/// Fires schedules that are due, of any kind. Every worker tries; the database lets one through. Sleeps until the next time it knows, a
/// second at most, by the difference of the database's times.
actor ScheduleFiring: SharingPart {
    nonisolated let shared: WorkerShared

    init(_ shared: WorkerShared) { self.shared = shared }

    func run() async {
        while !Task.isCancelled, !state.isDraining {
            var pause = Duration.seconds(1)
            do throws(PostgresError) {
                let wait = try await links.house.use { connection throws(PostgresError) in
                    try await Queue.scheduleWait(on: connection)
                }
                if let next = wait.nextAt {
                    pause = min(pause, .seconds(next.timeIntervalSince(wait.now)) + .milliseconds(1))
                    if next <= wait.now {
                        // Nothing of it was ours: another worker is at it, or a person's open transaction has it.
                        pause = try await fireDue() ? .milliseconds(1) : .milliseconds(250)
                    }
                }
            } catch {
                limitedLog.say("firing schedules failed", error)
            }
            await shared.timetables.wait(for: pause)
        }
    }

    /// True when it dealt with something.
    private func fireDue() async throws(PostgresError) -> Bool {
        let due = try await links.clock.use { connection throws(PostgresError) in
            try await Queue.dueSchedules(on: connection)
        }
        var dealt = false
        // Each worker in an order of its own: at two in the morning thousands are due, and all would try for the same one.
        for schedule in due.shuffled() {
            if Task.isCancelled { return false }
            switch Self.plan(schedule) {
            case .success(let plan): if try await advance(schedule, by: plan) { dealt = true }
            case .failure(let problem): try await report(problem.sentence, of: schedule)
            }
        }
        return dealt
    }

    /// False when somebody else is at it, or it is another by now.
    private func advance(_ schedule: DueSchedule, by plan: FirePlan) async throws(PostgresError) -> Bool {
        do throws(PostgresError) {
            let jobs = try await links.clock.use { connection throws(PostgresError) in
                try await Queue.advance(schedule, by: plan, on: connection)
            }
            guard let jobs else { return false }
            let data = [("schedule", schedule.name), ("jobs", "\(jobs)"), ("missed", "\(plan.missed?.count ?? 0)")]
            if plan.missed != nil {
                log.info("a schedule's times were missed", data)
            } else if jobs > 0 {
                log.debug("a schedule fired", data)
            }
            return true
        } catch {
            // What the database refuses now, a full queue for instance, it may take in a moment; others go on meanwhile.
            guard case .server(let server) = error, !error.isOutage, !server.sqlState.hasPrefix("40") else {
                throw error
            }
            try await report(server.message, of: schedule)
            return false
        }
    }

    private func report(_ problem: String, of schedule: DueSchedule) async throws(PostgresError) {
        let isKnown = try await links.clock.use { connection throws(PostgresError) in
            try await Queue.reportProblem(problem, of: schedule, on: connection)
        }
        if isKnown, schedule.problem != problem {
            log.warning("a schedule cannot fire", [("schedule", schedule.name), ("error", problem)])
        }
    }

    private struct Problem: Error {
        let sentence: String
    }

    private static func plan(_ schedule: DueSchedule) -> Result<FirePlan, Problem> {
        func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970.rounded(.down)) }
        do {
            let punctuality = FiringRules(
                timetable: try Timetable(schedule.expression), zone: try ZoneFiles.system.zone(schedule.zone),
                anchor: seconds(schedule.anchor), catchUp: schedule.catchUp)
            let plan = punctuality.plan(
                planned: schedule.nextAt.map(seconds), from: seconds(schedule.plannedFrom), now: seconds(schedule.now))
            return plan.map(Result.success) ?? .failure(Problem(sentence: "it never fires again"))
        } catch {
            return .failure(Problem(sentence: "\(error)"))
        }
    }
}
