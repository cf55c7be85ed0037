import Calendars
import FoundationEssentials
import MillraceQueues
import Postgres

extension Command {
    static func status(of rooms: [Room]) -> Command {
        Command(
            ["status"],
            summary: "Show the state of queues, workers and storage",
            discussion: """
                Exit 0 when all is well, 10 when degraded, 11 when critical. With --fail-if its conditions alone decide: exit 11 \
                when one holds or cannot be judged, else 0. Conditions are oldest (the oldest ready job's wait), failed (failed \
                runs of all runs in the last 5 minutes), ready, running, dead (in the last day), workers, retrying (jobs that \
                wait for another attempt), paused (jobs that wait in paused queues), failing (kinds that fail) and unserved \
                (mail, notices and the like that wait while no worker serves them), with >, <, >= or <= and a number: oldest>60s, \
                failed>5%, ready>=1000, workers<1. Counts stop at 10,000 (10,000+) unless --exact.

                A kind fails when at least 10 of its runs ended in the last 5 minutes, or else in the last hour, and half of \
                them or more failed; when that is so on the newest build (MILLRACE_BUILD of the workers) and was not before; or \
                when at least 10 of its jobs wait for another attempt and fewer succeeded in the last hour. Each is degraded, \
                with the error that most of them have. A paused queue is, once jobs wait in it.

                With --quiet one line is printed: the verdict that the exit code says, and why. In a narrow window the less \
                important columns are left out.

                --at shows queues, workers, providers, storage and the verdict as they were, from samples of every ten seconds, \
                of a day ago or more of every minute, kept 14 days. A time without a zone is that of this machine (TZ). The \
                verdict knows what samples know: nothing of schedules, mail, notices and check-ins.

                With MILLRACE_DATABASES all databases are shown, a line each and then each by itself. The exit code is the worst: \
                5 when one cannot be reached, 6 when one has another schema, else 11, 10 or 0. --database shows one alone.
                """,
            flags: [
                .toggle("watch", environment: .none, help: "Refresh every second until Ctrl-C, or --timeout."),
                .single(
                    "fail-if", "CONDITIONS",
                    .custom(expects: FailIf.expectation) { text in
                        do throws(ValueRefusal) {
                            _ = try FailIf.read(text)
                            return nil
                        } catch {
                            return error.complaint
                        }
                    }, help: "Exit with 11 when one holds, as in oldest>60s,failed>5%."),
                .toggle("exact", help: "Count all, not only up to 10,000."),
                .single(
                    "at", "TIME", .moment, environment: .none, help: "The fleet as it was then, as in 03:12 or -2h."),
            ],
            examples: [
                Example("millrace status", "one screen"),
                Example("millrace status --watch", "and again every second"),
                Example("millrace status --fail-if 'oldest>60s,failed>5%' --quiet", "for a monitor"),
                Example("millrace status --at 03:12", "last night"),
            ]
        ) { invocation in
            let failIf = try invocation.parsed.string("fail-if").map { text in try FailIf.read(text) }
            if let text = invocation.parsed.string("at") {
                guard failIf == nil, !invocation.parsed.isOn("watch"), !invocation.parsed.isOn("exact") else {
                    throw Failure(.misused, "--at looks at the past: it goes without --watch, --fail-if and --exact")
                }
                return try await invocation.showPast(try PastTimeText.read(text))
            }
            if invocation.settings.databases.count > 1 {
                return try await invocation.showSeveral(failIf, rooms, watches: invocation.parsed.isOn("watch"))
            }
            return invocation.parsed.isOn("watch")
                ? try await invocation.watchStatus(failIf, rooms) : try await invocation.showStatus(failIf, rooms)
        }
    }
}

extension Invocation {
    private func report(on connection: Connection, _ failIf: FailIf?, _ rooms: [Room]) async throws -> StatusReport {
        let exact = parsed.isOn("exact")
        let cap = exact ? nil : max(QueueDepth.cap, failIf?.neededCap ?? 0)
        let report = try await StatusReport.read(
            of: rooms, on: connection, cap: cap, patience: exact ? .seconds(60) : .seconds(2))
        if let state = report.schema.value, let mismatch = SchemaCheck.mismatch(state) { throw mismatch }
        return report
    }

    fileprivate func showStatus(_ failIf: FailIf?, _ rooms: [Room]) async throws -> ExitCode {
        try await withSchema { connection in
            let view = StatusView(try await report(on: connection, failIf, rooms), failIf: failIf)
            console.show(view.json) {
                guard console.verbosity > .quiet else {
                    console.output.write(view.line(colors: console.colorsOutput) + "\n")
                    return
                }
                for line in view.lines(width: console.output.columns, colors: console.colorsOutput) {
                    console.output.write(line + "\n")
                }
            }
            return view.exitCode
        }
    }

    /// All databases; again every second if somebody watches.
    fileprivate func showSeveral(_ failIf: FailIf?, _ rooms: [Room], watches: Bool) async throws -> ExitCode {
        let deadline = deadline
        let region = watches ? console.live(on: console.output) : nil
        while true {
            let found = await severalStatus { connection in
                StatusView(try await report(on: connection, failIf, rooms), failIf: failIf)
            }
            console.show(found.json) {
                let lines = found.lines(
                    width: console.output.columns, colors: console.colorsOutput,
                    isBrief: console.verbosity <= .quiet)
                if let region { return region.update(lines) }
                for line in lines { console.output.write(line + "\n") }
            }
            guard watches, deadline.map({ $0 > .now }) ?? true, console.output.failure == nil else {
                return found.exitCode
            }
            try await Task.sleep(for: min(.seconds(1), deadline.map { max(.zero, $0 - .now) } ?? .seconds(1)))
        }
    }

    fileprivate func showPast(_ moment: PastTime) async throws -> ExitCode {
        let zone = LocalZone.find(environment)
        return try await withSchema { connection in
            let date = moment.date(now: try await Queue.now(on: connection), zone: zone)
            let sample = try await Queue.sample(at: date, on: connection)
            guard let at = sample.at else { throw Failure.notSampled(date, sample, zone) }
            let view = PastView(try await PastReport.read(sample, at: at, on: connection), zone: zone)
            console.show(view.json) {
                guard console.verbosity > .quiet else {
                    console.output.write(view.line(colors: console.colorsOutput) + "\n")
                    return
                }
                for line in view.lines(width: console.output.columns, colors: console.colorsOutput) {
                    console.output.write(line + "\n")
                }
            }
            return view.exitCode
        }
    }

    fileprivate func watchStatus(_ failIf: FailIf?, _ rooms: [Room]) async throws -> ExitCode {
        let deadline = deadline
        let options = try connectionOptions()
        let region = console.live(on: console.output)
        var code = ExitCode.done
        return try await withSchema { given in
            var connection: Connection? = given
            while true {
                do throws(PostgresError) {
                    if let now = connection, await now.isBroken { connection = nil }
                    if connection == nil { connection = try await Connection.open(options) }
                } catch {
                    guard error.isOutage || error.isSlowness else { throw error }
                    code = .unreachable
                    if console.format == .human {
                        region.update(["the database is unreachable: \(DatabaseFailure(error).sentence)"])
                    }
                }
                if let connection, await !connection.isBroken {
                    let view = StatusView(try await report(on: connection, failIf, rooms), failIf: failIf)
                    code = view.exitCode
                    switch console.format {
                    case .human:
                        region.update(
                            console.verbosity > .quiet
                                ? view.lines(width: console.output.columns, colors: console.colorsOutput)
                                : [view.line(colors: console.colorsOutput)])
                    case .json, .jsonLines: console.show(view.json) {}
                    }
                }
                if let deadline, deadline <= .now { return code }
                guard console.output.failure == nil else { return code }  // nobody looks any more
                try await Task.sleep(for: min(.seconds(1), deadline.map { max(.zero, $0 - .now) } ?? .seconds(1)))
            }
        }
    }
}

extension Failure {
    /// No sample within four minutes before: too long ago, not yet, or nobody sampled.
    fileprivate static func notSampled(_ date: Date, _ sample: SampleMoment, _ zone: Zone) -> Failure {
        let wanted = "\(ZonedText.spell(date, in: zone)) (\(zone.name))"
        guard let since = sample.keptSince, let until = sample.keptUntil else {
            return Failure(.notFound, "there are no samples yet", hint: "a running worker takes one every ten seconds")
        }
        if date < since || date > until {
            return Failure(
                .notFound, "\(wanted) is outside what is kept",
                hint: "samples are kept from \(ZonedText.spell(since, in: zone)) to \(ZonedText.spell(until, in: zone))"
            )
        }
        return Failure(.notFound, "nobody sampled around \(wanted)", hint: "no worker and no console ran then")
    }
}
