package import CommandKit
import LoadKit
import MillraceQueues
import Postgres
import Threads

extension Command {
    package static let loadBacklog = scenario(
        "backlog",
        summary: "Measure claims and enqueues in front of ten million waiting jobs",
        discussion: """
            Measures claims of 100 and of 1,000 jobs, by the function and the plan that a worker uses, and single \
            enqueues: in turns with ten million jobs waiting and with 10,000. The 10,000 wait in a second database \
            on the same server, which the command creates and drops again, so the role needs CREATEDB. For \
            comparison, hand-written statements do the same with the same queue. Every run makes a queue of its own. \
            The jobs are kept; with --no-keep, hand-written statements claim and end them afterwards, which leaves \
            their rows in history. It first says how much disk it needs. Use a database of its own.
            """,
        flags: [
            .count("jobs", 10_000...100_000_000, 10_000_000, "Jobs in the large backlog."),
            .count("claims", 10...2000, 200, "How many claims the median is of."),
            .count("seconds", 1...600, 4, "How long single jobs are enqueued into each."),
            .toggle("keep", environment: .none, help: "Keep the jobs that still wait at the end; this is the default."),
            Setting.directURL.flag,
        ],
        examples: [
            Example("millrace load backlog", "ten million"),
            Example("millrace load backlog --jobs 1000000 --no-keep", "a million, ended afterwards"),
        ]
    ) { invocation in
        try await BacklogScenario(invocation: invocation).run()
    }
}

private struct BacklogScenario: Sendable {
    let invocation: Invocation

    static let kind = "practice.nothing"
    static let few = 10_000
    /// A job's rows and their index entries in job and ready, as measured.
    static let bytesPerJob = 290

    /// A queue with a number of jobs, each in a database of its own.
    private struct QueuePosition: Sendable {
        let options: ConnectionOptions
        let connection: Connection
        let queue: String
        let depth: Int

        var yardstick: Yardstick { Yardstick(at: options.location) }
    }

    /// The measurements in front of a backlog.
    private struct Sight: Sendable {
        var hundred = ClaimTimes()
        var thousand = ClaimTimes()
        var enqueue = Yardstick.Result(jobs: 0, seconds: 0)
        var enqueueByHand = Yardstick.Result(jobs: 0, seconds: 0)
        /// Claimed and ended a hundred at a time.
        var byHand = Yardstick.Result(jobs: 0, seconds: 0)

        var json: JSONValue {
            [
                "claim_100_ms": .double(hundred.median), "claim_100_p99_ms": .double(percentile(hundred.sorted, 0.99)),
                "claim_100_first_ms": .double(hundred.first), "claim_1000_ms": .double(thousand.median),
                "claim_1000_p99_ms": .double(percentile(thousand.sorted, 0.99)),
                "enqueues_per_second": .double(enqueue.perSecond),
                "enqueues_per_second_by_hand": .double(enqueueByHand.perSecond),
                "claimed_and_ended_per_second_by_hand": .double(byHand.perSecond),
            ]
        }
    }

    func run() async throws -> ExitCode {
        let jobs = invocation.count("jobs")
        let options = try invocation.connectionOptions()
        let connection = try await Connection.open(options, name: "load")
        let suffix = String(UInt32.random(in: .min ... .max), radix: 36)
        let queue = "load.backlog.\(suffix)"
        let database = "millrace_load_\(suffix)"
        invocation.console.note(
            "\(Humane.count(jobs)) jobs in the queue \(queue): about \(Humane.bytes(jobs * Self.bytesPerJob)) of disk, and as much again of WAL, which the server recycles up to its max_wal_size; \(Humane.count(Self.few)) in the database \(database), which is dropped at the end"
        )
        try await makeDatabase(database, on: connection)
        let code: ExitCode
        do {
            code = try await measure(
                jobs, QueuePosition(options: options, connection: connection, queue: queue, depth: jobs),
                beside: database)
        } catch {
            await dropDatabase(database, options)
            throw error
        }
        await connection.close()
        await dropDatabase(database, options)
        return code
    }

    private func makeDatabase(_ name: String, on connection: Connection) async throws {
        do throws(PostgresError) {
            try await connection.execute("create database %I", naming: name, deadline: .seconds(60))
        } catch {
            guard error.sqlState == "42501" else { throw error }
            throw Failure(
                "the role may not create the database in which the smaller backlog waits",
                hint: "give it CREATEDB, or name a role that has it in DATABASE_URL")
        }
    }

    /// Also when the command is interrupted.
    private func dropDatabase(_ name: String, _ options: ConnectionOptions) async {
        let isGone = await uncancelled {
            do {
                let connection = try await Connection.open(options, name: "load")
                try await connection.execute(
                    "drop database if exists %I with (force)", naming: name, deadline: .seconds(60))
                await connection.close()
                return true
            } catch {
                return false
            }
        }
        if !isGone { invocation.console.note("the database \(name) could not be dropped: drop it by hand") }
    }

    private func measure(_ jobs: Int, _ many: QueuePosition, beside database: String) async throws -> ExitCode {
        let keeps = !invocation.parsed.isOff("keep")
        let beside = invocation.options(
            at: try ConnectionOptions.location(many.options.location, database: database))
        let few = QueuePosition(
            options: beside, connection: try await Connection.open(beside, name: "load"), queue: many.queue,
            depth: Self.few
        )
        _ = try await Migrator.ofAllRooms().migrate(on: few.connection)
        let before = try await size(on: many.connection)
        try await fill(few, count: few.depth, label: nil)
        try await fill(many, count: many.depth, label: "filled:")
        let settling = try await settle(on: many.connection)
        let bytes = Double(try await size(on: many.connection) - before) / Double(jobs)
        let sights = try await look(at: [few, many])
        await few.connection.close()
        if !keeps {
            _ = try await many.yardstick.drain(
                try await Yardstick.line(queue: many.queue, kind: Self.kind, on: many.connection), on: many.connection)
        }
        let (near, far) = (sights[0], sights[1])
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
                    measured: near.enqueue.perSecond / far.enqueue.perSecond, unit: "×"),
            ],
            figures: [
                ("jobs", .init(jobs)), ("queue", .string(many.queue)), ("kept", .bool(keeps)),
                ("few", near.json), ("many", far.json), ("bytes_per_job", .double(bytes)),
                ("settling_s", .double(settling)),
            ])
    }

    private func fill(_ place: QueuePosition, count: Int, label: String?) async throws {
        var filling = Filling(invocation, on: place.connection, label: label, total: count)
        try await filling.add(Self.kind, count: count, queue: place.queue)
    }

    /// Measures all of them in turns, so that everything else on the machine affects them alike.
    private func look(at places: [QueuePosition]) async throws -> [Sight] {
        var sights = [Sight](repeating: Sight(), count: places.count)
        let hundreds = try await claims(of: 100, from: places)
        let thousands = try await claims(of: 1000, from: places)
        for index in places.indices {
            (sights[index].hundred, sights[index].thousand) = (hundreds[index], thousands[index])
        }
        var lines: [Yardstick.Line] = []
        for (index, place) in places.enumerated() {
            lines.append(try await Yardstick.line(queue: place.queue, kind: Self.kind, on: place.connection))
            sights[index].byHand = try await place.yardstick.drain(
                lines[index], batch: 100, threads: 1, most: Self.few / 2, on: place.connection)
            try await fill(place, count: sights[index].byHand.jobs, label: nil)
        }
        var callers: [YardstickCallers] = []
        for (place, line) in zip(places, lines) {
            callers.append(
                try await .open(1, of: place.yardstick, line: line, call: .enqueue(Self.kind, queue: place.queue)))
        }
        let turn = Duration.milliseconds(500)
        for number in 0..<2 * (invocation.count("seconds")) {
            for index in number % 2 == 0 ? Array(places.indices) : places.indices.reversed() {
                sights[index].enqueueByHand += try await callers[index].turn(.byHand, for: turn)
                sights[index].enqueue += try await callers[index].turn(.call, for: turn)
            }
        }
        for (place, sight) in zip(places, sights) {
            invocation.console.note(
                "with \(Humane.count(place.depth)): claim of 100 \(Humane.decimal(sight.hundred.median, places: 2)) ms, of 1,000 \(Humane.decimal(sight.thousand.median, places: 2)) ms, \(Humane.count(Int(sight.enqueue.perSecond))) enqueues/s"
            )
        }
        return sights
    }

    /// In parts, and the queues are filled up in between, so that a backlog keeps its size.
    private func claims(of batch: Int, from places: [QueuePosition]) async throws -> [ClaimTimes] {
        let wanted = invocation.count("claims")
        let part = max(2, min(wanted, Self.few / batch / 2))
        var all = [ClaimTimes](repeating: ClaimTimes(), count: places.count)
        while all[0].sorted.count < wanted {
            let times = try await ClaimTimes.measure(
                places.map { ($0.queue, $0.connection) }, kind: Self.kind, batch: batch, rounds: part)
            for index in places.indices {
                if all[index].first.isNaN { all[index].first = times[index].first }
                all[index].sorted += times[index].sorted
                try await fill(places[index], count: part * batch, label: nil)
            }
        }
        for index in places.indices { all[index].sorted.sort() }
        return all
    }

    /// Seconds until no vacuum runs in this database any more: the vacuums after a fresh load are no property of the backlog.
    private func settle(on connection: Connection) async throws -> Double {
        let began = ContinuousClock.now
        var quiet = 0
        while quiet < 5, began.duration(to: .now) < .seconds(300) {
            let busy =
                try await connection.int(
                    "select count(*) from pg_stat_progress_vacuum where datname = current_database()")
            quiet = busy == 0 ? quiet + 1 : 0
            try await Task.sleep(for: .milliseconds(200))
        }
        return began.duration(to: .now) / .seconds(1)
    }

    /// Of the tables that hold waiting jobs, with their indexes.
    private func size(on connection: Connection) async throws(PostgresError) -> Int {
        try await connection.int(
            """
            select sum(pg_total_relation_size(c.oid))::bigint from pg_class c
             where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r'
               and (c.relname = 'ready' or c.relname like 'job\\_%')
            """
        )
    }
}
