import Clusters
import MillraceQueues
package import Postgres

/// A database of one test's own, migrated.
package struct TestDatabase: Sendable {
    package let name: String
    package let url: String

    package init(name: String, url: String) {
        self.name = name
        self.url = url
    }

    package var options: ConnectionOptions { ConnectionOptions(location: url) }

    package func connect(_ name: String = "test") async throws -> Connection {
        try await Connection.open(options, name: name)
    }

    /// A connection of another role, which must be allowed to log in.
    package func connect(as role: String) async throws -> Connection {
        try await Connection.open(
            ConnectionOptions(location: url.replacing("//millrace@", with: "//\(role)@")), name: "test")
    }
}

/// What a test's database is a copy of.
package enum Template: Sendable {
    /// Migrated, with the rooms of this run: see `hasRooms`.
    case migrated
    /// With a clock that `millrace.test_clock_advance` moves.
    case movableClock
    /// With overloads of a stranger's in `public`: see `PlantedOverloads`.
    case planted
    /// Not migrated.
    case empty
    /// Made by `adding`.
    case own(Task<String, any Error>)

    private static let plain = Task { try await make("template_plain", Migrator.asTested()) }
    private static let overloaded = Task {
        try await make("template_planted", Migrator.asTested()) { connection in
            try await PlantedOverloads.plant(on: connection)
        }
    }
    /// Noon in UTC is near: no test's hours or minutes cross midnight, whatever the hour of the run.
    private static let clock = Task {
        try await make("template_clock", Migrator.asTested(testClock: true)) { connection in
            try await connection.run(
                """
                update millrace.test_clock
                set shift = date_trunc('day', clock_timestamp(), 'UTC') + interval '36 hours' - clock_timestamp()
                """)
        }
    }

    func name() async throws -> String {
        switch self {
        case .migrated: try await Self.plain.value
        case .movableClock: try await Self.clock.value
        case .planted: try await Self.overloaded.value
        case .empty: "template0"
        case .own(let making): try await making.value
        }
    }

    /// A copy of this one with what all tests of a suite need: made once, as soon as a test asks for it. The name is for the whole test process.
    package func adding(
        _ name: String, _ add: @escaping @Sendable (TestDatabase) async throws -> Void
    ) -> Template {
        .own(
            Task {
                let database = try await copy(self, as: "template_\(name)")
                try await add(database)
                return database.name
            })
    }

    private static func make(
        _ name: String, _ migrator: Migrator, adding: (Connection) async throws -> Void = { _ in }
    ) async throws -> String {
        let office = try await TestCluster.office()
        try await office.run("create database \(name)")
        let url = try await TestCluster.shared().url(database: name)
        let connection = try await Connection.open(ConnectionOptions(location: url))
        _ = try await migrator.migrate(on: connection)
        for rule in upheld { try await connection.run(rule) }
        // Tests take on roles and set claims as a gateway does, from the login that owns everything here.
        try await connection.run("grant execute on function millrace.right_claims() to session_user")
        try await adding(connection)
        try await connection.run(sameQuestsEveryDay)
        await connection.close()
        await office.close()
        return name
    }

    /// A family's quest of today is of one kind, whatever the date of the run: a test that fails with one kind fails every day, or never.
    private static let sameQuestsEveryDay = """
        do $$ begin
            if to_regclass('millrace.quest_rule') is not null then
                update millrace.quest_rule r set rotation = (
                    select array_agg(r.rotation[1 + mod(n + days * (n_all - 1), n_all)] order by n)
                      from (select cardinality(r.rotation) as n_all, (millrace.now() at time zone 'UTC')::date - date '2000-01-01' as days) x,
                           generate_series(0, x.n_all - 1) n);
            end if;
        end $$
        """

    /// What the functions uphold without a check, which would cost every statement. Here a breach of it fails the test.
    private static let upheld = [
        """
        alter table millrace.job
            add constraint a_lane_holds_a_priority check (lane between 0 and 39),
            add constraint attempts_are_bounded check (max_attempts between 1 and 1000),
            add constraint a_key_has_its_hash check ((unique_key is null) = (unique_hash is null))
        """,
        """
        alter table millrace.lease
            add constraint a_lease_knows_its_range check (lo <= hi),
            add constraint a_lease_counts_its_jobs check (n = cardinality(ids) and n > 0),
            add constraint attempts_stand_beside_ids check (attempts is null or cardinality(attempts) = n),
            add constraint crashes_stand_beside_ids check (crashes is null or cardinality(crashes) = n),
            add constraint slots_have_their_jobs check
                (slot_gates is null and slot_jobs is null or cardinality(slot_gates) = cardinality(coalesce(slot_jobs, ids)))
        """,
        """
        alter table millrace.history
            add constraint an_outcome_is_known check (outcome between 1 and 8),
            add constraint a_failed_run_says_why check (outcome not in (3, 4, 7) or error is not null)
        """,
    ]
}

/// Postgres 15 copies page by page, through its buffers and its log, unless it is told to copy the files: that takes half the processor time.
private func copy(_ template: Template, as name: String, owner: String? = nil) async throws -> TestDatabase {
    let source = try await template.name()
    let office = try await TestCluster.office()
    let strategy = await office.serverVersion >= 150_000 ? "strategy file_copy" : ""
    let owner = owner.map { "owner \($0)" } ?? ""
    try await retrying(sqlStates: ["55006"]) {  // the template's last session may still be leaving
        try await office.run("create database \(name) template \(source) \(strategy) \(owner)")
    }
    await office.close()
    return TestDatabase(name: name, url: try await TestCluster.shared().url(database: name))
}

/// More at once would only wait for each other; fewer would leave the processor idle while some wait for what takes its time.
private let limit = EntryLimit(6)

/// A test that needs a second database gets it while it has the first: six such tests would wait for each other.
private enum Entry {
    @TaskLocal static var isHeld = false
}

/// Runs `body` with a fresh database, dropped afterwards.
package func withDatabase<Value>(
    _ template: Template = .migrated, owner: String? = nil, _ body: (TestDatabase) async throws -> Value
) async throws -> Value {
    let entersHere = !Entry.isHeld
    if entersHere { await limit.enter() }
    defer { if entersHere { limit.leave() } }
    let name = TestCluster.name("test")
    let database = try await copy(template, as: name, owner: owner)
    let outcome: Result<Value, any Error>
    do {
        outcome = .success(try await Entry.$isHeld.withValue(true) { try await body(database) })
    } catch {
        outcome = .failure(error)
    }
    let office = try await TestCluster.office()
    try await office.run("drop database \(name) with (force)")
    await office.close()
    return try outcome.get()
}

/// Runs `body` with a fresh database and one connection to it.
package func withConnection<Value>(
    _ template: Template = .migrated, _ body: (Connection) async throws -> Value
) async throws -> Value {
    try await withDatabase(template) { database in
        let connection = try await database.connect()
        let value = try await body(connection)
        await connection.close()
        return value
    }
}
