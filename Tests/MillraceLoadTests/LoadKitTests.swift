import CommandKit
import LoadKit
import Telemetry
import Testing

@testable import EngineLoad

@Suite struct HistogramTests {
    /// Times as they are: most short, a few very long.
    private static func values(_ count: Int, seed: UInt64) -> [UInt64] {
        var state = seed
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return 1 + (state >> 33) >> (state >> 20 & 31)
        }
    }

    @Test(arguments: [1, 2, 63, 1000, 20_000])
    func `percentiles are those of the sorted values, to a thousandth`(count: Int) {
        let values = Self.values(count, seed: UInt64(count))
        var histogram = Histogram()
        for value in values { histogram.record(nanoseconds: value) }
        let sorted = values.sorted()
        for share in [0.0, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1] {
            let rank = min(count, max(1, Int((Double(count) * share).rounded(.up))))
            let exact = Double(sorted[rank - 1])
            let found = histogram.milliseconds(at: share) * 1e6
            #expect(found >= exact - 0.001 && found <= exact * (1 + 1.0 / 1024) + 0.001, "\(share) of \(count)")
        }
        #expect(histogram.count == Int64(count))
        #expect(histogram.mostMilliseconds == Double(sorted[count - 1]) / 1e6)
    }

    @Test func `small and huge values stand as they are`() {
        var histogram = Histogram()
        for value in UInt64(0)..<64 { histogram.record(nanoseconds: value) }
        for rank in 1...64 {
            #expect(abs(histogram.milliseconds(at: Double(rank) / 64) * 1e6 - Double(rank - 1)) < 1e-6)
        }
        histogram.record(nanoseconds: .max)
        #expect(histogram.mostMilliseconds == Double(UInt64.max) / 1e6)
        #expect(histogram.milliseconds(at: 1) == Double(UInt64.max) / 1e6)
        histogram.record(.seconds(-1))
        #expect(histogram.milliseconds(at: 0) == 0)
    }

    @Test func `parts merge to the histogram of the whole`() {
        let values = Self.values(5000, seed: 7)
        var whole = Histogram()
        var parts = [Histogram](repeating: Histogram(), count: 3)
        for (index, value) in values.enumerated() {
            whole.record(nanoseconds: value)
            parts[index % 3].record(nanoseconds: value)
        }
        var merged = Histogram()
        for part in parts { merged.merge(part) }
        for share in [0.0, 0.1, 0.5, 0.99, 1] {
            #expect(merged.milliseconds(at: share) == whole.milliseconds(at: share))
        }
        #expect(merged.count == whole.count)
        #expect(merged.mostMilliseconds == whole.mostMilliseconds)
    }

    @Test func `values recorded many times at once count as many`() {
        var once = Histogram()
        var each = Histogram()
        once.record(nanoseconds: 1234, times: 5)
        once.record(nanoseconds: 99, times: 0)
        for _ in 0..<5 { each.record(nanoseconds: 1234) }
        #expect(once == each)
    }

    @Test func `nothing has no percentiles`() {
        #expect(Histogram().milliseconds(at: 0.5).isNaN)
        #expect(Histogram().mostMilliseconds.isNaN)
    }
}

@Suite struct CadenceTests {
    @Test func `calls are due at even distances, without drift`() {
        let cadence = Cadence(began: 5_000_000_000, perSecond: 3, calls: 3_000_000)
        #expect(cadence.due(0) == 5_000_000_000)
        #expect(cadence.due(1) == 5_333_333_333)
        #expect(cadence.due(2) == 5_666_666_667)
        #expect(cadence.due(3) == 6_000_000_000)
        #expect(cadence.end == 5_000_000_000 + 1_000_000 * 1_000_000_000)
    }

    @Test(arguments: [0.5, 3, 500, 2000, 7919])
    func `as many are due as have come due`(perSecond: Double) {
        let cadence = Cadence(began: 1_000_000_000, perSecond: perSecond, calls: 1000)
        #expect(cadence.count(by: 999_999_999) == 0)
        #expect(cadence.count(by: 1_000_000_000) == 1)
        for call in [1, 2, 499, 998] {
            let half = Int64(0.5e9 / perSecond)
            #expect(cadence.count(by: cadence.due(call) - half) == call)
            #expect(cadence.count(by: cadence.due(call) + half) == call + 1)
        }
        #expect(cadence.count(by: .max) == 1000)
    }

    @Test func `calls fall into equal parts`() {
        let cadence = Cadence(began: 0, perSecond: 1, calls: 10)
        #expect((0..<10).map { cadence.part(of: $0, parts: 4) } == [0, 0, 0, 1, 1, 2, 2, 2, 3, 3])
        #expect(cadence.part(of: 10, parts: 4) == 3)
        #expect(Cadence(began: 0, perSecond: 1, calls: 0).part(of: 0, parts: 4) == 0)
    }

    @Test func `tenths are passed once`() {
        var tenths = Tenths()
        let hundred = (0...100).filter { tenths.pass($0, of: 100) }
        #expect(hundred == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100])
        var few = Tenths()
        let three = (0...3).filter { few.pass($0, of: 3) }
        #expect(three == [1, 2, 3])
        let none = few.pass(0, of: 0)
        #expect(!none)
    }
}

@Suite struct MixedJobsTests {
    @Test func `a ten holds jobs of five sorts, and a call as many tens as it is given`() throws {
        let text = MixedJobs.json(tens: 7..<9, microseconds: 1_800_000_000_000_250)
        guard case .array(let jobs) = try JSONValue.read(text) else {
            Issue.record("no list: \(text)")
            return
        }
        #expect(jobs.count == 2 * MixedJobs.perTen)
        for (place, job) in jobs.enumerated() {
            let slot = place % MixedJobs.perTen
            let marks = job["kind"]?.text == "practice.mark"
            #expect(marks == (slot != 6))
            if marks { #expect(job["args"]?["n"]?.integer == 70 + place) }
            #expect((job["limit_key"] != nil) == (MixedJobs.sort(of: slot) == .limited))
            #expect((job["unique_key"] != nil) == (MixedJobs.sort(of: slot) == .replaced))
        }
        #expect(jobs[5]["run_at"]?.text == "2027-01-15T08:00:02.000250Z")
        #expect(jobs[8]["run_at"]?.text == "2027-01-15T08:00:00.200250Z")
        #expect(jobs[8]["unique_key"] == jobs[9]["unique_key"])
        #expect(jobs[8]["unique_key"] != jobs[18]["unique_key"])
        #expect((0..<10).filter(MixedJobs.marks) == [0, 1, 2, 3, 4, 5, 7, 9])
    }
}
