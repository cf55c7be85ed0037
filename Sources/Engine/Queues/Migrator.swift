package import Postgres
package import Schema

/// Brings a database to this program's schema: the core, the rooms that are installed, and those that are to be added or taken away. It does all in
/// one transaction. Only one migrator works at a time, and it is safe to repeat.
package struct Migrator: Sendable {
    package struct Report: Sendable, Equatable {
        /// Names of migrations; of the core's first one and the rooms' also where what they make was there already.
        package var applied: [String] = []
        package var refreshed = false
        /// The core's.
        package var version: Int
        /// The rooms that are installed now.
        package var rooms: [String] = []
        /// There was no schema before.
        package var isNew = false
        /// Whose rights the migrations have changed, a sentence each.
        package var notes: [String] = []
    }

    /// The rooms of this program, each behind those that it needs. A schema with another room is refused: its functions would be taken for stale.
    package var rooms: [RoomSchema]
    /// Rooms to install, by name, each with what it needs.
    package var adding: [String]
    /// Rooms to take away, by name, with all that they have.
    package var removing: [String]
    /// Also a room with rows is taken away.
    package var removesRows = false
    /// How a schema from before rooms had lines of their own is taken over; nil: it is refused.
    package var adoption: SchemaAdoption?
    package var roles: [(role: String, name: String)]
    package var testClock: Bool
    /// How long to wait for a migrator of an earlier version.
    package var patience = Duration.seconds(10)

    package init(
        rooms: [RoomSchema] = [], adoption: SchemaAdoption? = nil, adding: [String] = [], removing: [String] = [],
        roles: [(role: String, name: String)] = [], testClock: Bool = false
    ) {
        self.rooms = rooms
        self.adoption = adoption
        self.adding = adding
        self.removing = removing
        self.roles = roles
        self.testClock = testClock
    }

    package func migrate(on connection: Connection) async throws(Failure) -> Report {
        if await connection.serverVersion < 140_000 { throw .oldServer(Int(await connection.serverVersion)) }
        var tries = 0
        var waitsForOlder = true
        while true {
            do {
                return try await attempt(waitsForOlder: waitsForOlder, on: connection)
            } catch .database(let error)
                where (error.isCollision || ["55P03", "23505", "XX000"].contains(error.sqlState)) && tries < 40
            {
                waitsForOlder = false
                tries += 1  // locked tables, or another migrator that creates the same: it will be done soon
                try? await Task.sleep(for: .milliseconds(50 * min(tries, 20)))
            } catch .database(let error) where error.sqlState == "55P03" {
                throw .busy(error)
            }
        }
    }

    /// The whole script of a new schema, as `--dry-run` prints it.
    package func scriptsOfNewSchema() throws(Failure) -> [Script] {
        let plan = try MigrationPlan(.none, rooms: rooms, adoption: nil, adding: adding, removing: [])
        return plan.scripts + ([Schema.core] + plan.rooms).flatMap { functions(of: $0) } + [Schema.grants]
    }

    private func functions(of room: RoomSchema, clockMoves: Bool = false) -> [Script] {
        room.functions.map { $0.name == "clock" && (testClock || clockMoves) ? Schema.testClock : $0 }
    }

    /// Why `migrate` would refuse this database's schema; nil when it would not.
    package static func objection(on connection: Connection) async throws(PostgresError) -> Failure? {
        try await connection.transaction { connection throws(PostgresError) in
            try await SchemaContents.useOneSnapshot(on: connection)
            return try await refusal(on: connection)
        }
    }

    private func attempt(waitsForOlder: Bool, on connection: Connection) async throws(Failure) -> Report {
        let outcome: Result<Report, Failure> = await run(waitsForOlder: waitsForOlder, on: connection)
        let report = try outcome.get()
        if !report.isNew { try await maintain(on: connection) }
        return report
    }

    /// Apart from the migration, which would wait here for callers who wait for it. If it meets a lock, a worker does it within a minute.
    private func maintain(on connection: Connection) async throws(Failure) {
        do throws(PostgresError) {
            try await connection.execute("select millrace.maintain()", deadline: Self.deadline)
        } catch {
            guard error.sqlState == "55P03" else { throw .database(error) }
        }
    }

    private func run(waitsForOlder: Bool, on connection: Connection) async -> Result<Report, Failure> {
        do throws(PostgresError) {
            return try await connection.transaction(keeping: { (try? $0.get()) != nil }) {
                connection throws(PostgresError) in
                try await apply(waitsForOlder: waitsForOlder, on: connection)
            }
        } catch {
            return .failure(.database(error))
        }
    }

    private func apply(
        waitsForOlder: Bool, on connection: Connection
    ) async throws(PostgresError) -> Result<Report, Failure> {
        if waitsForOlder { try await waitForOlderMigrator(on: connection) }
        // Before anything is created or waited for. The contents may change until nobody else migrates, so only the owners are checked
        // here.
        if let refusal = try await Self.refusal(onlyOwners: true, on: connection) { return .failure(refusal) }
        try await InstalledLines.makeTable(on: connection)
        try await connection.execute(
            "lock table millrace.migration in share row exclusive mode", deadline: .seconds(600))
        try await connection.execute("select set_config('lock_timeout', '2s', true), set_config('jit', 'off', true)")
        let installed = try await InstalledLines.read(on: connection)
        let plan: MigrationPlan
        do throws(Failure) {
            plan = try MigrationPlan(
                installed, rooms: rooms, adoption: adoption, adding: adding, removing: removing)
        } catch {
            return .failure(error)
        }
        if let refusal = try await Self.refusal(on: connection) { return .failure(refusal) }
        var report = Report(version: Schema.version, rooms: plan.rooms.map(\.name), isNew: installed.isEmpty)
        try await lockAhead(plan.scripts, on: connection)
        for step in plan.steps {
            if step.isRun { try await connection.run(script: .shipped(step.migration.bytes), deadline: Self.deadline) }
            try await InstalledLines.note(step, on: connection)
            report.applied.append(step.migration.name)
        }
        for room in plan.removed {
            if !removesRows, let table = try await RoomRemoval.tableWithRows(of: room, on: connection) {
                return .failure(.roomHasRows(room.name, table: table))
            }
            do throws(PostgresError) {
                try await RoomRemoval.remove(room, on: connection)
            } catch {
                guard case .server(let server) = error, server.sqlState == "2BP01" else { throw error }
                return .failure(.roomIsUsed(room.name, by: server.detail ?? server.message))
            }
        }
        try await refresh(plan.rooms, on: connection)
        try await Queue.noteOrigin(on: connection)
        report.refreshed = true
        if report.isNew { try await connection.execute("select millrace.maintain()", deadline: Self.deadline) }
        report.notes = try await said(on: connection)
        // Another role with the right to create in the schema may have used it meanwhile.
        if let refusal = try await Self.refusal(onlyOwners: true, on: connection) { return .failure(refusal) }
        try await SchemaContents.writeDown(on: connection)
        return .success(report)
    }

    private static let deadline = Duration.seconds(120)

    /// What the migrations have left in a setting of this transaction.
    private func said(on connection: Connection) async throws(PostgresError) -> [String] {
        let text = try await connection.query(
            "select coalesce(current_setting('millrace.migration_said', true), '')"
        ) { row throws(PostgresError) in try row.string(0) }
        return text.first.map { $0.split(separator: "\n").map(String.init) } ?? []
    }

    /// Locks what these migrations change, and the views, which are made again each time. Later nothing more is waited for: a caller who waits
    /// for this migration while it waits for a lock of theirs would be in a deadlock, and Postgres would choose the caller. It takes all within
    /// half the time after which a caller's wait is examined, or gives up, so that the callers go on and it tries again.
    private func lockAhead(_ migrations: [Script], on connection: Connection) async throws(PostgresError) {
        let names = Set(migrations.flatMap { Self.changed(in: $0.text) })
        try await connection.execute(
            "select set_config('millrace.changed', $1, true)", [.text("{\(names.sorted().joined(separator: ","))}")])
        try await connection.run(
            script: """
                do $$
                declare
                    names constant text[] := current_setting('millrace.changed');
                    one record;
                    ends timestamptz;
                begin
                    for one in
                        select format('millrace.%I', c.relname) as name, c.relkind = 'v' as is_view
                          from pg_class c
                         where c.relnamespace = to_regnamespace('millrace')
                           and (c.relkind = 'v' or c.relkind in ('r', 'p') and (
                                exists (select from unnest(c.oid || array(select a::oid from pg_partition_ancestors(c.oid) a)) o(oid)
                                          join pg_class n on n.oid = o.oid where n.relname = any (names))
                                or exists (select from pg_index i join pg_class x on x.oid = i.indexrelid where i.indrelid = c.oid and x.relname = any (names))))
                         order by c.relkind = 'v', c.relname
                    loop
                        perform set_config('lock_timeout', case when ends is null then 2000
                            else greatest(1, ceil(extract(epoch from ends - clock_timestamp()) * 1000)) end || 'ms', true);
                        if one.is_view then
                            execute format('alter view %s reset (security_barrier)', one.name);   -- locks the view, and not its tables
                        else
                            execute format('lock table only %s in access exclusive mode', one.name);
                        end if;
                        ends := coalesce(ends, clock_timestamp() + least(current_setting('deadlock_timeout')::interval, interval '1 s') / 2);
                    end loop;
                    perform set_config('lock_timeout', '2s', true);
                end $$
                """, deadline: Self.deadline)
    }

    /// The tables and indexes that a script changes, as its statements name them.
    private static func changed(in script: String) -> [String] {
        let statement =
            /(?:(?:alter|drop|lock) (?:table|index) (?:if exists )?(?:only )?|(?:trigger|index) [^;]*? on |references )millrace\.([a-z0-9_]+)/
        return script.matches(of: statement).map { String($0.output.1) }
    }

    /// Applies settings and functions, and the grants last. It replaces every function, so a function that was not replaced is stale.
    private func refresh(_ rooms: [RoomSchema], on connection: Connection) async throws(PostgresError) {
        try await remember("oldest_worker", "\(Schema.oldestWorker)", on: connection)
        for (role, name) in roles {
            try await remember("role_\(role)", name, on: connection)
        }
        let clockMoves =
            try await connection.truth("select to_regclass('millrace.test_clock') is not null")
        // While old and new signatures exist together, calls in a function's body may look ambiguous; so bodies are not checked here.
        try await connection.execute("select set_config('check_function_bodies', 'off', true)")
        for room in [Schema.core] + rooms {
            for script in functions(of: room, clockMoves: clockMoves) {
                try await connection.run(script: .shipped(script.bytes), deadline: Self.deadline)
            }
        }
        try await SchemaContents.dropStale(keeping: [Schema.core] + rooms, on: connection)
        try await connection.run(script: .shipped(Schema.grants.bytes), deadline: Self.deadline)
    }

    private static func refusal(
        onlyOwners: Bool = false, on connection: Connection
    ) async throws(PostgresError) -> Failure? {
        guard let contents = try await SchemaContents.look(on: connection) else { return nil }
        guard contents.isOwn else { return .foreignSchema(owner: contents.owner, role: contents.role) }
        let foreign = contents.foreign.filter { !onlyOwners || $0.owner != contents.owner }
        return foreign.isEmpty ? nil : .foreignObjects(foreign, owner: contents.owner)
    }

    /// Migrators of earlier versions exclude each other by this advisory lock, those of today by the table's lock. Any login can hold the
    /// advisory lock, so the wait is short. A migrator that goes on without it may collide with an older one, and then tries again.
    private func waitForOlderMigrator(on connection: Connection) async throws(PostgresError) {
        let milliseconds = max(1, Int(patience / .milliseconds(1)))
        try await connection.execute("select set_config('lock_timeout', $1, true)", [.text("\(milliseconds)")])
        try await connection.run(
            script: """
                do $$ begin
                    perform pg_advisory_xact_lock(1297239622);
                exception when lock_not_available then
                    null;
                end $$;
                set local lock_timeout = 0
                """, deadline: patience + .seconds(10))
    }

    private func remember(_ name: String, _ value: String, on connection: Connection) async throws(PostgresError) {
        try await connection.execute(
            """
            insert into millrace.setting (name, value) values ($1, $2)
                on conflict (name) do update set value = excluded.value where setting.value <> excluded.value
            """, [.text(name), .text(value)])
    }
}
