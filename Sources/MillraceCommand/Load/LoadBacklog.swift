import Postgres
import Queues

extension Command {
    static let loadBacklog = Command(
        ["load", "backlog"],
        summary: "Measure claims and enqueues in front of ten million waiting jobs",
        discussion: """
            Measures claims of 100 and of 1,000 jobs, by the function and the plan that a worker uses, and single enqueues, with \
            10,000 jobs waiting; then fills the queue and measures the same again. Beside each stands what hand-written \
            statements do with the same queue. Every run makes a queue of its own. The jobs are kept, unless --no-keep says \
            that they are to be claimed and ended by hand-written statements afterwards, which leaves their rows in history. \
            Says first how much disk it needs. Use a database of its own.
            """,
        flags: [
            .single(
                "jobs", "N", .integer(10_000...100_000_000), environment: .none, fallback: "10000000",
                help: "Jobs in the large backlog."),
            .single(
                "claims", "N", .integer(10...2000), environment: .none, fallback: "200",
                help: "Claims to take the median of."),
            .single(
                "seconds", "N", .integer(1...600), environment: .none, fallback: "4",
                help: "How long single jobs are enqueued each time."),
            .toggle("keep", environment: .none, help: "Keep the jobs that wait at the end, which is the default."),
            .toggle("strict", environment: .none, help: "Exit 1 when a bar is missed."),
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load backlog", "ten million"),
            Example("millrace load backlog --jobs 1000000 --no-keep", "a million, ended afterwards"),
        ]
    ) { invocation in
        do {
            return try await BacklogScenario(invocation: invocation).run()
        } catch let error as PostgresError {
            throw DatabaseFailure(error)
        }
    }
}

private struct BacklogScenario: Sendable {
    let invocation: Invocation

    static let kind = "practice.nothing"
    static let few = 10_000
    /// A job's rows and their index entries in job and ready, as measured.
    static let bytesPerJob = 290

    /// What is measured in front of a backlog.
    private struct Sight: Sendable {
        var hundred: ClaimTimes
        var thousand: ClaimTimes
        var enqueue: Yardstick.Result
        var enqueueByHand: Yardstick.Result
        /// Claimed and ended a hundred at a time.
        var byHand: Yardstick.Result

        var enqueueRate: Double { Double(enqueue.jobs) / enqueue.seconds }

        var json: JSONValue {
            [
                "claim_100_ms": .double(hundred.median), "claim_100_p99_ms": .double(percentile(hundred.sorted, 0.99)),
                "claim_100_first_ms": .double(hundred.first), "claim_1000_ms": .double(thousand.median),
                "claim_1000_p99_ms": .double(percentile(thousand.sorted, 0.99)),
                "enqueues_per_second": .double(enqueueRate),
                "enqueues_per_second_by_hand": .double(Double(enqueueByHand.jobs) / enqueueByHand.seconds),
                "claimed_and_ended_per_second_by_hand": .double(Double(byHand.jobs) / byHand.seconds),
            ]
        }
    }

    func run() async throws -> ExitCode {
        let jobs = invocation.parsed.integer("jobs") ?? 10_000_000
        let connection = try await Connection.open(try invocation.connectionOptions(), name: "load")
        let queue = "load.backlog.\(String(UInt32.random(in: .min ... .max), radix: 36))"
        invocation.console.note(
            "\(Humane.count(jobs)) jobs in the queue \(queue): about \(Humane.bytes(jobs * Self.bytesPerJob)) of disk, and as much again of WAL, which the server recycles up to its max_wal_size"
        )
        let keeps = !invocation.parsed.isOff("keep")
        let before = try await size(on: connection)
        try await fill(queue, to: Self.few, label: nil, on: connection)
        let near = try await look(at: queue, depth: Self.few, on: connection)
        try await fill(queue, to: jobs, label: "filled:", on: connection)
        let settling = try await settle(on: connection)
        let bytes = Double(try await size(on: connection) - before) / Double(jobs)
        let far = try await look(at: queue, depth: jobs, on: connection)
        if !keeps {
            _ = try await Yardstick(invocation).drain(
                try await Yardstick.line(queue: queue, kind: Self.kind, on: connection), on: connection)
        }
        await connection.close()
        let depth = Humane.count(jobs)
        return invocation.report(
            "backlog",
            [
                .atMost(
                    "claim of 100 with \(depth) waiting, share of that with \(Humane.count(Self.few))", 1.25,
                    measured: far.hundred.median / near.hundred.median, unit: "×"),
                .atMost(
                    "claim of 1,000 with \(depth) waiting", 1.25, measured: far.thousand.median / near.thousand.median,
                    unit: "×"),
                .atMost(
                    "time of a single enqueue with \(depth) waiting", 1.25,
                    measured: near.enqueueRate / far.enqueueRate, unit: "×"),
            ],
            figures: [
                ("jobs", .init(jobs)), ("queue", .string(queue)), ("kept", .bool(keeps)),
                ("few", near.json), ("many", far.json), ("bytes_per_job", .double(bytes)),
                ("settling_s", .double(settling)),
            ])
    }

    /// Up to so many: what stands in the queue already counts.
    private func fill(_ queue: String, to depth: Int, label: String?, on connection: Connection) async throws {
        let waiting = try await self.waiting(queue, on: connection)
        guard waiting < depth else { return }
        var filling = Filling(invocation, on: connection, label: label, total: depth - waiting)
        try await filling.add(Self.kind, count: depth - waiting, queue: queue)
    }

    private func look(at queue: String, depth: Int, on connection: Connection) async throws -> Sight {
        let span = Duration.seconds(invocation.parsed.integer("seconds") ?? 4)
        let yardstick = try Yardstick(invocation)
        let line = try await Yardstick.line(queue: queue, kind: Self.kind, on: connection)
        let hundred = try await claims(of: 100, from: queue, depth: depth, on: connection)
        let thousand = try await claims(of: 1000, from: queue, depth: depth, on: connection)
        let byHand = try await yardstick.drain(line, batch: 100, threads: 1, most: depth / 2, on: connection)
        try await fill(queue, to: depth, label: nil, on: connection)
        let enqueueByHand = try await yardstick.enqueue(line, callers: 1, for: span)
        let enqueue = try await yardstick.call(
            "select millrace.enqueue($1::text, $2::jsonb, $3::text)", [Self.kind, "{\"n\": 1}", queue], callers: 1,
            for: span)
        invocation.console.note(
            "with \(Humane.count(depth)): claim of 100 \(Humane.decimal(hundred.median, places: 2)) ms, of 1,000 \(Humane.decimal(thousand.median, places: 2)) ms, \(Humane.count(Int(Double(enqueue.jobs) / enqueue.seconds))) enqueues/s"
        )
        return Sight(
            hundred: hundred, thousand: thousand, enqueue: enqueue, enqueueByHand: enqueueByHand, byHand: byHand)
    }

    /// In parts, and the queue filled up between them, so that the backlog stays what it is.
    private func claims(of batch: Int, from queue: String, depth: Int, on connection: Connection) async throws
        -> ClaimTimes
    {
        let wanted = invocation.parsed.integer("claims") ?? 200
        let part = max(2, min(wanted, depth / batch / 2))
        var all = ClaimTimes()
        while all.sorted.count < wanted {
            try await fill(queue, to: depth, label: nil, on: connection)
            let one = try await ClaimTimes.measure(
                queue: queue, kind: Self.kind, batch: batch, rounds: part, on: connection)
            if all.first.isNaN { all.first = one.first }
            all.sorted += one.sorted
        }
        all.sorted.sort()
        try await fill(queue, to: depth, label: nil, on: connection)
        return all
    }

    /// Seconds until no vacuum runs in this database any more: what a fresh load sets going is no property of the backlog.
    private func settle(on connection: Connection) async throws -> Double {
        let began = ContinuousClock.now
        var quiet = 0
        while quiet < 5, began.duration(to: .now) < .seconds(300) {
            let busy =
                try await connection.query(
                    "select count(*) from pg_stat_progress_vacuum where datname = current_database()"
                ) { row throws(PostgresError) in try row.int(0) }.first ?? 0
            quiet = busy == 0 ? quiet + 1 : 0
            try await Task.sleep(for: .milliseconds(200))
        }
        return began.duration(to: .now) / .seconds(1)
    }

    private func waiting(_ queue: String, on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.query(
            """
            select count(*) from millrace.ready r join millrace.queue q on q.id = r.queue where q.name = $1
            """, [.text(queue)], deadline: .seconds(300)
        ) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }

    /// Of the tables that hold waiting jobs, with their indexes.
    private func size(on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.query(
            """
            select sum(pg_total_relation_size(c.oid))::bigint from pg_class c
             where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r'
               and (c.relname = 'ready' or c.relname like 'job\\_%')
            """
        ) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }
}
