import CommandKit
import FoundationEssentials
import Glibc
import LoadKit
import MillraceQueues
import Postgres
import Synchronization

/// Orders of five charges, of which a third is refused in the end, while workers are killed and operators do to them whatever there is: an order
/// that was delivered has been paid once, and of one that was not delivered nothing is kept.
struct UndoneOrders: Sendable {
    let invocation: Invocation

    private static let workers = 4
    private static let operators = 3
    /// What an operator may hear: it has ended, it runs, it is being undone, its key is held, a lock is, or it is gone; or that two have waited
    /// for each other, and may try again.
    private static let refusals: Set<String> = ["55000", "P0002", "23505", "40001", "40P01", "55P03", "22023"]

    private static let unfinished: SQL = """
        select (select count(*) from millrace.operation where state = 'running') + count(*) from millrace.job j
         where j.kind in (select k.id from millrace.kind k where k.name = 'practice.order')
           and not exists (select from millrace.history h where h.id = j.id and h.outcome in (1, 2, 3))
        """

    private struct State {
        var isOver = false
        var enqueued = 0
        var done: [String: Int] = [:]
        var refused: [String: Int] = [:]
    }

    private final class Shared: Sendable {
        private let mutex = Mutex(State())
        func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
            mutex.withLock { state in body(&state) }
        }
    }

    private var orders: Int { invocation.count("orders") }
    private var kills: Int { invocation.count("kills") }

    func run(on connection: Connection) async throws -> ([Bar], [(String, JSONValue)]) {
        try await connection.run(
            script: """
                drop table if exists public.practice_charge, public.practice_delivery cascade;
                create table public.practice_charge (key text primary key, job bigint, number int, charged timestamptz, given_back timestamptz);
                create index on public.practice_charge (job);
                create table public.practice_delivery (job bigint, at timestamptz default clock_timestamp());
                create view public.practice_paid as
                    select c.job, count(*) as standing, count(distinct c.number) as parts from public.practice_charge c
                     where c.charged is not null and c.given_back is null group by c.job;
                """)
        let directory = try Scratch.directory(
            "orders", in: Scratch.temporary, isOpen: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let kept = KeptWorkers(directory: directory)
        let shared = Shared()
        do {
            let names = try await keepWorkers(kept, on: connection)
            let left = try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<Self.operators { group.addTask { try await operate(shared) } }
                group.addTask { try await enqueue(shared) }
                let killed = try await killAll(kept, names, shared, on: connection)
                try await group.waitForAll()
                return try await (killed: killed, orders: waitForEnds(on: connection))
            }
            let bad = try await kept.stop()
            if !bad.isEmpty { invocation.console.warning(bad.joined(separator: "; ")) }
            return try await judge(
                shared.withLock { $0 }, left: left.orders, kills: left.killed, on: connection)
        } catch {
            shared.withLock { $0.isOver = true }
            kept.kill()
            throw error
        }
    }

    // MARK: What goes on

    /// Of two builds, which know the same, and are bound to the orders that they have begun.
    private func keepWorkers(_ kept: KeptWorkers, on connection: Connection) async throws -> [String] {
        var variables = invocation.environment
        variables["DATABASE_URL"] = try invocation.connectionOptions().location
        variables["MILLRACE_LISTEN"] = "off"
        let names = (1...Self.workers).map { number in
            let name = "o\(number)"
            variables["MILLRACE_BUILD"] = number % 2 == 0 ? "orders-b" : "orders-a"
            kept.keep(
                name,
                arguments: ["worker", "--practice", "--only-build", "--name", name, "--parent", "\(getpid())"]
                    + ["--log-level", "warning", "--slots", "10"],
                environment: variables)
            return name
        }
        try await Patience.wait(.seconds(60), else: "the workers do not start: see their logs") {
            try await connection.int("select count(*) from millrace.session where pin is not null") >= Self.workers
        }
        try await Queue.promote("orders-a", percent: nil, on: connection)
        return names
    }

    /// Spread over the time that the kills take; a third is refused in the end, some sleep in their middle, expire, or have a key.
    private func enqueue(_ shared: Shared) async throws {
        let connection = try await invocation.connect()
        for n in 1...orders {
            try await connection.execute(Self.enqueueing, [.int8(Int64(n)), .bool(false)])
            shared.withLock { $0.enqueued = n }
            try await Task.sleep(for: .milliseconds(Int64(kills) * 500 / Int64(orders)))
        }
        await connection.close()
    }

    private static let enqueueing: SQL = """
        select millrace.enqueue('practice.order',
            jsonb_strip_nulls(jsonb_build_object('fails', $1::bigint % 3 = 0, 'pause', case when $1 % 4 = 0 then 0.5 end)),
            unique_key => case when $1 % 5 = 0 then 'order ' || $1 end, on_conflict => case when $2::bool then 'replace' else 'skip' end,
            options => jsonb_strip_nulls(jsonb_build_object(
                'unique_scope', case when $1 % 5 = 0 then 'kind' end, 'expires_at', case when $1 % 7 = 0 then millrace.now() + interval '1 second' end)))
        """

    /// Until the kills are over.
    private func operate(_ shared: Shared) async throws {
        let connection = try await invocation.connect("operator")
        try await connection.execute("set lock_timeout = '2s'")
        while !shared.withLock({ $0.isOver }) {
            try await Task.sleep(for: .milliseconds(.random(in: 20...120)))
            let act = Act.allCases.randomElement() ?? .cancel
            // Late ones most of all, for they have not ended; never an undo, which only its own number cancels.
            let ids = try await connection.query(
                """
                select id from (
                    select j.id from millrace.job j
                     where j.kind in (select k.id from millrace.kind k where k.name = 'practice.order') and not coalesce(j.options ? 'undo', false)
                     order by j.id desc limit 60) j order by random() limit 3
                """, []
            ) { row throws(PostgresError) in try row.int(0) }
            guard !ids.isEmpty else { continue }
            do {
                try await perform(act, ids, shared.withLock { $0.enqueued }, on: connection)
                shared.withLock { $0.done[act.rawValue, default: 0] += 1 }
            } catch let error as PostgresError where Self.refusals.contains(error.sqlState ?? "") {
                shared.withLock { $0.refused[act.rawValue, default: 0] += 1 }
            }
        }
        await connection.close()
    }

    private enum Act: String, CaseIterable {
        case cancel = "cancelled"
        case cancelFlow = "cancelled with the flow"
        case cancelMany = "cancelled by an operation"
        case cancelUndos = "undos cancelled from a list"
        case retry = "retried"
        case retryFlow = "retried with the flow"
        case retryMany = "retried by an operation"
        case retryFresh = "retried afresh"
        case undoOperation = "operations undone"
        case delete = "deleted"
        case deleteMany = "deleted by an operation"
        case replace = "replaced by their key"
        case reschedule = "moved to another time"
        case promote = "builds promoted"
    }

    private func perform(_ act: Act, _ ids: [Int64], _ enqueued: Int, on connection: Connection) async throws {
        func call(_ statement: SQL) async throws { try await connection.execute(statement, [.int8(ids[0])]) }
        func start(_ action: String) async throws {
            try await connection.execute(
                "select millrace.operation_start($1, jsonb_build_object('ids', to_jsonb($2::bigint[])), '{}')",
                [.text(action), .int8s(ids)])
            while try await connection.int("select count(operation) from millrace.operation_step()") > 0 {}
        }
        switch act {
        case .cancel: try await call("select millrace.cancel($1)")
        case .cancelFlow: try await call("select millrace.flow_cancel($1)")
        case .cancelMany: try await start("cancel")
        case .cancelUndos:
            try await connection.execute(
                "select count(*) from millrace.jobs_do('cancel', array(select u.undo_job from millrace.undo u order by 1 desc limit 5))"
            )
        case .retry: try await call("select millrace.retry($1)")
        case .retryFlow: try await call("select millrace.flow_retry($1)")
        case .retryMany: try await start("retry")
        case .retryFresh: try await call("select millrace.retry_fresh($1)")
        case .undoOperation:
            try await connection.execute(
                """
                select millrace.operation_undo(o.id) from (
                    select o.id from millrace.operation o where not o.is_undoing order by o.id desc limit 3) o order by random() limit 1
                """)
        case .delete: try await call("select millrace.job_delete($1)")
        case .deleteMany: try await start("delete")
        case .replace:
            let n = max(5, enqueued - .random(in: 0...40)) / 5 * 5
            try await connection.execute(Self.enqueueing, [.int8(Int64(n)), .bool(true)])
        case .reschedule: try await call("select millrace.reschedule($1, millrace.now() + interval '1 second')")
        case .promote:
            try await Queue.promote(Bool.random() ? "orders-a" : "orders-b", percent: nil, on: connection)
        }
    }

    private func killAll(
        _ kept: KeptWorkers, _ names: [String], _ shared: Shared, on connection: Connection
    ) async throws -> Int {
        let live = invocation.console.live()
        defer { live.update([]) }
        var killed = 0
        while killed < kills || shared.withLock({ $0.enqueued }) < orders {
            try await Task.sleep(for: .milliseconds(.random(in: 200...800)))
            guard let name = names.randomElement(), let pid = kept.pid(of: name) else { continue }
            kill(pid, SIGKILL)
            killed += 1
            live.update(["\(killed) workers killed, \(Humane.count(shared.withLock { $0.enqueued })) orders"])
        }
        shared.withLock { $0.isOver = true }
        return killed
    }

    /// How many never end.
    private func waitForEnds(on connection: Connection) async throws -> Int {
        let live = invocation.console.live()
        defer { live.update([]) }
        var left = 0
        _ = try await Patience.waited(.seconds(300), every: .milliseconds(300)) {
            left = try await connection.int(Self.unfinished)
            live.update(["\(Humane.count(left)) left"])
            return left == 0
        }
        return left
    }

    // MARK: The bank's book

    private func judge(
        _ state: State, left: Int, kills: Int, on connection: Connection
    ) async throws -> ([Bar], [(String, JSONValue)]) {
        let kept = try await connection.ids(Self.keptFor)
        let unpaid = try await connection.ids(Self.unpaid)
        let disordered = try await connection.ids(Self.disordered)
        let (delivered, again) = try await (
            connection.int("select count(*) from public.practice_delivery"),
            connection.int(
                "select count(*) from public.practice_delivery d where exists (select from public.practice_charge c where c.job = d.job and c.given_back is not null)"
            )
        )
        let givenBack = try await connection.int(
            "select count(*) from public.practice_charge where charged is not null and given_back is not null")
        invocation.console.note(
            "\(orders) orders, \(delivered) delivered, \(again) of them after they had been undone; \(givenBack) charges given back; \(kills) workers killed"
        )
        for act in Act.allCases {
            let (done, refused) = (state.done[act.rawValue] ?? 0, state.refused[act.rawValue] ?? 0)
            invocation.console.note("\(act.rawValue): \(done)" + (refused > 0 ? ", refused \(refused)" : ""))
        }
        for order in Set(kept + unpaid + disordered).sorted().prefix(5) { try await tell(order, on: connection) }
        return (
            [
                .atMost("orders not delivered whose money is kept", 0, measured: Double(kept.count), unit: ""),
                .atMost("orders delivered and not paid once", 0, measured: Double(unpaid.count), unit: ""),
                .atMost(
                    "charges given back before a later one of their order", 0, measured: Double(disordered.count),
                    unit: ""),
                .atMost("orders and undos that never end", 0, measured: Double(left), unit: ""),
                .atLeast("workers killed", Double(self.kills), measured: Double(kills), unit: ""),
            ],
            [
                ("orders", .init(orders)), ("kills", .init(kills)), ("delivered", .init(delivered)),
                ("given_back", .init(givenBack)), ("kept", .init(kept.count)), ("unpaid", .init(unpaid.count)),
            ]
        )
    }

    private static let keptFor: SQL = """
        select p.job from public.practice_paid p
         where p.standing > 0 and not exists (select from public.practice_delivery d where d.job = p.job)
        """

    private static let unpaid: SQL = """
        select d.job from (select d.job, count(*) as times from public.practice_delivery d group by d.job) d
          left join public.practice_paid p on p.job = d.job
         where d.times > 1 or p.standing is distinct from 5 or p.parts is distinct from 5
        """

    /// A row for each such charge. Of orders that did a step again it cannot be said which of its charges belong together.
    private static let disordered: SQL = """
        select a.job from public.practice_charge a join public.practice_charge b on b.job = a.job and a.number < b.number and a.given_back < b.given_back
         where (select count(*) from public.practice_charge c where c.job = a.job) = (select count(distinct c.number) from public.practice_charge c where c.job = a.job)
        """

    /// All that is known of an order, in order of time: what a missed bar is looked into with.
    private func tell(_ order: Int64, on connection: Connection) async throws {
        invocation.console.note("order \(order):")
        let lines = try await connection.query(Self.story, [.int8(order)]) { row throws(PostgresError) in
            try row.string(0)
        }
        for line in lines { invocation.console.note("  " + line) }
    }

    private static let story: SQL = """
        with kin as (
            select $1::bigint as id, 'the order' as name
            union all
            select j.id, format('job %s, which undoes %s,', j.id, j.options #>> '{undo,step}') from millrace.job j
             where (j.options #>> '{undo,job}')::bigint = $1
        ), happened(at, what) as (
            select c.charged, format('charge %s: made, key %s', c.number, left(c.key, 8)) from public.practice_charge c where c.job = $1
            union all
            select c.given_back, format('charge %s: given back, key %s', c.number, left(c.key, 8)) from public.practice_charge c where c.job = $1
            union all
            select d.at, 'delivered' from public.practice_delivery d where d.job = $1
            union all
            select j.enqueued_at, k.name || ' is enqueued: ' || j.args::text from kin k join millrace.job j on j.id = k.id
            union all
            select h.started, format('%s is claimed, token %s-%s-%s', k.name, to_hex(h.session), h.number, h.id) from kin k join millrace.history h on h.id = k.id
             where h.session <> 0
            union all
            select h.finished, concat(k.name, ' ends with outcome ', h.outcome, ', attempt ', h.attempt, ', crashes ', h.crashes,
                       case when h.session <> 0 then format(', token %s-%s-%s', to_hex(h.session), h.number, h.id) end, ': ' || h.error)
              from kin k join millrace.history h on h.id = k.id
            union all
            select a.at, concat(k.name, ': ', a.action, ' ', a.detail) from kin k join millrace.audit a on a.object = k.id::text
            union all
            select i.at, concat(k.name, ': operation ', i.operation, ' (', o.action, ') finds it ', i.was, ', outcome ', i.outcome, ' ', i.reason)
              from kin k join millrace.operation_item i on i.job = k.id join millrace.operation o on o.id = i.operation
            union all
            select coalesce(o.undo_ended_at, o.undo_started_at), concat(k.name, ': operation ', i.operation, ' (', o.action, ') is undone, outcome ', i.undo, ' ', i.undo_reason)
              from kin k join millrace.operation_item i on i.job = k.id and i.undo is not null join millrace.operation o on o.id = i.operation
            union all
            select s.at, format('step on record: %s = %s, attempt %s', left(s.name, 15), left(s.value::text, 9), s.attempt) from millrace.step s where s.job = $1
            union all
            select p.ended_at, format('worker %s, session %s: %s', p.name, to_hex(p.session), p.ending) from millrace.process p
             where p.session in (select h.session from kin k join millrace.history h on h.id = k.id)
            union all
            select null, format('job %s waits for job %s, outcome %s', e.succ, e.pred, coalesce(e.outcome::text, 'none'))
              from millrace.edge e where e.succ in (select k.id from kin k)
            union all
            select null, format('job %s is to undo step %s', u.undo_job, u.step) from millrace.undo u where u.job = $1
        )
        select concat_ws('  ', coalesce(to_char(h.at at time zone 'UTC', 'HH24:MI:SS.US'), 'at the end'), h.what)
          from happened h where h.at is not null or h.what like 'job%' order by h.at nulls last, h.what
        """
}

extension Connection {
    fileprivate func ids(_ statement: SQL) async throws -> [Int64] {
        try await query(statement, []) { row throws(PostgresError) in try row.int(0) }
    }
}
