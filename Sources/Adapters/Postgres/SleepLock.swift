/// Makes writers notify while a reader sleeps, and only then. A value lives as long as the connection that holds its locks.
///
/// A reader that is about to sleep takes the advisory lock of its place alone, and then looks once more. A writer tries to share that lock
/// until its transaction ends. If it cannot, a reader sleeps or is about to, so it notifies. If it can, the reader gets the lock only
/// after that transaction has committed, and its look finds what was written. So no wake-up is lost. Any login can hold these locks,
/// so a reader also looks from time to time.
package struct SleepLock: Sendable {
    /// In what the readers differ.
    package struct Rules: Sendable {
        package enum Election: Sendable {
            /// Every reader tries for itself.
            case none
            /// The session that holds this lock with the number 0 sleeps for all readers, at all places.
            case once(Int32)
            /// As `once`, for each place by itself.
            case eachPlace(Int32)
        }

        /// The first number of the locks that writers share. The second number is the place.
        package var lock: Int32
        package var election = Election.none
        /// How long the reader waits behind writers for one place. While it waits, every further writer notifies. Zero: it only tries.
        package var patience = Duration.zero
        /// The last place that is missing is waited for until it is there, or somebody interrupts the connection.
        package var waitsForLast = false

        package init(lock: Int32, election: Election = .none, patience: Duration = .zero, waitsForLast: Bool = false) {
            self.lock = lock
            self.election = election
            self.patience = patience
            self.waitsForLast = waitsForLast
        }
    }

    /// At these places writers notify.
    package private(set) var held: Set<Int32> = []
    private var elected: Set<Int32> = []
    private var isElectedForAll = false
    /// An answer may have been lost: the session may hold more than is known here.
    private var mayHold = false
    private let rules: Rules
    private let connection: Connection
    private let waits: @Sendable (_ begins: Bool) -> Bool

    /// - Parameter waits: called with true before each wait for a lock, and with false after it. If it returns false before, there is no
    ///   wait.
    package init(
        _ rules: Rules, on connection: Connection, waits: @escaping @Sendable (_ begins: Bool) -> Bool = { _ in true }
    ) {
        self.rules = rules
        self.connection = connection
        self.waits = waits
    }

    /// Sleeps at these places and no others.
    /// - Returns: the places whose locks were missing, whether they are held now or not. A look is due there: it finds what was written
    ///   before.
    package mutating func sleep(at places: Set<Int32>) async throws(PostgresError) -> Set<Int32> {
        try await giveBack(places)
        let missing = try await elect(places).subtracting(held)
        guard !missing.isEmpty else { return [] }
        held.formUnion(try await tryLocks(rules.lock, missing))
        guard rules.patience > .zero else { return missing }
        for place in missing.subtracting(held).sorted() {
            let isLast = missing.subtracting(held).count == 1
            if try await wait(for: place, atMost: isLast && rules.waitsForLast ? nil : rules.patience) {
                held.insert(place)
            }
        }
        return missing
    }

    /// Sleeps nowhere, and is no longer elected.
    package mutating func leave() async throws(PostgresError) {
        guard mayHold else { return }
        try await connection.execute("select pg_advisory_unlock_all()")
        self = SleepLock(rules, on: connection, waits: waits)
    }

    /// Whether it holds all that it was elected for.
    package var isWhole: Bool { held == elected }

    private mutating func giveBack(_ wanted: Set<Int32>) async throws(PostgresError) {
        let (locks, elections) = (held.subtracting(wanted), elected.subtracting(wanted))
        if !locks.isEmpty { try await unlock(rules.lock, locks) }
        if case .eachPlace(let lock) = rules.election, !elections.isEmpty { try await unlock(lock, elections) }
        held.formIntersection(wanted)
        elected.formIntersection(wanted)
    }

    /// The places where this reader may sleep.
    private mutating func elect(_ wanted: Set<Int32>) async throws(PostgresError) -> Set<Int32> {
        let others = wanted.subtracting(elected)
        switch rules.election {
        case .none: elected = wanted
        case .once(let lock):
            if !isElectedForAll { isElectedForAll = try await !tryLocks(lock, [0]).isEmpty }
            elected = isElectedForAll ? wanted : []
        case .eachPlace(let lock):
            if !others.isEmpty { elected.formUnion(try await tryLocks(lock, others)) }
        }
        return elected
    }

    /// Those that were free.
    private mutating func tryLocks(_ lock: Int32, _ places: Set<Int32>) async throws(PostgresError) -> [Int32] {
        let mayHave = mayHold
        mayHold = true
        let taken = try await connection.query(
            "select b from unnest($2::int[]) b where pg_try_advisory_lock($1, b)",
            [.int4(lock), .int4s(places.sorted())]
        ) { row throws(PostgresError) in Int32(try row.int(0)) }
        mayHold = mayHave || !taken.isEmpty
        return taken
    }

    private func unlock(_ lock: Int32, _ places: Set<Int32>) async throws(PostgresError) {
        try await connection.execute(
            "select pg_advisory_unlock($1, b) from unnest($2::int[]) b", [.int4(lock), .int4s(places.sorted())])
    }

    /// Queued behind the writers that share the lock.
    private mutating func wait(for place: Int32, atMost limit: Duration?) async throws(PostgresError) -> Bool {
        guard waits(true) else { return false }
        defer { _ = waits(false) }
        mayHold = true
        let bound = limit.map { "\(Int(($0 / .milliseconds(1)).rounded(.up)))ms" } ?? "0"
        do {
            try await connection.execute("select set_config('lock_timeout', $1, false)", [.text(bound)])
            try await connection.execute(
                "select pg_advisory_lock($1, $2)", [.int4(rules.lock), .int4(place)],
                deadline: limit == nil ? .seconds(86_400) : nil)
            return true
        } catch .server(let error) where error.sqlState == "55P03" {
            return false
        }
    }
}
