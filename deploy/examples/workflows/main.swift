import Foundation
import Millrace

/// A worker and a client on a database of their own, whose clock is moved: what takes months is over in a second.
struct Workplace {
    let millrace: Client
    let bench: TestBench

    /// Works until these jobs, and those that undo their steps, have ended. Between two turns the clock moves.
    func finish(_ jobs: [Int64], step: Duration = .seconds(1)) async throws {
        for first in jobs {
            while try await millrace.job(first)?.state.isFinal == false { try await turn(step) }
            for job in try await millrace.flow(of: first) {
                while try await millrace.job(job)?.state.isFinal == false { try await turn(step) }
            }
        }
    }

    private func turn(_ step: Duration) async throws {
        _ = try await bench.drain()
        try await bench.advance(by: step)
    }
}

let isWorker = CommandLine.arguments.dropFirst().first == "work"
let worker = Worker(log: isWorker ? .info : .silent)
handleOrders(worker)
handleExpenses(worker)
handleBilling(worker)
handleCounting(worker)
if isWorker {
    try await worker.run()  // nothing else: the kinds above for somebody else's jobs
    exit(0)
}
let place = Workplace(millrace: try Client(), bench: try TestBench(worker: worker, database: .environment))
try await place.bench.prepare()  // makes the schema, with a clock that can be moved: never on a database of yours

print("order")
try await order(place)
print("approval")
try await approval(place)
print("billing")
try await billing(place)
print("fan-out")
try await fanOut(place)
await place.bench.close()
await place.millrace.close()
