import Foundation
import Millrace
import Synchronization
import TestSupport
import Testing

private struct Work: Job {
    static let kind = "work"
    var n: Int
}

private struct Trace: Codable, Equatable {
    var trace: String
    var hops: Int
}

/// The log and metrics that a worker has sent to a program.
private final class Told: LogReceiver, MetricsReceiver {
    let events = Mutex<[WorkerLogLine]>([])
    let counts = Mutex<[String: Int]>([:])
    let gauges = Mutex<[String: Double]>([:])
    let timers = Mutex<[String: Int]>([:])

    func log(_ event: WorkerLogLine) { events.withLock { $0.append(event) } }

    func add(_ count: Int, to counter: String, labels: [String: String]) {
        let key = ([counter] + labels.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
        counts.withLock { $0[key, default: 0] += count }
    }

    func set(_ gauge: String, to value: Double, labels: [String: String]) { gauges.withLock { $0[gauge] = value } }

    func record(_ duration: Duration, of timer: String, labels: [String: String]) {
        timers.withLock { $0["\(timer) \(labels["kind"] ?? "") \(labels["queue"] ?? "")", default: 0] += 1 }
    }
}

@Suite struct JobContextTests {
    @Test func `metadata is read as a value, and a job that no schedule has made knows of none`() async throws {
        try await withDatabase { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            worker.handle(Work.self) { job, context in
                #expect(context.schedule == nil && context.fireAt == nil)
                switch job.n {
                case 1:
                    let trace = try context.metadata(as: Trace.self)
                    #expect(trace == Trace(trace: "t", hops: 3))
                case 2:
                    let all = try context.metadata(as: [String: String].self) ?? [:]
                    #expect(all.isEmpty)
                default: #expect(throws: DecodingError.self) { try context.metadata(as: Trace.self) }
                }
                return .done
            }
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            try await millrace.enqueue(Work(n: 1), metadata: Trace(trace: "t", hops: 3))
            try await millrace.enqueue(Work(n: 2))
            try await millrace.enqueue(Work(n: 3), metadata: ["trace": 1, "schedule": 2])
            #expect(try await bench.drain().finished == 3)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `a job of a schedule knows its name and its time`() async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let seen = Mutex<[Date?]>([])
            let worker = Worker(database: location, log: .silent)
            worker.handle(Work.self) { _, context in
                #expect(context.schedule == "nightly")
                seen.withLock { $0.append(context.fireAt) }
                return .done
            }
            try worker.schedule("nightly", "0 2 * * *", Work(n: 1))
            let bench = try TestBench(worker: worker, database: location)
            _ = try await bench.drain()
            let millrace = try Client(database: location)
            let planned = try #require(await millrace.schedules(named: "nightly").first?.nextAt)
            try await bench.advance(by: .seconds(86_400))
            #expect(try await bench.drain().finished == 1)
            #expect(seen.withLock { $0 } == [planned])
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `a program takes a worker's lines and numbers in its own way`() async throws {
        try await withDatabase { database in
            let location = Database.url(database.url)
            let told = Told()
            let worker = Worker(database: location, log: .debug, logReceiver: told, metrics: told)
            worker.handle(Work.self, queue: "q") { job, _ in job.n == 1 ? .done : .discard("no") }
            let millrace = try Client(database: location)
            let ids = [
                try await millrace.enqueue(Work(n: 1), queue: "q"), try await millrace.enqueue(Work(n: 2), queue: "q"),
            ]
            let running = Task { try await worker.run(handlesSignals: false) }
            for id in ids { _ = try await millrace.wait(for: id, timeout: .seconds(240)) }
            try await eventually("it says how it is") { told.gauges.withLock { $0["millrace_worker_ready"] } == 1 }
            worker.drain()
            _ = try await running.value
            let messages = told.events.withLock { $0.map(\.message) }
            #expect(messages.contains("worker started") && messages.contains("worker stopped"), "\(messages)")
            let died = told.events.withLock { events in events.first { $0.message == "a job died" } }
            #expect(died?.level == .warning && died?.metadata["job.id"] == "\(ids[1])")
            #expect(
                told.counts.withLock { $0 } == [
                    "millrace_runs kind=work outcome=succeeded queue=q": 1,
                    "millrace_runs kind=work outcome=dead queue=q": 1,
                ])
            #expect(told.timers.withLock { $0 } == ["millrace_run_duration work q": 2])
            #expect(told.gauges.withLock { $0["millrace_worker_slots"] } == 100)
            await millrace.close()
        }
    }
}
