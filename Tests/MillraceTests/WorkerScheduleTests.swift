import Foundation
import Millrace
import TestSupport
import Testing

private struct Report: Job {
    static let kind = "report"
    var page: Int
}

@Suite struct WorkerScheduleTests {
    @Test func `a worker brings its schedules, and a bench moves over their times`() async throws {
        try await withDatabase(.movableClock) { database in
            let location = Database.url(database.url)
            let worker = Worker(database: location, log: .silent)
            worker.handle(Report.self) { job, context in
                #expect(job.page == 7)
                #expect(context.metadata.map { String(decoding: $0, as: UTF8.self).contains("\"nightly\"") } == true)
                return .done
            }
            try worker.schedule("nightly", "0 2 * * *", zone: "Europe/Berlin", Report(page: 7), overlap: .skip)
            let bench = try TestBench(worker: worker, database: location)
            let millrace = try Client(database: location)
            #expect(try await bench.drain().finished == 0)
            let planned = try #require(await millrace.schedules().first)
            let next = try #require(planned.nextAt)
            #expect(planned.name == "nightly" && planned.kind == "report" && planned.zone == "Europe/Berlin")
            for day in 1...3 {
                try await bench.advance(by: .days(1))
                #expect(try await bench.drain().finished == 1, "day \(day)")
            }
            let later = try #require(await millrace.schedules(named: "nightly").first)
            // The next night's, whatever the clocks do meanwhile.
            #expect(try abs(#require(later.nextAt).timeIntervalSince(next) - 3 * 86_400) <= 3600)
            #expect(later.missed == 0)
            await bench.close()
            await millrace.close()
        }
    }

    @Test func `a client makes, changes, pauses, runs and removes schedules`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            #expect(try await millrace.schedule("s", "every 1h", Report(page: 1), jitter: .seconds(5)) == .created)
            #expect(try await millrace.schedule("s", "every 1h", Report(page: 1), jitter: .seconds(5)) == .unchanged)
            #expect(try await millrace.schedule("s", "@daily", Report(page: 1), catchUp: .all(limit: 5)) == .changed)
            #expect(try await millrace.pauseSchedule("s"))
            #expect(try await millrace.pauseSchedule("s") == false)
            let id = try await millrace.runSchedule("s")
            #expect(try await millrace.job(id)?.state == .ready)
            #expect(try await millrace.schedules().map(\.lastJob) == [id])
            #expect(try await millrace.resumeSchedule("s"))
            try await millrace.removeSchedule("s")
            let gone = await #expect(throws: QueueError.self) { try await millrace.removeSchedule("s") }
            #expect(gone?.errorClass == .notFound)
            await millrace.close()
        }
    }

    @Test func `what could never fire is refused before anything is written`() async throws {
        try await withDatabase { database in
            let millrace = try Client(database: .url(database.url))
            for (expression, zone, sentence) in [
                ("0 25 * * *", "UTC", "hour: 25 is out of range"), ("0 0 31 2 *", "UTC", "never fires"),
                ("@daily", "europe/berlin", "did you mean Europe/Berlin?"),
            ] {
                let error = await #expect(throws: QueueError.self) {
                    try await millrace.schedule("s", expression, zone: zone, Report(page: 1))
                }
                #expect(error?.errorClass == .invalid)
                #expect(error?.description.contains(sentence) == true, "\(error?.description ?? "")")
                let worker = Worker(database: .url(database.url), log: .silent)
                #expect(throws: QueueError.self) { try worker.schedule("s", expression, zone: zone, Report(page: 1)) }
            }
            #expect(try await millrace.schedules().isEmpty)
            await millrace.close()
        }
    }
}
