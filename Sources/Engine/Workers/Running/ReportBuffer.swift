package import MillraceJobs
package import MillraceQueues

/// What runs have reported and the database has not taken yet: the latest progress of each, and its newest lines. Pure; `ReportWriter`
/// puts a lock around it.
package struct ReportBuffer: Sendable {
    package struct Key: Hashable, Sendable {
        package let session: Int64
        package let number: Int64
        package let id: Int64

        package init(session: Int64, number: Int64, id: Int64) {
            self.session = session
            self.number = number
            self.id = id
        }

        init(_ context: Context) {
            self.init(session: context.session, number: context.number, id: context.id)
        }
    }

    struct Entry: Sendable {
        struct Line: Sendable {
            let line: LogLine
            let at: ContinuousClock.Instant
        }

        let attempt: Int
        var progress: JobProgress?
        var progressAt = ContinuousClock.now
        private(set) var lines: [Line] = []
        private(set) var skipped = 0
        private(set) var bytes = 0

        init(attempt: Int) {
            self.attempt = attempt
        }

        mutating func add(_ line: LogLine, at now: ContinuousClock.Instant) {
            lines.append(Line(line: line, at: now))
            bytes += line.text.utf8.count
            trim()
        }

        /// The database would cut the same lines.
        private mutating func trim() {
            var cut = 0
            while lines.count - cut > ReportBuffer.mostLines || bytes > ReportBuffer.mostBytes {
                bytes -= lines[cut].line.text.utf8.count
                cut += 1
            }
            lines.removeFirst(cut)
            skipped += cut
        }

        /// This one, followed by what came later.
        func followed(by later: Entry) -> Entry {
            var both = later
            if both.progress == nil {
                both.progress = progress
                both.progressAt = progressAt
            }
            both.lines = lines + later.lines
            both.bytes += bytes
            both.skipped += skipped
            both.trim()
            return both
        }
    }

    static let mostLines = 200
    static let mostBytes = 65_536
    /// Of the lines in one statement; a single run's may go over it.
    static let mostAtOnce = 1 << 20

    private var pending: [Key: Entry] = [:]
    private var inFlight: [Key: Entry] = [:]

    package init() {}

    package var isEmpty: Bool { pending.isEmpty }

    package func holds(_ key: Key) -> Bool {
        pending[key] != nil || inFlight[key] != nil
    }

    package mutating func progress(
        _ progress: JobProgress, of key: Key, attempt: Int, at now: ContinuousClock.Instant
    ) {
        pending[key, default: Entry(attempt: attempt)].progress = progress
        pending[key]?.progressAt = now
    }

    package mutating func line(_ line: LogLine, of key: Key, attempt: Int, at now: ContinuousClock.Instant) {
        pending[key, default: Entry(attempt: attempt)].add(line, at: now)
    }

    /// What to write now; nil when there is nothing, or a write is under way.
    package mutating func take(at now: ContinuousClock.Instant) -> [RunReport]? {
        guard inFlight.isEmpty, !pending.isEmpty else { return nil }
        var bytes = 0
        for (key, entry) in pending {
            bytes += entry.bytes
            if bytes > Self.mostAtOnce, !inFlight.isEmpty { break }
            inFlight[key] = entry
        }
        for key in inFlight.keys { pending[key] = nil }
        return inFlight.map { key, entry in Self.report(key, entry, at: now) }
    }

    /// The database has taken the write, but for these jobs.
    package mutating func written(except later: Set<Int64> = []) {
        inFlight = inFlight.filter { later.contains($0.key.id) }
        failed()
    }

    /// The write is to be tried again.
    package mutating func failed() {
        pending.merge(inFlight) { newer, older in older.followed(by: newer) }
        inFlight = [:]
    }

    private static func report(_ key: Key, _ entry: Entry, at now: ContinuousClock.Instant) -> RunReport {
        func age(_ then: ContinuousClock.Instant) -> Double { max(0, then.duration(to: now) / .seconds(1)) }
        var report = RunReport(session: key.session, number: key.number, job: key.id, attempt: entry.attempt)
        if let progress = entry.progress {
            report.age = age(entry.progressAt)
            report.fraction = progress.fraction
            report.stage = progress.stage
            report.note = progress.note
        }
        report.skipped = entry.skipped
        report.lines = entry.lines.map {
            RunReport.Line(
                level: LogLine.Level.allCases.firstIndex(of: $0.line.level) ?? 1, age: age($0.at), line: $0.line.text)
        }
        return report
    }
}
