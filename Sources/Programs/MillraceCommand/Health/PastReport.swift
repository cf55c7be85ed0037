import FoundationEssentials
import MillraceQueues
import Postgres

/// The fleet as it was at a moment, from the samples that are kept.
struct PastReport: Sendable {
    var moment: SampleMoment
    /// The beginning of the sample.
    var at: Date
    /// Those that had anything then, with what ended in the five minutes up to it.
    var queues: [QueueSample]
    var ended: [QueueSample]
    var kinds: [KindSample]
    var workers: [WorkerSample]
    var providers: [ProviderSample]
    /// nil: storage was not sampled around then.
    var storage: StorageSample?
    /// Of the half hour before, the newest first.
    var events: [FleetEvent]

    static let spanOfRates = 300.0

    static func read(_ moment: SampleMoment, at: Date, on connection: Connection) async throws(PostgresError) -> Self {
        let step = moment.step
        let end = at.addingTimeInterval(Double(step))
        let lately = end.addingTimeInterval(-spanOfRates)
        return PastReport(
            moment: moment, at: at,
            queues: try await Queue.queueSamples(since: at, until: end, step: step, queue: "*", on: connection)
                .filter { $0.at == at },
            ended: try await Queue.queueSamples(since: lately, until: end, step: step, queue: "*", on: connection)
                .filter { $0.at >= lately },
            kinds: try await Queue.kindSamples(since: lately, until: end, step: step, kind: "*", on: connection)
                .filter { $0.at >= lately },
            workers: try await Queue.workerSamples(since: at, until: end, step: step, worker: "*", on: connection)
                .filter { $0.at == at },
            providers: try await Queue.providerSamples(since: at, until: end, step: step, on: connection)
                .filter { $0.at == at },
            storage: try await Queue.storageSamples(
                since: at.addingTimeInterval(-120), until: end, step: 60, on: connection
            ).last,
            events: try await Queue.fleetEvents(
                since: end.addingTimeInterval(-1800), until: end, most: 50, on: connection))
    }
}

/// What ended within the five minutes up to the sample.
struct PastRuns: Sendable, Equatable {
    var succeeded = 0
    var failed = 0
    var dead = 0
    var runs = 0

    var failedShare: Double? { runs == 0 ? nil : Double(failed) / Double(runs) }
    var succeededPerSecond: Double { Double(succeeded) / PastReport.spanOfRates }
}

extension PastReport {
    func ended(in queue: String?) -> PastRuns {
        ended.filter { queue == nil || $0.queue == queue }.reduce(into: PastRuns()) { sum, sample in
            sum.succeeded += sample.succeeded
            sum.failed += sample.failed
            sum.dead += sample.dead
            sum.runs += sample.runs
        }
    }

    private var endedByKind: [(kind: String, runs: PastRuns)] {
        var sums: [String: PastRuns] = [:]
        for sample in kinds {
            sums[sample.kind ?? "?", default: PastRuns()].failed += sample.failed
            sums[sample.kind ?? "?", default: PastRuns()].runs += sample.runs
        }
        return sums.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// The findings of `status` that samples can tell, by the same bounds. Findings about schedules, mail, notices, check-ins and the rest are
    /// not derived: nobody samples what they are made from.
    var findings: [Finding] {
        var found: [Finding] = []
        func say(_ alarm: Alarm, _ severity: Severity, _ sentence: String) {
            found.append(Finding(alarm: alarm, severity: severity, sentence: sentence))
        }
        let waiting = queues.filter { !$0.paused }.reduce(0) { $0 + $1.ready }
        if workers.isEmpty, waiting > 0 {
            say(.noWorker, .critical, "\(Self.rounded(waiting)) jobs waited and no worker was running")
        }
        for queue in queues where queue.queue != nil {
            let name = queue.queue ?? ""
            if queue.paused, queue.ready > 0 {
                say(.pausedQueue, .degraded, "\(name) was paused, and \(Self.rounded(queue.ready)) jobs waited")
            } else if !queue.paused, queue.oldest > 300 {
                say(
                    .lateQueue, .degraded,
                    "\(name): the oldest job waited for \(Humane.duration(.seconds(queue.oldest.rounded())))")
            }
        }
        for (kind, sum) in endedByKind where sum.runs >= 10 && sum.failed * 2 >= sum.runs {
            say(
                .failingRuns, .degraded,
                "\(kind): \(Humane.count(sum.failed)) of \(Humane.count(sum.runs)) runs failed in the 5 minutes before")
        }
        let dead = ended(in: nil).dead
        if dead > 0 { say(.deadJobs, .degraded, "\(Humane.count(dead, "job")) died in the 5 minutes before") }
        for worker in workers where worker.stuck > 0 {
            say(.stuckHandlers, .degraded, "\(worker.worker ?? "?"): \(Self.rounded(worker.stuck)) stuck handlers")
        }
        for provider in providers {
            switch provider.state {
            case "open", "probing": say(.providerOpen, .degraded, "\(provider.label) was not called")
            case "forced_open", "forced_closed", "observing":
                say(.providerForced, .degraded, "\(provider.label) was \(provider.stateText)")
            default: break
            }
        }
        if let storage {
            if let age = storage.oldestTransaction, age > 900 {
                let span = Humane.duration(.seconds(age.rounded()))
                say(.openTransaction, .degraded, "a transaction had been open for \(span) and kept old row versions")
            }
            if (storage.historyDays ?? 1) < 1 { say(.noPartitions, .critical, "no partition of history lay ahead") }
            if let strays = storage.strays, strays > 0 {
                say(.strayHistory, .degraded, "\(Humane.count(strays)) rows of history lay in a default partition")
            }
        }
        return found.sorted { $0.severity > $1.severity }
    }

    /// Means of a minute are seldom whole.
    static func rounded(_ number: Double) -> String {
        number > 0 && number < 1 ? Humane.decimal(number, places: 1) : Humane.count(Int(number.rounded()))
    }
}

extension ProviderSample {
    var label: String { name == "default" || name == "*" ? provider : "\(provider) (\(name))" }
    var stateText: String { String(state.map { $0 == "_" ? " " : $0 }) }
}
