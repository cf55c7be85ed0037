package import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Workers

extension Command {
    package static let loadVersions = scenario(
        "versions",
        summary: "Promote a build, give another a percentage, promote it and roll it back, under load",
        discussion: """
            Workers of two builds, a and b, are pinned, and some are killed all the time. Jobs of two steps, of which a quarter waits between \
            them, are enqueued at a fixed rate. a is promoted; b gets a tenth of new jobs; b is promoted; b is rolled back. What the handlers \
            wrote into a file of their build is judged: no job may go on with a build that did not begin it, a build that gets no new jobs may \
            begin none later than 10 seconds after that was said, and none may be lost.
            """,
        flags: [
            .count("rate", 1...100_000, 1000, "New jobs in a second."),
            .single(
                "phase", "SECONDS", .integer(1...3600), environment: .none, fallback: "20",
                help: "How long each of the four phases takes."),
            .count("workers", 1...20, 2, "Workers of each build."),
        ],
        examples: [Example("millrace load versions --strict", "a minute and a half, 1,000 jobs a second")]
    ) { invocation in
        try await VersionsScenario(invocation: invocation).run()
    }
}

private struct VersionsScenario: Sendable {
    let invocation: Invocation

    private static let builds = ["a", "b"]
    private static let grace: Int64 = 10_000_000_000

    /// Which builds begin new jobs, from a time on.
    private struct Phase {
        var from: Int64
        var builds: Set<String>
    }

    func run() async throws -> ExitCode {
        let rate = invocation.count("rate")
        let seconds = invocation.parsed.integer("phase") ?? 20
        let connection = try await invocation.connect()
        let directory = try Scratch.directory(
            "versions", in: Scratch.temporary, isOpen: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let kept = KeptWorkers(directory: directory)
        let names = try await startWorkers(kept, directory: directory, on: connection)
        // The database may have jobs from before.
        let before = try await ended(on: connection)
        let chaos = Chaos(kept: kept, names: names)
        let killing = Task { await chaos.run() }  // awaited below
        var phases: [Phase] = []
        var jobs: Int64 = 0
        func phase(_ builds: Set<String>, _ change: () async throws -> Void) async throws {
            try await change()
            phases.append(Phase(from: PracticeMarks.now(), builds: builds))
            invocation.console.note("new jobs go to \(builds.sorted().joined(separator: " and "))")
            jobs = try await enqueue(from: jobs, rate: rate, seconds: seconds, on: connection)
        }
        try await phase(["a"]) {
            try await patiently { try await Queue.promote("a", percent: nil, on: connection) }
        }
        try await phase(["a", "b"]) {
            try await patiently { try await Queue.promote("b", percent: 10, on: connection) }
        }
        // All of these have begun before the next change: what is drawn for a build that is down waits for it.
        try await begun(on: connection)
        let split = Int64(rate * seconds)..<jobs
        try await phase(["b"]) {
            try await patiently { try await Queue.promote("b", percent: nil, on: connection) }
        }
        try await phase(["a"]) { _ = try await Queue.rollback(move: false, on: connection) }
        killing.cancel()
        let kills = await killing.value
        let left = try await waitForEnds(jobs, after: before, on: connection)
        let bad = try await kept.stop()
        await connection.close()
        var marks: [String: [PracticeMarks.Mark]] = [:]
        for build in Self.builds {
            marks[build] = PracticeMarks(path: "\(directory)/\(build).marks")?.read(from: 0) ?? []
        }
        if !bad.isEmpty { invocation.console.warning(bad.joined(separator: "; ")) }
        return report(
            judge(marks, phases: phases, jobs: jobs, split: split), left: left, kills: kills, jobs: jobs)
    }

    private func startWorkers(
        _ kept: KeptWorkers, directory: String, on connection: Connection
    ) async throws -> [String] {
        var variables = invocation.environment
        variables["DATABASE_URL"] = try invocation.connectionOptions().location
        variables["MILLRACE_LISTEN"] = "off"
        var names: [String] = []
        for build in Self.builds {
            variables["MILLRACE_BUILD"] = build
            for number in 1...(invocation.count("workers")) {
                let name = "\(build)\(number)"
                names.append(name)
                kept.keep(
                    name,
                    arguments: ["worker", "--practice", "--only-build", "--name", name, "--parent", "\(getpid())"]
                        + ["--marks", "\(directory)/\(build).marks", "--log-level", "warning", "--slots", "50"],
                    environment: variables)
            }
        }
        try await Patience.wait(.seconds(60), else: "the workers do not start: see their logs") {
            try await connection.int("select count(*) from millrace.session where pin is not null") >= names.count
        }
        return names
    }

    /// All workers of a build may have been killed just now.
    private func patiently(_ act: () async throws -> Void) async throws {
        let deadline = ContinuousClock.now + .seconds(30)
        while true {
            do {
                return try await act()
            } catch let error as PostgresError where error.sqlState == "55000" && ContinuousClock.now < deadline {
                // another look below
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private func enqueue(from first: Int64, rate: Int, seconds: Int, on connection: Connection) async throws -> Int64 {
        let live = invocation.console.live()
        let began = ContinuousClock.now
        var next = first
        for turn in 1...(seconds * 20) {
            let last = first + Int64(rate * turn / 20)
            if last > next {
                try await connection.execute(
                    """
                    select count(millrace.enqueue('practice.version', case when n % 4 = 0 then jsonb_build_object('n', n, 'pause', 0.2 + n % 20 / 10.0)
                                                                           else jsonb_build_object('n', n) end))
                      from generate_series($1::bigint, $2::bigint - 1) n
                    """, [.int8(next), .int8(last)])
                next = last
            }
            if turn % 20 == 0 { live.update(["\(Humane.count(Int(next))) enqueued"]) }
            try await Task.sleep(until: began + .milliseconds(50 * turn), clock: .continuous)
        }
        live.update([])
        return next
    }

    private func begun(on connection: Connection) async throws {
        _ = try await Patience.waited(.seconds(600), every: .milliseconds(20)) {
            try await connection.int("select count(*) from millrace.ready") == 0
        }
    }

    private func ended(on connection: Connection) async throws -> Int {
        try await connection.int("select count(distinct id) from millrace.history where outcome = 1")
    }

    /// How many have not ended well.
    private func waitForEnds(_ jobs: Int64, after before: Int, on connection: Connection) async throws -> Int {
        _ = try await Patience.waited(.seconds(300), every: .milliseconds(500)) {
            try await ended(on: connection) - before >= jobs
        }
        return Int(jobs) - (try await ended(on: connection) - before)
    }

    private struct Verdict {
        /// Jobs whose first step is on record with one build, and that another went on with.
        var moved = 0
        /// Begun by a build that had had no new jobs for 10 seconds.
        var late = 0
        /// The last such beginning after a change, in seconds.
        var slowest = 0.0
        var undone = 0
        /// Of the jobs that were enqueued while b got a tenth.
        var share = 0.0
    }

    private func judge(
        _ marks: [String: [PracticeMarks.Mark]], phases: [Phase], jobs: Int64, split: Range<Int64>
    ) -> Verdict {
        var verdict = Verdict()
        var bound: [Int64: String] = [:]
        var moved: Set<Int64> = []
        var done: Set<Int64> = []
        var first: [Int64: (at: Int64, build: String)] = [:]
        for (build, list) in marks {
            var seen: Set<Int64> = []
            for mark in list {
                let n = mark.n / 4
                switch mark.n % 4 {
                case 0 where seen.insert(n).inserted:
                    if split.contains(n), first[n].map({ mark.nanoseconds < $0.at }) ?? true {
                        first[n] = (mark.nanoseconds, build)
                    }
                    guard let at = phases.lastIndex(where: { $0.from <= mark.nanoseconds }),
                        !phases[at].builds.contains(build)
                    else { break }
                    let after = mark.nanoseconds - phases[at].from
                    verdict.slowest = max(verdict.slowest, Double(after) / 1e9)
                    if after > Self.grace { verdict.late += 1 }
                case 0: break
                default:
                    if let other = bound[n], other != build { moved.insert(n) }
                    bound[n] = build
                    if mark.n % 4 == 2 { done.insert(n) }
                }
            }
        }
        verdict.moved = moved.count
        verdict.undone = Int(jobs) - done.count
        verdict.share = Double(first.values.count { $0.build == "b" }) / Double(max(1, first.count))
        return verdict
    }

    private func report(_ verdict: Verdict, left: Int, kills: Int, jobs: Int64) -> ExitCode {
        invocation.console.note(
            "\(Humane.count(Int(jobs))) jobs, \(kills) workers killed; b began \(Humane.percent(verdict.share)) while it got 10 %; "
                + "the last job of a build that gets none began after \(Humane.decimal(verdict.slowest, places: 2)) s")
        let spread = 0.02 + 4 * (0.09 / Double(max(1, jobs / 4))).squareRoot()
        return invocation.report(
            "versions",
            [
                .atMost("jobs that went on with another build", 0, measured: Double(verdict.moved), unit: ""),
                .atMost(
                    "jobs begun by a build that had no right to them for 10 s", 0, measured: Double(verdict.late),
                    unit: ""),
                .atMost("a promotion or rollback takes effect", 10, measured: verdict.slowest, unit: "s"),
                .atMost("jobs that have not ended well", 0, measured: Double(left), unit: ""),
                .atMost("jobs whose handler did not come to its end", 0, measured: Double(verdict.undone), unit: ""),
                .atMost(
                    "share of a tenth, off by", spread, measured: abs(verdict.share - 0.1), unit: ""),
                .atLeast("workers killed", 1, measured: Double(kills), unit: ""),
            ],
            figures: [
                ("jobs", .init(Int(jobs))), ("kills", .init(kills)), ("effective_seconds", .double(verdict.slowest)),
                ("share", .double(verdict.share)),
            ])
    }
}

/// Kills a worker every second or so.
private struct Chaos: Sendable {
    let kept: KeptWorkers
    let names: [String]

    func run() async -> Int {
        var kills = 0
        while !Task.isCancelled {
            do { try await Task.sleep(for: .milliseconds(.random(in: 500...1500))) } catch { break }
            guard let name = names.randomElement(), let pid = kept.pid(of: name) else { continue }
            kill(pid, SIGKILL)
            kills += 1
        }
        return kills
    }
}
