import CPostgres
import Glibc
import Synchronization
package import Threads

/// One connection, an actor on its own thread: its calls block that thread and nothing else. Every statement has a deadline;
/// one that passes it, or whose task is cancelled, is cancelled on the server too. Once broken, a connection stays broken.
package actor Connection {
    package nonisolated let options: ConnectionOptions
    nonisolated let executor: ThreadExecutor
    nonisolated let interrupt = Interrupt()
    /// Of who uses it now; -1: no limit.
    private nonisolated let answerLimit: Atomic<Int>
    var handle: Handle?
    var prepared: [String: String] = [:]
    /// A prefix of our prepared statements' names: behind a pooler other clients' may exist on the same server connection.
    let statementPrefix = "m\(String(UInt64.random(in: .min ... .max), radix: 36))_"
    private var statementNames = 0
    var preparing: Bool
    var setsIsolation = false
    /// The server side is shared with others: nothing may be left on it, and it hears no notifications.
    package private(set) var isPooled = false
    package private(set) var serverVersion: Int32 = 0

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// The thread goes when the connection does.
    private nonisolated let ownsThread: Bool

    private init(_ options: ConnectionOptions, name: String, thread: ThreadExecutor?) {
        self.options = options
        executor = thread ?? ThreadExecutor(name: name)
        ownsThread = thread == nil
        preparing = options.prepare != .off
        answerLimit = Atomic(options.mostAnswerBytes ?? -1)
    }

    deinit {
        if ownsThread { executor.stop() }
    }

    /// Connects within the options' deadline.
    /// - Parameter thread: an existing thread to work on; without it the connection starts its own with that name.
    package static func open(
        _ options: ConnectionOptions, name: String = "pg", on thread: ThreadExecutor? = nil
    ) async throws(PostgresError) -> Connection {
        let connection = Connection(options, name: name, thread: thread)
        try await connection.connectCancellably()
        return connection
    }

    /// Ends the wait of the statement that runs now, if one does, as if its task had been cancelled.
    package nonisolated func interruptNow() {
        interrupt.fire()
    }

    package var isBroken: Bool {
        handle.map(\.isBad) ?? true
    }

    /// About the most bytes of an answer; nil: no limit.
    nonisolated var mostAnswerBytes: Int? {
        let limit = answerLimit.load(ordering: .relaxed)
        return limit < 0 ? nil : limit
    }

    nonisolated func limitAnswers(to bytes: Int?) {
        answerLimit.store(bytes ?? -1, ordering: .relaxed)
    }

    func nextStatementName() -> String {
        statementNames += 1
        return "\(statementPrefix)\(statementNames)"
    }

    package func close() {
        handle = nil
    }

    /// A cancelled task ends the wait for a server that does not answer.
    private func connectCancellably() async throws(PostgresError) {
        try await cancellable { connection throws(PostgresError) in try connection.connect() }
    }

    private func connect() throws(PostgresError) {
        let attempts = try options.attempts()
        let share = options.connectDeadline / attempts.count
        var reasons: [String] = []
        for attempt in attempts {
            do {
                return try greet(try reach(attempt, within: max(share, .seconds(1))))
            } catch .unreachable(let reason) {
                reasons.append(reason)
            }
        }
        throw .unreachable(reason: reasons.joined(separator: "; "))
    }

    /// Waits for one server to take us in.
    private func reach(_ place: [(String, String)], within limit: Duration) throws(PostgresError) -> Handle {
        let deadline = ContinuousClock.now + limit
        let handle = try start(place)
        var wants = PGRES_POLLING_WRITING
        while wants != PGRES_POLLING_OK {
            if wants == PGRES_POLLING_FAILED { throw .unreachable(reason: handle.complaint) }
            let waited = handle.wait(
                reading: wants == PGRES_POLLING_READING, writing: wants == PGRES_POLLING_WRITING, until: deadline,
                interrupt: interrupt)
            switch waited {
            case .deadline: throw .unreachable(reason: "no answer within \(limit)")
            case .interrupted: throw .cancelled
            case .ready, .workWaiting: break
            }
            wants = PQconnectPoll(handle.pointer)
        }
        return handle
    }

    private func greet(_ handle: Handle) throws(PostgresError) {
        PQsetnonblocking(handle.pointer, 1)
        PQsetNoticeProcessor(handle.pointer, { _, _ in }, nil)
        self.handle = handle
        serverVersion = PQserverVersion(handle.pointer)
        try look(at: handle)
    }

    private func start(_ place: [(String, String)]) throws(PostgresError) -> Handle {
        let pairs = try options.keywords() + place  // what comes later wins
        var keys = pairs.map { strdup($0.0) } + [nil]
        var values = pairs.map { strdup($0.1) } + [nil]
        defer { for string in keys + values { free(string) } }
        let pointer = keys.withUnsafeMutableBufferPointer { keys in
            values.withUnsafeMutableBufferPointer { values in
                keys.withMemoryRebound(to: UnsafePointer<CChar>?.self) { keys in
                    values.withMemoryRebound(to: UnsafePointer<CChar>?.self) { values in
                        keys.baseAddress.flatMap { keys in
                            values.baseAddress.flatMap { values in PQconnectStartParams(keys, values, 1) }
                        }
                    }
                }
            }
        }
        guard let pointer else { throw .unreachable(reason: "out of memory") }
        let handle = Handle(pointer)
        if handle.isBad { throw .unreachable(reason: handle.complaint) }
        return handle
    }

    /// A pooler makes up the process number it tells its clients; the server knows its own.
    private func look(at handle: Handle) throws(PostgresError) {
        let rows = try perform(
            CatalogPath.look, prepare: false, deadline: options.connectDeadline, honoursCancel: false
        ) { row throws(PostgresError) in
            (pid: try row.int(0), isolation: try row.string(1))
        }
        guard let row = rows.rows.first else { throw .unreachable(reason: "the server did not introduce itself") }
        isPooled = row.pid != Int64(PQbackendPID(handle.pointer))
        setsIsolation = isPooled && row.isolation != "read committed"
        if isPooled, options.prepare == .auto { preparing = false }
        if !isPooled {
            _ = try perform(
                CatalogPath.ofSession, prepare: false, deadline: options.connectDeadline, honoursCancel: false
            ) { _ in }
            // A server that loses us notices while a statement runs, and frees its locks.
            _ = try? perform(
                Statement("select set_config('client_connection_check_interval', '5s', false)"), prepare: false,
                deadline: options.connectDeadline, honoursCancel: false
            ) { _ in }
        }
    }
}

extension Connection {
    func isIdle(_ handle: Handle) -> Bool {
        PQtransactionStatus(handle.pointer) == PQTRANS_IDLE
    }
}
