package import CommandKit
import Composition
import Console
import FoundationEssentials
import Glibc
import Listeners
import LoadKit
import MillraceQueues
import Postgres
import Telemetry
import Threads
import Workers

extension Command {
    package static let loadConsole = scenario(
        "console",
        summary: "Measure the console's pages among ten million jobs, and what open pages cost a worker",
        discussion: """
            Fills a database with jobs in all states, of 50 kinds, in 200 queues, with a tenth of them dead. Then it opens every page \
            again and again, asks why, and searches by a declared argument. It prints the slowest twentieth of each page, and how many rows \
            the page read, as Postgres counts them. Last it drains jobs with one worker, in turn with and without live pages open. Filling ten million \
            takes some minutes and 6 GB.
            """,
        flags: [
            .count("jobs", 1000...100_000_000, 10_000_000, "How many jobs."),
            .count("looks", 1...1000, 20, "How often each page is opened."),
            .count("pages", 0...2000, 500, "Live pages that are open."),
            .count("rounds", 1...25, 3, "Drains with and without them."),
            .count("drain", 1000...10_000_000, 200_000, "Jobs of each drain."),
            Setting.slots.flag,
        ],
        examples: [
            Example("millrace load console", "ten million jobs"),
            Example("millrace load console --jobs 100000 --pages 0", "a first impression"),
        ]
    ) { invocation in
        try await ConsoleScenario(invocation: invocation).run()
    }
}

private struct ConsoleScenario: Sendable {
    let invocation: Invocation

    private var jobs: Int { invocation.count("jobs") }
    private var looks: Int { invocation.count("looks") }

    func run() async throws -> ExitCode {
        let connection = try await invocation.connect()
        try await ConsoleGround(invocation: invocation, connection: connection, jobs: jobs).fill()
        let composer = try invocation.composer()
        let pool = ConsoleService.connections(composer.database, size: 8)
        let open = invocation.count("pages")
        let service = try composer.console(pool: pool, version: JobWorker.version, keepsHouse: false) {
            // They all stand for visitors of their own.
            ($0.livePages, $0.livePagesOfVisitor) = (max(open, 800), max(open, 800))
        }
        guard let address = ListenAddress("127.0.0.1:0") else { throw Failure("127.0.0.1 is not an address") }
        let listener = try Listener(
            Listener.Options(address: address), routes: service.routes, log: .silent)
        let serving = Task { try? await listener.run() }  // stopped and awaited below
        let looking = Task { await service.run() }  // the same
        var bars: [Bar] = []
        do {
            bars += try await pages(on: connection, pool, port: listener.address.port)
            bars += try await why(on: connection)
            if (invocation.count("pages")) > 0 {
                bars += try await livePages(on: connection, port: listener.address.port)
            }
        } catch {
            listener.stop()
            looking.cancel()
            throw error
        }
        listener.stop()
        looking.cancel()
        _ = await serving.value
        await looking.value
        await pool.close()
        await connection.close()
        return invocation.report("console", bars, figures: [("jobs", .int(jobs)), ("looks", .int(looks))])
    }

    /// Every page: the slowest twentieth, and the rows that it read.
    private func pages(on connection: Connection, _ pool: Pool, port: UInt16) async throws -> [Bar] {
        let addresses = try await ConsoleGround.addresses(on: connection)
        var table = Table([
            .init("page", shrinks: true), .init("p50 ms", .trailing), .init("p95 ms", .trailing),
            .init("rows", .trailing),
        ])
        var worst = (page: "", ms: 0.0)
        var search = 0.0
        var most = (page: "", rows: 0)
        let live = invocation.console.live()
        for (name, address) in addresses {
            live.update(["opening \(name)"])
            _ = try await get(address, port: port)  // plans and caches
            let before = try await rowsRead(on: connection, reporting: pool)
            _ = try await get(address, port: port)
            let rows = try await rowsRead(on: connection, reporting: pool) - before
            var times: [Double] = []
            for _ in 0..<looks { times.append(try await get(address, port: port)) }
            times.sort()
            let p95 = times[min(times.count - 1, Int((Double(times.count) * 0.95).rounded(.up)) - 1)]
            if name == "search by an argument" { search = p95 } else if p95 > worst.ms { worst = (name, p95) }
            if rows > most.rows { most = (name, rows) }
            table.add([
                .init(name), .init(Humane.decimal(times[times.count / 2], places: 1)),
                .init(Humane.decimal(p95, places: 1)),
                .init(Humane.count(rows)),
            ])
        }
        live.update([])
        invocation.console.print(table)
        return [
            .atMost("the slowest page (\(worst.page)), p95", 200, measured: worst.ms, unit: "ms"),
            .atMost("search by a declared argument, p95", 300, measured: search, unit: "ms"),
            .atMost(
                "rows read for one page (\(most.page)), all its statements", 20_000, measured: Double(most.rows),
                unit: "rows"),
        ]
    }

    private func get(_ address: String, port: UInt16) async throws -> Double {
        let answer = await Thread.run(name: "console-client") { ConsoleClient.get(address, port: port) }
        guard answer.status == 200 else {
            throw Failure("\(address) answered \(answer.status): \(answer.body.prefix(300))")
        }
        return answer.ms
    }

    /// Tuples of the schema's tables and indexes that Postgres has read, of all sessions. The console's own session, which alone serves one
    /// request after the other, is told to report now: by itself it would take up to ten seconds.
    private func rowsRead(on connection: Connection, reporting pool: Pool) async throws -> Int {
        try await pool.withConnection { connection throws(PostgresError) in
            if await connection.serverVersion >= 150_000 {
                _ = try await connection.execute("select pg_stat_force_next_flush()")
            }
        }
        if await connection.serverVersion < 150_000 {
            try await Task.sleep(for: .seconds(11))
        } else {
            _ = try await connection.execute("select pg_stat_force_next_flush()")
        }
        return try await connection.int(
            """
            select (select coalesce(sum(seq_tup_read), 0) from pg_stat_all_tables where schemaname = 'millrace')::bigint
                 + (select coalesce(sum(idx_tup_read), 0) from pg_stat_all_indexes where schemaname = 'millrace')::bigint
            """
        )
    }

    private func why(on connection: Connection) async throws -> [Bar] {
        let ids = try await ConsoleGround.samples(on: connection)
        var times: [Double] = []
        for id in ids {
            let began = ContinuousClock.now
            try await connection.execute("select millrace.why($1)", [.int8(id)])
            times.append(began.duration(to: .now) / .milliseconds(1))
        }
        times.sort()
        let p95 = times.isEmpty ? 0 : times[min(times.count - 1, times.count * 95 / 100)]
        return [.atMost("why, p95 of \(times.count) jobs in all states", 50, measured: p95, unit: "ms")]
    }

    /// Drains in turn with and without open pages.
    private func livePages(on connection: Connection, port: UInt16) async throws -> [Bar] {
        let rounds = invocation.count("rounds")
        let open = invocation.count("pages")
        try await connection.execute(
            "update millrace.queue set paused_at = now() where main is null and name like 'load.q%'")
        let draining = Draining(
            invocation: invocation, connection: connection, jobs: invocation.count("drain"))
        var rates: [[Double]] = [[], []]
        var events = 0
        for round in 0..<rounds * 2 {
            let isOpen = round % 2 == 1
            try await draining.enqueue(queue: "load.live", label: "round \(round + 1) of \(rounds * 2): enqueued")
            let clients = isOpen ? ConsoleClient.stream(open, port: port) : nil
            let costs = try await draining.drain("load.live", label: isOpen ? "with \(open) pages" : "without pages")
            events += clients?.stop() ?? 0
            rates[isOpen ? 1 : 0].append(Double(costs.jobs) / max(costs.seconds, 0.001))
        }
        let medians = rates.map { $0.sorted()[$0.count / 2] }
        let cost = (1 - medians[1] / medians[0]) * 100
        invocation.console.print(
            "drained \(Humane.count(Int(medians[0]))) jobs/s without pages, \(Humane.count(Int(medians[1]))) with \(open) open, which got \(Humane.count(events)) events"
        )
        return [.atMost("what \(open) live pages cost a draining worker", 5, measured: max(0, cost), unit: "%")]
    }
}
