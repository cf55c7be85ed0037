import Calendars
import FoundationEssentials
import Postgres
import Queues
import Telemetry
import Threads

extension Worker {
    /// Fires what is due, of whatever kind. Every worker does; the database lets one through. Sleeps until the next time it knows, a
    /// second at most, by the difference of the database's times.
    func scheduleLoop() async {
        while !Task.isCancelled, !desk.isDraining {
            var pause = Duration.seconds(1)
            do throws(PostgresError) {
                let wait = try await houseLink.use { connection throws(PostgresError) in
                    try await Queue.scheduleWait(on: connection)
                }
                if let next = wait.nextAt {
                    pause = min(pause, .seconds(next.timeIntervalSince(wait.now)) + .milliseconds(1))
                    if next <= wait.now {
                        try await fireDue()
                        pause = .milliseconds(10)  // another worker may have what we passed by
                    }
                }
            } catch {
                complaints.say("firing schedules failed", error)
            }
            await timetables.wait(for: pause)
        }
    }

    private func fireDue() async throws(PostgresError) {
        let due = try await clockLink.use { connection throws(PostgresError) in
            try await Queue.dueSchedules(on: connection)
        }
        for schedule in due {
            if Task.isCancelled { return }
            switch Self.plan(schedule) {
            case .success(let plan): try await advance(schedule, by: plan)
            case .failure(let problem): try await report(problem.sentence, of: schedule)
            }
        }
    }

    private func advance(_ schedule: DueSchedule, by plan: FirePlan) async throws(PostgresError) {
        do throws(PostgresError) {
            let jobs = try await clockLink.use { connection throws(PostgresError) in
                try await Queue.advance(schedule, by: plan, on: connection)
            }
            guard let jobs else { return }
            let data = [("schedule", schedule.name), ("jobs", "\(jobs)"), ("missed", "\(plan.missed?.count ?? 0)")]
            if plan.missed != nil {
                log.info("a schedule's times were missed", data)
            } else if jobs > 0 {
                log.debug("a schedule fired", data)
            }
        } catch {
            // What the database refuses now, a full queue for instance, it may take in a moment; others go on meanwhile.
            guard case .server(let server) = error, !error.isOutage, !server.sqlState.hasPrefix("40") else { throw error }
            try await report(server.message, of: schedule)
        }
    }

    private func report(_ problem: String, of schedule: DueSchedule) async throws(PostgresError) {
        if schedule.problem != problem {
            log.warning("a schedule cannot fire", [("schedule", schedule.name), ("error", problem)])
        }
        try await clockLink.use { connection throws(PostgresError) in
            try await Queue.reportProblem(problem, of: schedule, on: connection)
        }
    }

    private struct Problem: Error {
        let sentence: String
    }

    private static func plan(_ schedule: DueSchedule) -> Result<FirePlan, Problem> {
        func seconds(_ date: Date) -> Int64 { Int64(date.timeIntervalSince1970.rounded(.down)) }
        do {
            let punctuality = Punctuality(
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
