import Blobs
import CommandKit
import Composition
import Documents
import Glibc
import LoadKit
import Pages
import Postgres

extension DocumentScenario {
    /// Whether memory stays level, however many pages have been read.
    func flat(
        _ store: any BlobStore, _ connection: Connection, _ bars: inout [Bar], _ figures: inout [(String, JSONValue)]
    ) async throws {
        let sparse = invocation.parsed.integer("pages") ?? 10_000
        let dense = max(4, sparse * 3 / 100)
        let maker = ScanMaker(workshop: invocation.workshop)
        let digits = try await maker.digits()
        let workers = try await LoadWorkers.start(1, invocation, on: connection)
        for (name, count, size) in [("near-empty", sparse, 100), ("dense", dense, 25)] {
            var memory = MemoryCurve()
            let before = try await done(connection)
            var submitted = 0
            var live = Progress(invocation.console, "\(name) pages", of: count)
            while true {
                let read = try await done(connection) - before
                memory.add(pages: read, workers)
                live.update(read)
                guard read < count else { break }
                // A document ahead, so that nothing waits for the next, and the database holds no more than it has to.
                if submitted < count, submitted - read <= size {
                    let some = min(size, count - submitted)
                    let pages =
                        size == 100
                        ? try (submitted..<submitted + some).map { try digits.page($0) }
                        : try await maker.pages(some, seed: UInt64(1000 + submitted))
                    _ = try await submit(
                        try ScanMaker.pdf(pages), tenant: name, store, connection)
                    submitted += some
                    continue
                }
                try await Task.sleep(for: .milliseconds(500))
            }
            live.end()
            let failed = try await number(
                "select coalesce(sum(pages_failed), 0)::int8 from millrace.document", on: connection)
            guard failed == 0 else { throw Failure("\(Int(failed)) pages could not be read") }
            bars += memory.bars(name)
            figures.append((name.split(separator: "-").joined(separator: "_"), memory.json))
        }
        try await workers.stop()
    }

    private func done(_ connection: Connection) async throws -> Int {
        Int(
            try await number(
                "select coalesce(sum(pages_done + pages_failed), 0)::int8 from millrace.document", on: connection))
    }

    /// Tells of every tenth, also where nothing can be overwritten.
    private struct Progress {
        private let console: Console
        private let live: LiveRegion
        private let what: String
        private let count: Int
        private var tenths = Tenths()
        private let began = ContinuousClock.now

        init(_ console: Console, _ what: String, of count: Int) {
            (self.console, self.what, self.count) = (console, what, count)
            live = console.live()
        }

        mutating func update(_ read: Int) {
            guard tenths.pass(read, of: count) else { return }
            live.update([
                "\(Humane.count(read)) of \(Humane.count(count)) \(what) after \(Humane.duration(.now - began))"
            ])
        }

        func end() { live.update([]) }
    }
}

/// The memory of the worker and of the largest of its engines, beside the pages that had been read.
struct MemoryCurve: Sendable {
    struct Sample: Sendable {
        var pages: Int
        /// In megabytes, resident.
        var worker: Double
        var engine: Double?
    }

    private var samples: [Sample] = []
    private var mostOfChildren = 0.0

    /// Of the samples of each hundredth only the first is kept: more add nothing.
    mutating func add(pages: Int, _ workers: LoadWorkers) {
        var sample = Sample(pages: pages, worker: workers.usage().resident)
        for pid in ProcessTable.all() {
            guard let parent = ProcessTable.ticks(of: pid)?.parent, workers.pids.contains(parent) else { continue }
            let (now, most) = Self.memory(of: pid)
            mostOfChildren = max(mostOfChildren, most)
            if ProcessTable.name(of: pid) == "millrace-ocr" { sample.engine = max(sample.engine ?? 0, now) }
        }
        samples.append(sample)
    }

    private static func memory(of pid: pid_t) -> (now: Double, most: Double) {
        var (now, most) = (0.0, 0.0)
        for line in ProcessTable.text("/proc/\(pid)/status").split(separator: "\n") {
            let words = line.split(whereSeparator: \.isWhitespace)
            guard words.count >= 2, let kilobytes = Double(words[1]) else { continue }
            if words[0] == "VmRSS:" { now = kilobytes / 1024 }
            if words[0] == "VmHWM:" { most = kilobytes / 1024 }
        }
        return (now, most)
    }

    /// Megabytes for each 1,000 pages, by least squares. The first fifth is left out: buffers find their size in it.
    static func slope(_ points: [(pages: Int, megabytes: Double)]) -> Double {
        guard let last = points.map(\.pages).max() else { return 0 }
        let points = points.filter { $0.pages >= last / 5 }
        let count = Double(points.count)
        let x = points.reduce(0) { $0 + Double($1.pages) / 1000 } / count
        let y = points.reduce(0) { $0 + $1.megabytes } / count
        var (over, under) = (0.0, 0.0)
        for point in points {
            let away = Double(point.pages) / 1000 - x
            over += away * (point.megabytes - y)
            under += away * away
        }
        return under > 0 ? over / under : 0
    }

    private var pages: Double { Double(samples.last?.pages ?? 0) }
    private var worker: Double { Self.slope(samples.map { ($0.pages, $0.worker) }) }
    private var engine: Double { Self.slope(samples.compactMap { sample in sample.engine.map { (sample.pages, $0) } }) }

    func bars(_ name: String) -> [Bar] {
        // A slope over few pages says little; then the growth until their end counts.
        let most = max(1, 10_000 / max(1, pages))
        return [
            .atMost("worker, for each 1,000 \(name) pages", most, measured: worker, unit: "MB"),
            .atMost("engine, for each 1,000 \(name) pages", most, measured: engine, unit: "MB"),
            .atMost("largest child, \(name) pages", 150, measured: mostOfChildren, unit: "MB"),
        ]
    }

    var json: JSONValue {
        let step = max(1, samples.count / 40)
        return [
            "pages": .int(Int(pages)), "worker_mb_per_1000_pages": .double(worker),
            "engine_mb_per_1000_pages": .double(engine), "child_most_mb": .double(mostOfChildren),
            "samples": .array(
                samples.indices.filter { $0 % step == 0 || $0 == samples.count - 1 }.map { at in
                    [
                        "pages": .int(samples[at].pages), "worker_mb": .double(samples[at].worker),
                        "engine_mb": .double(samples[at].engine ?? 0),
                    ]
                }),
        ]
    }
}
