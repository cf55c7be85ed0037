package import CommandKit

/// The costs of jobs, measured from outside: CPU time, WAL, memory.
package struct Costs: Sendable {
    package var jobs: Int
    package var seconds: Double
    package var server: ServerMeter.Reading
    /// Nil where there is no worker of ours, as under the yardstick.
    package var workers: LoadWorkers.Usage?

    package init(jobs: Int, seconds: Double, server: ServerMeter.Reading, workers: LoadWorkers.Usage? = nil) {
        (self.jobs, self.seconds, self.server, self.workers) = (jobs, seconds, server, workers)
    }

    /// Of turns that belong together and had no worker of their own.
    package init(summing turns: [Costs]) {
        self.init(
            jobs: turns.reduce(0) { $0 + $1.jobs }, seconds: turns.reduce(0) { $0 + $1.seconds },
            server: turns.dropFirst().reduce(turns[0].server) { $0 + $1.server })
    }

    package var perSecond: Double { Double(jobs) / seconds }

    /// Microseconds a job.
    package var workerProcessor: Double? { workers.map { $0.processor / Double(jobs) * 1e6 } }
    package var serverProcessor: Double? { server.processor.map { $0 / Double(jobs) * 1e6 } }
    package var wal: Double { server.wal / Double(jobs) }

    package var json: JSONValue {
        var members: [JSONValue.Member] = [
            .init(key: "jobs", value: .init(jobs)), .init(key: "seconds", value: .double(seconds)),
            .init(key: "per_second", value: .double(perSecond)), .init(key: "wal_bytes_per_job", value: .double(wal)),
        ]
        if let serverProcessor { members.append(.init(key: "postgres_us_per_job", value: .double(serverProcessor))) }
        if let workerProcessor { members.append(.init(key: "worker_us_per_job", value: .double(workerProcessor))) }
        if let workers { members.append(.init(key: "worker_resident_mb", value: .double(workers.mostResident))) }
        return .object(members)
    }

    /// One line for a person.
    package var summary: String {
        var parts = ["\(Humane.count(Int(perSecond)))/s"]
        if let workerProcessor { parts.append("worker \(Humane.decimal(workerProcessor, places: 1)) µs") }
        if let serverProcessor { parts.append("Postgres \(Humane.decimal(serverProcessor, places: 1)) µs") }
        parts.append("\(Humane.decimal(wal, places: 0)) B of WAL a job")
        if let workers { parts.append("\(Humane.decimal(workers.mostResident, places: 0)) MB") }
        return parts.joined(separator: ", ")
    }
}

/// The middle one; of an even number the lower.
@inline(never)
package func median(_ values: [Double]) -> Double { percentile(values.sorted(), 0.5) }
