import Clusters
import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Subprocesses

/// Makes each disaster for real, and takes it back.
struct DisasterMaker: Sendable {
    let world: DisasterWorld

    func make(_ disaster: Disaster) async throws -> MadeDisaster {
        switch disaster {
        case .idle: try await idle()
        case .prepared: try await prepared()
        case .slot: try await slot()
        case .standby: try await standby()
        case .subtransactions: try await subtransactions()
        case .multixacts: MadeDisaster(culprits: ["MultiXacts"], isWell: true) {}
        case .locks: try await locks()
        case .notify: try await notify()
        case .catalogue: try await catalogue()
        case .connections: try await connections()
        case .rows: try await rows()
        case .partition: try await partition()
        case .migration: try await migration()
        case .freeze: try await freeze()
        case .clock, .restored, .disk: throw Failure("\(disaster.word) is made elsewhere")
        }
    }

    private func idle() async throws -> MadeDisaster {
        let session = try await world.session("report")
        try await world.run("begin isolation level repeatable read; select count(*) from millrace.job", on: session)
        try await world.pass(25_000)
        return MadeDisaster(culprits: ["report", "\(try await world.pid(of: session))"]) {
            try await session.execute("rollback")
            await session.close()
        }
    }

    private func prepared() async throws -> MadeDisaster {
        let session = try await world.session("bridge")
        try await world.run("begin; select pg_current_xact_id()", on: session)
        try await world.run("prepare transaction 'forgotten'", on: session)
        await session.close()
        return MadeDisaster(culprits: ["forgotten"]) { try await world.run("rollback prepared 'forgotten'") }
    }

    private func slot() async throws -> MadeDisaster {
        try await world.run("select pg_create_logical_replication_slot('unread', 'pgoutput')")
        try await world.pass(25_000)
        return MadeDisaster(culprits: ["unread"]) { try await world.run("select pg_drop_replication_slot('unread')") }
    }

    private func standby() async throws -> MadeDisaster {
        var settings = world.cluster.settings
        settings["hot_standby_feedback"] = "on"
        settings["wal_receiver_status_interval"] = "1s"
        let standby = Cluster(
            directory: world.directory + "/standby", binaries: world.cluster.binaries, settings: settings,
            port: world.cluster.port, following: world.cluster)
        LoadGround.atEnd {
            if standby.isRunning() { try? await standby.stop(.immediate, deadline: .seconds(60)) }
        }
        try await standby.open(within: .seconds(120))
        let session = try await world.session("dashboard", at: standby.url())
        try await world.run("begin isolation level repeatable read; select count(*) from millrace.job", on: session)
        try await Patience.wait(.seconds(20), else: "the standby tells nothing of its queries") {
            try await world.office.truth(
                "select exists (select from pg_stat_replication where backend_xmin is not null)")
        }
        try await world.pass(110_000)
        return MadeDisaster(culprits: ["standby"]) {
            await session.close()
            try await standby.stop(.fast, deadline: .seconds(60))
        }
    }

    private func subtransactions() async throws -> MadeDisaster {
        let session = try await world.session("importer")
        try await world.run("create table if not exists public.imported (n int)")
        try await world.run("begin", on: session)
        try await world.run(
            """
            do $$ begin for n in 1..100 loop
                begin insert into public.imported values (n); exception when division_by_zero then null; end;
            end loop; end $$
            """, on: session)
        return MadeDisaster(culprits: ["importer", "\(try await world.pid(of: session))", "subtransactions"]) {
            try await session.execute("rollback")
            await session.close()
        }
    }

    /// One table of many partitions, and a query that looks at all of them.
    private func locks() async throws -> MadeDisaster {
        try await world.run("create table public.measured (day int) partition by list (day)")
        try await world.run(
            """
            do $$ begin for n in 1..1600 loop
                execute format('create table public.measured_%s partition of public.measured for values in (%s)', n, n);
                if n % 100 = 0 then commit; end if;
            end loop; end $$
            """)
        let session = try await world.session("analyst")
        try await world.run("begin; select count(*) from public.measured", on: session)
        return MadeDisaster(culprits: ["analyst", "\(try await world.pid(of: session))"]) {
            try await session.execute("rollback")
            await session.close()
            try await world.run("drop table public.measured")
        }
    }

    /// They need the one lock that is held until a commit is on the disk.
    private func notify() async throws -> MadeDisaster {
        let sessions = try await many(world.isLong ? 200 : 60, "chatter")
        let task = Task {
            await withTaskGroup(of: Void.self) { group in
                for session in sessions {
                    group.addTask {
                        try? await world.run(
                            "do $$ begin loop perform pg_notify('chat', 'hello'); commit; end loop; end $$", on: session
                        )
                    }
                }
            }
        }
        return MadeDisaster(culprits: ["chatter", "notify"]) {
            try await world.run(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'chatter'")
            await task.value
            for session in sessions { await session.close() }
        }
    }

    private func many(_ count: Int, _ application: String, user: String? = nil) async throws -> [Connection] {
        var sessions: [Connection] = []
        for _ in 0..<count { sessions.append(try await world.session(application, user: user)) }
        return sessions
    }

    /// Tables that are made and dropped leave a dead row for each of their columns.
    private func catalogue() async throws -> MadeDisaster {
        let session = try await world.session("etl")
        try await world.run(
            """
            do $$ declare the_columns text := (select string_agg(format('c%s int', n), ', ') from generate_series(1, 1500) n);
            begin for n in 1..75 loop
                execute format('create temp table scratch (%s)', the_columns); drop table scratch; commit;
            end loop; end $$
            """, on: session)
        await session.close()
        return MadeDisaster(culprits: ["pg_attribute", "dead rows"]) {
            try await world.run("vacuum pg_catalog.pg_attribute")
        }
    }

    private func connections() async throws -> MadeDisaster {
        try await world.run("create role leaky login")
        var sessions: [Connection] = []
        while sessions.count < 300, let one = try? await world.session("leaky app", user: "leaky") {
            sessions.append(one)
        }
        let all = sessions
        return MadeDisaster(culprits: ["leaky", "connection"]) {
            for session in all { await session.close() }
            try await Patience.wait(.seconds(20), else: "the connections stay") {
                try await world.office.truth(
                    "select not exists (select from pg_stat_activity where usename = 'leaky')")
            }
            try await world.run("drop role leaky")
        }
    }

    /// Twenty jobs of another queue, which nobody can take.
    private func rows() async throws -> MadeDisaster {
        try await world.run("select millrace.pause('held')")
        try await world.run(
            "select millrace.enqueue('practice.nothing', '{}', queue => 'held') from generate_series(1, 20)")
        let session = try await world.session("support")
        try await world.run("begin; select * from millrace.ready for update", on: session)
        try await world.run("select millrace.resume('held')")
        return MadeDisaster(culprits: ["support", "\(try await world.pid(of: session))"]) {
            try await session.execute("rollback")
            await session.close()
        }
    }

    private func partition() async throws -> MadeDisaster {
        try await world.run("select setval('millrace.seq', (last_value + 200000000)) from millrace.seq")
        return MadeDisaster(culprits: ["no partition of job lies ahead"]) {
            try await world.run("select millrace.maintain()")
        }
    }

    private func migration() async throws -> MadeDisaster {
        let session = try await world.session("deploy")
        try await world.run("begin; alter table millrace.job add column half_done int", on: session)
        return MadeDisaster(culprits: ["deploy", "\(try await world.pid(of: session))"]) {
            try await session.execute("rollback")
            await session.close()
        }
    }

    /// A table whose vacuum takes as long as that of a large one, and which has to be frozen early.
    private func freeze() async throws -> MadeDisaster {
        try await world.run(
            """
            create table public.ledger_of_years with (
                autovacuum_freeze_max_age = 100000, autovacuum_vacuum_cost_delay = 100, autovacuum_vacuum_cost_limit = 1
            ) as select n, repeat('x', 400) as line from generate_series(1, 40000) n
            """)
        try await world.pass(110_000)
        try await Patience.wait(.seconds(60), every: .milliseconds(200), else: "no vacuum against wraparound came") {
            try await world.office.truth("select exists (select from pg_stat_progress_vacuum)")
        }
        return MadeDisaster(culprits: ["wraparound", "ledger_of_years"]) {
            // It does not give way to those who wait for its table, as other vacuums do.
            try await world.run("alter system set autovacuum = off")
            try await world.run("select pg_reload_conf()")
            try await world.run(
                "select pg_terminate_backend(pid, 5000) from pg_stat_activity where backend_type = 'autovacuum worker'")
            try await world.run("drop table public.ledger_of_years")
            try await world.run("alter system reset autovacuum")
            try await world.run("select pg_reload_conf()")
        }
    }
}
