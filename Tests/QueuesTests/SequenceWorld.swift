import Postgres
import TestSupport

/// A database in which random things are done, and the invariants that must hold after each of them.
struct SequenceWorld {
    /// Somebody with a session of its own, in which a transaction may be open.
    struct Caller {
        let name: String
        let connection: Connection
        var isOpen = false
        var savepoints = 0
    }

    /// Claims, ends runs, keeps house and looks on; each call is a transaction.
    let worker: Connection
    /// People, programs and handlers.
    var callers: [Caller]
    var random: SeededRandom
    /// What is done in this round, and how often.
    let weights: [(Operation, Int)]
    var session = 1
    var number = 8
    /// Counts what is charged and signalled.
    var count = 0
    /// What a worker has seen that must not be.
    var wrong: [String] = []
    /// What was done, to find out later what went wrong.
    var story: [String] = []

    /// Refusals that a caller may meet: a key that is held, a job that is gone or runs, a lease that is lost, a lock that somebody else keeps, a snapshot
    /// that is too old, a job that would wait for itself.
    static let usual: Set<String> = ["23505", "55000", "P0002", "40001", "55P03", "22023", "53400"]

    init(_ database: TestDatabase, random: SeededRandom) async throws {
        var random = random
        weights = Self.weights(&random)
        self.random = random
        worker = try await database.connect()
        callers = []
        for name in ["a", "b", "c"] { callers.append(Caller(name: name, connection: try await database.connect())) }
        try await worker.run(
            """
            create table public.ledger (job bigint, what text);
            create function delivered() returns trigger language plpgsql as $$
            begin insert into public.ledger values (new.id, 'delivered'); return null; end $$;
            create trigger delivered after insert on millrace.history for each row when (new.outcome = 1) execute function delivered()
            """)
        try await worker.openSession(session)
        for tenant in ["a", "b"] { try await worker.limit("tenant", tenant, #"{"concurrency": 2}"#) }
        try await worker.limit("key", "l", #"{"concurrency": 1}"#)
        for connection in [worker] + callers.map(\.connection) {
            try await connection.run("set lock_timeout = '60ms'")
        }
    }

    /// Every other round does few kinds of things, and each more often: what only three operations together bring about is rare among forty.
    private static func weights(_ random: inout SeededRandom) -> [(Operation, Int)] {
        guard random.chance(0.5) else { return Operation.weights }
        let always: Set<Operation> = [.enqueue, .claim, .end, .house]
        return Operation.weights.compactMap { operation, weight in
            guard !always.contains(operation) else { return (operation, weight) }
            return random.chance(0.4) ? (operation, weight * random.pick([(1, 1), (2, 1), (4, 1)])) : nil
        }
    }

    mutating func step() async throws {
        if let caller = callers.indices.first(where: { callers[$0].isOpen && random.chance(0.35) }) {
            return try await goOn(caller)
        }
        let operation = random.pick(weights)
        do {
            try await perform(operation, by: random.below(callers.count))
        } catch let error as PostgresError where Self.usual.contains(error.sqlState ?? "") {
            story.append("\(operation) was refused: \(error)")
        }
    }

    /// An open transaction is committed or rolled back, wholly or to a savepoint.
    private mutating func goOn(_ caller: Int) async throws {
        switch random.pick([(0, 5), (1, 1), (2, 3), (3, 2)]) {
        case 0: try await end(caller, "commit")
        case 1: try await end(caller, "rollback")
        case 2:
            callers[caller].savepoints += 1
            try await say(caller, "savepoint s")
        default:
            guard callers[caller].savepoints > 0 else { return }
            try await say(caller, "rollback to s")
        }
    }

    mutating func end(_ caller: Int, _ how: String) async throws {
        callers[caller].isOpen = false
        callers[caller].savepoints = 0
        try await say(caller, how)
    }

    /// Says something in a caller's session; some of it begins a transaction that stays open.
    mutating func say(_ caller: Int, _ sql: String, begins: Bool = false) async throws {
        if begins, !callers[caller].isOpen, random.chance(0.2) {
            callers[caller].isOpen = true
            try await say(caller, "begin isolation level \(random.chance(0.25) ? "repeatable read" : "read committed")")
        }
        story.append("\(callers[caller].name): \(sql)")
        do {
            try await callers[caller].connection.run(sql)
        } catch {
            guard callers[caller].isOpen else { throw error }
            if callers[caller].savepoints > 0, random.chance(0.7) {
                try await say(caller, "rollback to s")
            } else {
                try await end(caller, "rollback")
            }
            throw error
        }
    }

    /// Says something as the worker.
    mutating func tell(_ sql: String, _ name: String? = nil) async throws {
        story.append("worker: \(name ?? sql)")
        try await worker.run(sql)
    }

    static let jobs = "select id from millrace.job"
    /// Jobs that something stands beside.
    private static let laden =
        "select job from millrace.wait union all select job from millrace.blocked union all select job from millrace.step"

    /// Up to `count` of what a query finds. Of all jobs, those that have more beside them come more often.
    mutating func some(_ count: Int, _ select: String) async throws -> [String] {
        let select = select == Self.jobs && random.chance(0.4) ? Self.laden : select
        let all = try await worker.column("select distinct x::bigint from (\(select)) s(x) order by 1")
        return all.isEmpty ? [] : (0..<count).map { _ in all[random.below(all.count)] }
    }

    mutating func one(_ select: String) async throws -> String? { try await some(1, select).first }
}
