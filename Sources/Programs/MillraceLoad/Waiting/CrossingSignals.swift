import FoundationEssentials
import Glibc
import MillraceCommand
import Postgres
import Queues
import Synchronization

/// Callers send signals and enqueue jobs that wait for them, in random order, while workers are killed.
struct CrossingSignals: Sendable {
    let invocation: Invocation

    private static let callers = 16
    private static let workers = 4
    private static let keys = 1000
    private static let unfinished: SQL = """
        select count(*) from millrace.job j join millrace.kind k on k.id = j.kind and k.name = 'practice.take'
         where not exists (select from millrace.history h where h.id = j.id and h.outcome = 1)
        """

    private var pairs: Int { invocation.parsed.integer("pairs") ?? 20_000 }

    private final class Shared<Value: Sendable>: Sendable {
        private let mutex: Mutex<Value>

        init(_ value: Value) { mutex = Mutex(value) }

        func withLock<Result: Sendable>(_ body: (inout Value) -> Result) -> Result {
            mutex.withLock { value in body(&value) }
        }
    }

    private enum Act {
        case enqueue(Int)
        case signal(Int)
    }

    func run(on connection: Connection) async throws -> ([Bar], [(String, JSONValue)]) {
        try await connection.execute(
            "create table if not exists practice_record (job bigint, token text, what text, at timestamptz default clock_timestamp())"
        )
        try await connection.execute("create index if not exists practice_what on practice_record (what)")
        let directory = try Scratch.directory(
            "waiting", in: getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp", isOpen: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let kept = KeptWorkers(directory: directory)
        do {
            var variables = invocation.environment
            variables["DATABASE_URL"] = try invocation.connectionOptions().location
            variables["MILLRACE_LISTEN"] = "off"
            for number in 1...Self.workers {
                kept.keep(
                    "w\(number)",
                    arguments: ["worker", "--practice", "--name", "w\(number)", "--parent", "\(getpid())"]
                        + ["--log-level", "warning", "--slots", "50"],
                    environment: variables)
            }
            let began = ContinuousClock.now
            let (kills, sent) = try await cross(kept)
            try await settle(on: connection)
            let seconds = began.duration(to: .now) / .seconds(1)
            let bad = try await kept.stop()
            let found = try await judge(on: connection)
            invocation.console.note(
                "\(Humane.count(sent)) signals and as many waits in \(Humane.decimal(seconds, places: 0)) s, \(kills) workers killed"
                    + (bad.isEmpty ? "" : "; \(bad.joined(separator: "; "))"))
            return (
                [
                    .atMost("signals that no job took", 0, measured: Double(found.lost), unit: ""),
                    .atMost("signals that two jobs took", 0, measured: Double(found.twice), unit: ""),
                    .atMost("jobs that took two signals", 0, measured: Double(found.greedy), unit: ""),
                    .atMost("jobs that have not ended well", 0, measured: Double(found.unfinished), unit: ""),
                    .atLeast("workers killed", 5, measured: Double(kills), unit: ""),
                ],
                [
                    ("pairs", .init(pairs)), ("seconds", .double(seconds)), ("kills", .init(kills)),
                    ("lost", .init(found.lost)), ("taken_twice", .init(found.twice)),
                ]
            )
        } catch {
            kept.kill()
            throw error
        }
    }

    private func cross(_ kept: KeptWorkers) async throws -> (kills: Int, sent: Int) {
        let acts = Shared((0..<pairs).flatMap { [Act.enqueue($0), .signal($0)] }.shuffled())
        let options = try invocation.connectionOptions()
        let isOver = Shared(false)
        let kills = Shared(0)
        let killer = Task {
            while !isOver.withLock({ $0 }) {
                try? await Task.sleep(for: .milliseconds(.random(in: 300...900)))
                if let pid = kept.pid(of: "w\(Int.random(in: 1...Self.workers))") {
                    kill(pid, SIGKILL)
                    kills.withLock { $0 += 1 }
                }
            }
        }
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for caller in 0..<Self.callers {
                    group.addTask {
                        let connection = try await Connection.open(options, name: "caller-\(caller)")
                        while let act = acts.withLock({ $0.popLast() }) {
                            switch act {
                            case .enqueue(let n):
                                try await connection.execute(
                                    "select millrace.enqueue('practice.take', jsonb_build_object('name', 'go', 'key', $1::text))",
                                    [.text("\(n % Self.keys)")])
                            case .signal(let n):
                                _ = try await Queue.signal(
                                    "go", key: "\(n % Self.keys)", payload: Array("\(n)".utf8), id: "\(n)",
                                    on: connection)
                            }
                        }
                        await connection.close()
                    }
                }
                try await group.waitForAll()
            }
            isOver.withLock { $0 = true }
        } catch {
            isOver.withLock { $0 = true }
            throw error
        }
        await killer.value
        return (kills.withLock { $0 }, pairs)
    }

    /// Until nothing happens any more.
    private func settle(on connection: Connection) async throws {
        let live = invocation.console.live()
        let deadline = ContinuousClock.now + .seconds(300)
        while ContinuousClock.now < deadline {
            let left = try await connection.int(Self.unfinished)
            live.update(["\(Humane.count(left)) left"])
            if left == 0 { break }
            try await Task.sleep(for: .seconds(1))
        }
        live.update([])
    }

    private func judge(
        on connection: Connection
    ) async throws(PostgresError) -> (lost: Int, twice: Int, greedy: Int, unfinished: Int) {
        (
            lost: try await connection.int(
                "select count(*) from generate_series(0, $1 - 1) n where not exists (select from practice_record r where r.what = 'took ' || n)",
                [.int4(Int32(pairs))]),
            twice: try await connection.int(
                "select count(*) from (select what from practice_record group by what having count(distinct job) > 1) x"
            ),
            greedy: try await connection.int(
                "select count(*) from (select job from practice_record group by job having count(distinct what) > 1) x"),
            unfinished: try await connection.int(Self.unfinished)
        )
    }
}
