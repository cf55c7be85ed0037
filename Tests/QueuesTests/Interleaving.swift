import Postgres
import TestSupport

/// Several sessions that a seed drives statement by statement: callers, workers and housekeeping.
///
/// One session makes its next statement. Then nothing happens until each statement has ended or waits for a lock that another session holds, so the order
/// of everything is what the seed says, and the same seed gives the same `trace`. Time stands still but for what a step adds. Of two sessions that wait
/// for the same third one, the later gives up: both would go on at the same moment.
struct Interleaving {
    enum Role { case caller, worker, keeper }

    /// A statement, and what somebody learns from its answer.
    struct Saying {
        var sql: String
        var reading = Reading.nothing
        /// How the trace says it, if it is long.
        var words: String?
    }

    struct Session {
        let name: String
        let role: Role
        let connection: Connection
        let process: Int
        var isOpen = false
        var isFailed = false
        /// How much had been heard at each savepoint.
        var savepoints: [Int] = []
        /// What the open transaction has been told. It counts from the commit.
        var heard: [(Reading, [String])] = []
        var flight: Flight?
        /// The line of the trace with its last statement.
        var said = 0
    }

    /// A statement that has no answer yet.
    struct Flight {
        var saying: Saying
        var isKnownToWait = false
        let answer = Locked<Result<[String], PostgresError>?>(nil)
    }

    /// Refusals that anybody may meet: a deadlock, and giving up a wait.
    static let usual: Set<String> = ["40P01", "57014"]
    /// Those that callers may meet: a key that is held, a job that is gone or runs, a lease that is lost, a snapshot that is too old, a job that would wait
    /// for itself.
    static let usualForCallers: Set<String> = ["23505", "55000", "P0002", "40001", "55P03", "22023", "53400"]

    let watcher: Connection
    var sessions: [Session] = []
    var random: SeededRandom
    var trace: [String] = []
    var wrong: [String] = []
    var known = Known()
    /// Whether something was committed in this step.
    var hasCommitted = false
    /// How often a session had to wait.
    var waits = 0
    /// What callers do in this round, and how often.
    let weights: [(Act, Int)]
    /// The same of workers.
    let deeds: [(Deed, Int)]
    var places = PlaceLog()

    init(_ database: TestDatabase, random: SeededRandom) async throws {
        var random = random
        weights = Act.weights(&random)
        deeds = Deed.weights(&random)
        self.random = random
        watcher = try await database.connect()
        for (name, role) in [
            ("a", Role.caller), ("b", .caller), ("c", .caller), ("v", .worker), ("w", .worker), ("x", .keeper),
            ("y", .keeper),
        ] {
            let connection = try await database.connect()
            // The session that closes a circle of waits is refused, as all others have looked for one before.
            try await connection.run("set deadlock_timeout = '10ms'; select setseed(0.5)")
            let process = try await connection.process()
            sessions.append(Session(name: name, role: role, connection: connection, process: process))
        }
        for worker in sessions.indices where sessions[worker].role == .worker { try await openSession(worker) }
    }

    func close() async {
        for connection in [watcher] + sessions.map(\.connection) { await connection.close() }
    }

    func index(of name: String) -> Int { sessions.firstIndex { $0.name == name } ?? 0 }

    // MARK: Steps

    mutating func step() async throws {
        let passes = random.chance(0.06) ? random.pick([(100, 2), (1500, 2), (5000, 1)]) : 1
        try await advance(passes)
        if passes > 1 { trace.append("\(passes) ms pass") }
        hasCommitted = false
        try await goOn(next())
        if hasCommitted {
            wrong += try await places.look(watcher)
            if random.chance(0.4) { try await check() }
        }
        guard wrong.isEmpty else { throw Fault(sentences: wrong) }
    }

    func advance(_ milliseconds: Int) async throws {
        try await watcher.run("select setval('public.sim_time', last_value + \(milliseconds)) from public.sim_time")
    }

    /// Any session whose last statement has ended. Where many wait, one that others may wait for.
    private mutating func next() -> Int {
        let free = sessions.indices.filter { sessions[$0].flight == nil }
        let open = free.filter { sessions[$0].isOpen }
        let choices = free.count + 3 < sessions.count && !open.isEmpty ? open : free
        return random.pick(
            choices.map { session in
                switch sessions[session].role {
                case .caller: (session, 3)
                case .worker: (session, 4)
                case .keeper: (session, 2)
                }
            })
    }

    private mutating func goOn(_ session: Int) async throws {
        if sessions[session].isFailed {
            let goesBack = !sessions[session].savepoints.isEmpty && random.chance(0.7)
            try await say(session, Saying(sql: goesBack ? "rollback to s" : "rollback"))
        } else if sessions[session].isOpen {
            try await goOnInside(session)
        } else if random.chance(0.5), let saying = statement(session) {
            try await begin(session, then: saying)
        } else if let saying = statement(session) {
            try await say(session, saying)
        }
    }

    /// A caller's transaction has several statements. A worker's has one; between its end and its commit others go on, as beside a statement that takes long.
    private mutating func goOnInside(_ session: Int) async throws {
        guard sessions[session].role == .caller else {
            return try await say(session, Saying(sql: random.chance(0.93) ? "commit" : "rollback"))
        }
        let canGoBack = !sessions[session].savepoints.isEmpty
        let sql = random.pick([
            ("commit", 6), ("rollback", 1), ("", 5), ("savepoint s", 1), ("rollback to s", canGoBack ? 1 : 0),
        ])
        guard sql.isEmpty else { return try await say(session, Saying(sql: sql)) }
        try await say(session, statement(session) ?? Saying(sql: "commit"))
    }

    private mutating func begin(_ session: Int, then saying: Saying) async throws {
        let isRepeatable = sessions[session].role == .caller && random.chance(0.12)
        let level = isRepeatable ? "repeatable read" : "read committed"
        sessions[session].isOpen = true
        trace.append("\(sessions[session].name): begin isolation level \(level)")
        try await sessions[session].connection.run("begin isolation level \(level)")
        // A snapshot is older than what comes next.
        try await say(session, isRepeatable ? Saying(sql: "select count(*) from millrace.job") : saying)
    }

    private mutating func statement(_ session: Int) -> Saying? {
        if random.chance(0.4), let saying = rival(session) { return saying }
        return switch sessions[session].role {
        case .caller: act(by: session)
        case .worker: work(by: session)
        case .keeper: keep()
        }
    }

    mutating func say(_ session: Int, _ saying: Saying) async throws {
        sessions[session].said = trace.count
        trace.append("\(sessions[session].name): \(saying.words ?? saying.sql)")
        let flight = Flight(saying: saying)
        sessions[session].flight = flight
        let connection = sessions[session].connection
        let isSelect = saying.sql.hasPrefix("select") || saying.sql.hasPrefix("with")
        // Ended by `settle`, which reads its answer.
        Task {
            do {
                var rows: [String] = []
                if isSelect {
                    rows = try await connection.column(saying.sql)
                } else {
                    try await connection.run(saying.sql)
                }
                flight.answer.withLock { [rows] in $0 = .success(rows) }
            } catch let error as PostgresError {
                flight.answer.withLock { $0 = .failure(error) }
            } catch {}
        }
        try await settle()
    }
}
