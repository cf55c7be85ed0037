import FoundationEssentials
import Glibc
import MillraceCommand
import Postgres

/// Orders of five steps, half of which are refused in the end, while workers are killed: what was done for a refused order is undone, and
/// nothing of a delivered one.
struct UndoneOrders: Sendable {
    let invocation: Invocation

    private static let workers = 4

    func run(on connection: Connection) async throws -> ([Bar], [(String, JSONValue)]) {
        let orders = invocation.parsed.integer("orders") ?? 500
        try await connection.execute("drop table if exists public.practice_record")
        try await connection.execute(
            "create table public.practice_record (job bigint, token text, what text, at timestamptz default clock_timestamp(), unique (job, what))"
        )
        let directory = try Scratch.directory(
            "orders", in: getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp", isOpen: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let kept = KeptWorkers(directory: directory)
        do {
            var variables = invocation.environment
            variables["DATABASE_URL"] = try invocation.connectionOptions().location
            variables["MILLRACE_LISTEN"] = "off"
            for number in 1...Self.workers {
                kept.keep(
                    "o\(number)",
                    arguments: ["worker", "--practice", "--name", "o\(number)", "--parent", "\(getpid())"]
                        + ["--log-level", "warning", "--slots", "10"],
                    environment: variables)
            }
            try await connection.execute(
                """
                select count(millrace.enqueue('practice.order', jsonb_build_object('order', n, 'fails', n % 2 = 1)))
                  from generate_series(1, $1) n
                """, [.int4(Int32(orders))])
            let kills = try await killUntilAllHaveEnded(kept, on: connection)
            let bad = try await kept.stop()
            let wrong = try await connection.int(
                """
                select count(*) from generate_series(1, $1) n
                 where array(select r.what from public.practice_record r where r.job = n order by 1) is distinct from
                       case when n % 2 = 1 then '{did 1,did 2,did 3,did 4,did 5,undid 1,undid 2,undid 3,undid 4,undid 5}'::text[]
                            else '{delivered,did 1,did 2,did 3,did 4,did 5}'::text[] end
                """, [.int4(Int32(orders))])
            let disordered = try await connection.int(
                """
                select count(*) from public.practice_record a join public.practice_record b on b.job = a.job and b.what like 'undid %' and a.what like 'undid %'
                 where a.what < b.what and a.at < b.at
                """)
            invocation.console.note(
                "\(orders) orders, half of them refused, \(kills) workers killed"
                    + (bad.isEmpty ? "" : "; \(bad.joined(separator: "; "))"))
            return (
                [
                    .atMost("orders with money kept or given back wrongly", 0, measured: Double(wrong), unit: ""),
                    .atMost("undos before that of a later step", 0, measured: Double(disordered), unit: ""),
                    .atLeast("workers killed", 5, measured: Double(kills), unit: ""),
                ], [("orders", .init(orders)), ("kills", .init(kills)), ("wrong", .init(wrong))]
            )
        } catch {
            kept.kill()
            throw error
        }
    }

    private func killUntilAllHaveEnded(_ kept: KeptWorkers, on connection: Connection) async throws -> Int {
        let live = invocation.console.live()
        let deadline = ContinuousClock.now + .seconds(300)
        var kills = 0
        while ContinuousClock.now < deadline {
            let left = try await connection.int(
                """
                select count(*) from millrace.job j
                 where j.kind in (select k.id from millrace.kind k where k.name = 'practice.order')
                   and not exists (select from millrace.history h where h.id = j.id and h.outcome in (1, 2, 3))
                """)
            live.update(["\(Humane.count(left)) left"])
            if left == 0 { break }
            try await Task.sleep(for: .milliseconds(.random(in: 300...900)))
            // The last ones end in peace: a worker that died is noticed after seconds.
            guard left > 40, let pid = kept.pid(of: "o\(Int.random(in: 1...Self.workers))") else { continue }
            kill(pid, SIGKILL)
            kills += 1
        }
        live.update([])
        return kills
    }
}
