import Jobs
import Queues
import Testing

@testable import Workers

@Suite struct NotesTests {
    private let start = ContinuousClock.now

    private func key(_ id: Int64) -> ReportBuffer.Key { ReportBuffer.Key(session: 1, number: 8, id: id) }

    private func line(_ text: String) -> LogLine { LogLine(text, .info) }

    @Test func `the latest progress of each run is what is written, with its age`() throws {
        var notes = ReportBuffer()
        notes.progress(JobProgress(fraction: 0.1), of: key(1), attempt: 2, at: start)
        notes.progress(JobProgress(fraction: 0.2, stage: "b"), of: key(1), attempt: 2, at: start + .seconds(1))
        notes.progress(JobProgress(fraction: 0.3), of: key(2), attempt: 1, at: start)
        let reports = try some(notes.take(at: start + .seconds(3))).sorted { $0.job < $1.job }
        #expect(reports.map(\.fraction) == [0.2, 0.3])
        #expect(reports.map(\.age) == [2, 3])
        #expect(reports[0].stage == "b" && reports[0].attempt == 2)
    }

    @Test func `one write is under way at a time, and what comes meanwhile is in the next`() throws {
        var notes = ReportBuffer()
        notes.line(line("a"), of: key(1), attempt: 1, at: start)
        _ = try some(notes.take(at: start))
        #expect(notes.isEmpty && notes.holds(key(1)))
        notes.line(line("b"), of: key(1), attempt: 1, at: start)
        #expect(holds(notes.take(at: start) == nil))
        notes.written()
        #expect(try some(notes.take(at: start)).first?.lines.map(\.line) == ["b"])
        notes.written()
        #expect(!notes.holds(key(1)) && notes.isEmpty)
    }

    @Test func `what failed goes before what came meanwhile`() throws {
        var notes = ReportBuffer()
        notes.progress(JobProgress(fraction: 0.1), of: key(1), attempt: 1, at: start)
        notes.line(line("a"), of: key(1), attempt: 1, at: start)
        notes.progress(JobProgress(fraction: 0.1), of: key(2), attempt: 1, at: start)
        _ = try some(notes.take(at: start))
        notes.line(line("b"), of: key(1), attempt: 1, at: start)
        notes.progress(JobProgress(fraction: 0.2), of: key(2), attempt: 1, at: start)
        notes.failed()
        let reports = try some(notes.take(at: start)).sorted { $0.job < $1.job }
        #expect(reports[0].lines.map(\.line) == ["a", "b"] && reports[0].fraction == 0.1)
        #expect(reports[1].fraction == 0.2)
    }

    @Test func `of a write only what was held back comes again`() throws {
        var notes = ReportBuffer()
        for id in 1...3 { notes.line(line("a"), of: key(Int64(id)), attempt: 1, at: start) }
        _ = try some(notes.take(at: start))
        notes.written(except: [2])
        #expect(try some(notes.take(at: start)).map(\.job) == [2])
    }

    @Test func `without a database the newest lines stay, and those skipped are counted`() throws {
        var notes = ReportBuffer()
        for n in 1...250 { notes.line(line("\(n)"), of: key(1), attempt: 1, at: start) }
        _ = try some(notes.take(at: start))
        for n in 251...300 { notes.line(line("\(n)"), of: key(1), attempt: 1, at: start) }
        notes.failed()
        let report = try some(notes.take(at: start)?.first)
        #expect(report.skipped == 100 && report.lines.count == 200)
        #expect(report.lines.first?.line == "101" && report.lines.last?.line == "300")
        notes.written()
        for _ in 0..<20 { notes.line(line(String(repeating: "x", count: 4000)), of: key(1), attempt: 1, at: start) }
        let large = try some(notes.take(at: start)?.first)
        #expect(large.lines.count == 16 && large.skipped == 4)
    }

    @Test func `a statement takes no more than a megabyte, and all have their turn`() throws {
        var notes = ReportBuffer()
        for id in 1...40 {
            for _ in 0..<16 {
                notes.line(line(String(repeating: "x", count: 4000)), of: key(Int64(id)), attempt: 1, at: start)
            }
        }
        var seen: Set<Int64> = []
        var writes = 0
        while let reports = notes.take(at: start) {
            #expect(reports.reduce(0) { $0 + $1.lines.count * 4000 } <= ReportBuffer.mostAtOnce)
            seen.formUnion(reports.map(\.job))
            writes += 1
            notes.written()
        }
        #expect(seen.count == 40 && writes == 3)
    }
}
