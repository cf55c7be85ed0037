import MillraceJobs
import MillraceQueues
import Testing

@testable import Workers

@Suite struct ReportBufferTests {
    private let start = ContinuousClock.now

    private func key(_ id: Int64) -> ReportBuffer.Key { ReportBuffer.Key(session: 1, number: 8, id: id) }

    private func line(_ text: String) -> LogLine { LogLine(text, .info) }

    @Test func `the latest progress of each run is what is written, with its age`() throws {
        var buffer = ReportBuffer()
        buffer.progress(JobProgress(fraction: 0.1), of: key(1), attempt: 2, at: start)
        buffer.progress(JobProgress(fraction: 0.2, stage: "b"), of: key(1), attempt: 2, at: start + .seconds(1))
        buffer.progress(JobProgress(fraction: 0.3), of: key(2), attempt: 1, at: start)
        let reports = try some(buffer.take(at: start + .seconds(3))).sorted { $0.job < $1.job }
        #expect(reports.map(\.fraction) == [0.2, 0.3])
        #expect(reports.map(\.age) == [2, 3])
        #expect(reports[0].stage == "b" && reports[0].attempt == 2)
    }

    @Test func `one write is under way at a time, and what comes meanwhile is in the next`() throws {
        var buffer = ReportBuffer()
        buffer.line(line("a"), of: key(1), attempt: 1, at: start)
        _ = try some(buffer.take(at: start))
        #expect(buffer.isEmpty && buffer.holds(key(1)))
        buffer.line(line("b"), of: key(1), attempt: 1, at: start)
        #expect(holds(buffer.take(at: start) == nil))
        buffer.written()
        #expect(try some(buffer.take(at: start)).first?.lines.map(\.line) == ["b"])
        buffer.written()
        #expect(!buffer.holds(key(1)) && buffer.isEmpty)
    }

    @Test func `what failed goes before what came meanwhile`() throws {
        var buffer = ReportBuffer()
        buffer.progress(JobProgress(fraction: 0.1), of: key(1), attempt: 1, at: start)
        buffer.line(line("a"), of: key(1), attempt: 1, at: start)
        buffer.progress(JobProgress(fraction: 0.1), of: key(2), attempt: 1, at: start)
        _ = try some(buffer.take(at: start))
        buffer.line(line("b"), of: key(1), attempt: 1, at: start)
        buffer.progress(JobProgress(fraction: 0.2), of: key(2), attempt: 1, at: start)
        buffer.failed()
        let reports = try some(buffer.take(at: start)).sorted { $0.job < $1.job }
        #expect(reports[0].lines.map(\.line) == ["a", "b"] && reports[0].fraction == 0.1)
        #expect(reports[1].fraction == 0.2)
    }

    @Test func `of a write only what was held back comes again`() throws {
        var buffer = ReportBuffer()
        for id in 1...3 { buffer.line(line("a"), of: key(Int64(id)), attempt: 1, at: start) }
        _ = try some(buffer.take(at: start))
        buffer.written(except: [2])
        #expect(try some(buffer.take(at: start)).map(\.job) == [2])
    }

    @Test func `without a database the newest lines stay, and those skipped are counted`() throws {
        var buffer = ReportBuffer()
        for n in 1...250 { buffer.line(line("\(n)"), of: key(1), attempt: 1, at: start) }
        _ = try some(buffer.take(at: start))
        for n in 251...300 { buffer.line(line("\(n)"), of: key(1), attempt: 1, at: start) }
        buffer.failed()
        let report = try some(buffer.take(at: start)?.first)
        #expect(report.skipped == 100 && report.lines.count == 200)
        #expect(report.lines.first?.line == "101" && report.lines.last?.line == "300")
        buffer.written()
        for _ in 0..<20 { buffer.line(line(String(repeating: "x", count: 4000)), of: key(1), attempt: 1, at: start) }
        let large = try some(buffer.take(at: start)?.first)
        #expect(large.lines.count == 16 && large.skipped == 4)
    }

    @Test func `a statement takes no more than a megabyte, and all have their turn`() throws {
        var buffer = ReportBuffer()
        for id in 1...40 {
            for _ in 0..<16 {
                buffer.line(line(String(repeating: "x", count: 4000)), of: key(Int64(id)), attempt: 1, at: start)
            }
        }
        var seen: Set<Int64> = []
        var writes = 0
        while let reports = buffer.take(at: start) {
            #expect(reports.reduce(0) { $0 + $1.lines.count * 4000 } <= ReportBuffer.mostAtOnce)
            seen.formUnion(reports.map(\.job))
            writes += 1
            buffer.written()
        }
        #expect(seen.count == 40 && writes == 3)
    }
}
