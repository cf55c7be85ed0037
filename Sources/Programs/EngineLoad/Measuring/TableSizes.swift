import CommandKit
import LoadKit
import Postgres

/// The sizes of the queue's tables, and their dead rows, at a moment.
struct TableSizes: Sendable {
    struct Table: Sendable {
        var name: String
        /// Including TOAST.
        var heap: Int
        var indexes: Int
        /// From the statistics, about a second old.
        var dead: Int

        var bytes: Int { heap + indexes }
    }

    /// Tables whose rows live only as long as a job waits or runs, or a worker lives.
    static let hotNames: Set = [
        "ready", "lease", "timer", "slot", "beat", "session", "cancel", "parked", "blocked", "edge", "ending",
        "unique_lock", "unique_key", "unique_ended", "progress",
    ]

    /// The largest first.
    let hot: [Table]
    /// All other tables together: the records of jobs and runs.
    let kept: Int

    static func read(on connection: Connection) async throws(PostgresError) -> TableSizes {
        let tables = try await connection.query(
            """
            select c.relname::text, pg_table_size(c.oid), pg_indexes_size(c.oid), pg_stat_get_dead_tuples(c.oid)
              from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r'
            """
        ) { row throws(PostgresError) in
            Table(
                name: try row.string(0), heap: Int(try row.int(1)), indexes: Int(try row.int(2)),
                dead: Int(try row.int(3)))
        }
        return TableSizes(
            hot: tables.filter { hotNames.contains($0.name) }.sorted { $0.bytes > $1.bytes },
            kept: tables.filter { !hotNames.contains($0.name) }.reduce(0) { $0 + $1.bytes })
    }

    var hotBytes: Int { hot.reduce(0) { $0 + $1.bytes } }
    var hotDead: Int { hot.reduce(0) { $0 + $1.dead } }

    subscript(name: String) -> Table? { hot.first { $0.name == name } }

    var json: JSONValue {
        [
            "hot_bytes": .int(hotBytes), "hot_dead_rows": .int(hotDead), "kept_bytes": .int(kept),
            "tables": .array(
                hot.map {
                    [
                        "name": .string($0.name), "bytes": .int($0.heap), "index_bytes": .int($0.indexes),
                        "dead_rows": .int($0.dead),
                    ]
                }),
        ]
    }
}

/// Sizes over a run, and how many jobs had ended at each.
struct Growth: Sendable {
    struct Sample: Sendable {
        /// Seconds since the run began.
        var at: Double
        var jobs: Int
        var sizes: TableSizes
    }

    private(set) var samples: [Sample] = []

    mutating func add(_ sample: Sample) { samples.append(sample) }

    /// The sample nearest to this share of the run.
    func sample(at share: Double) -> Sample? {
        guard let last = samples.last, let first = samples.first else { return nil }
        let wanted = first.at + (last.at - first.at) * share
        return samples.min { abs($0.at - wanted) < abs($1.at - wanted) }
    }

    /// Bytes kept for each job that ended between these shares of the run.
    func keptPerJob(from: Double, to: Double) -> Double {
        guard let early = sample(at: from), let late = sample(at: to), late.jobs > early.jobs else { return .nan }
        return Double(late.sizes.kept - early.sizes.kept) / Double(late.jobs - early.jobs)
    }

    /// The hot tables at the end, as a share of half time.
    var hotGrowth: Double {
        guard let half = sample(at: 0.5), let last = samples.last else { return .nan }
        return Double(last.sizes.hotBytes) / Double(half.sizes.hotBytes)
    }

    /// The hot table that grew most since half time; those that grew by less than 128 kB, a few pages, do not count.
    var worst: (name: String, growth: Double)? {
        guard let half = sample(at: 0.5), let last = samples.last else { return nil }
        return last.sizes.hot.compactMap { table in
            guard let before = half.sizes[table.name], before.bytes > 0, table.bytes - before.bytes > 128 * 1024 else {
                return nil
            }
            return (table.name, Double(table.bytes) / Double(before.bytes))
        }.max { $0.1 < $1.1 }
    }

    var bars: [Bar] {
        let worst = worst
        return [
            .atMost(
                "hot tables with their indexes at the end, share of half time", 1.1, measured: hotGrowth, unit: "×"),
            .atMost(
                "the one that grew most\(worst.map { " (\($0.name))" } ?? ""), if by more than 128 kB", 1.1,
                measured: worst?.growth ?? 1, unit: "×"),
            .atMost(
                "bytes kept per job, last quarter, share of the second", 1.1,
                measured: keptPerJob(from: 0.75, to: 1) / keptPerJob(from: 0.25, to: 0.5), unit: "×"),
        ]
    }

    /// A row each for about ten moments.
    var table: Table {
        var table = Table([
            .init("after", .trailing), .init("jobs", .trailing), .init("hot", .trailing), .init("dead rows", .trailing),
            .init("ready", .trailing), .init("lease", .trailing), .init("timer", .trailing), .init("kept", .trailing),
            .init("per job", .trailing),
        ])
        let step = max(1, (samples.count + 9) / 10)
        let first = samples.first
        for (index, sample) in samples.enumerated()
        where index % step == 0 || index == samples.count - 1 {
            let jobs = sample.jobs - (first?.jobs ?? 0)
            let grown = sample.sizes.kept - (first?.sizes.kept ?? 0)
            table.add(
                [
                    Humane.duration(.milliseconds(Int(sample.at * 1000))), Humane.count(sample.jobs),
                    Humane.bytes(sample.sizes.hotBytes), Humane.count(sample.sizes.hotDead),
                ].map { .init($0) }
                    + ["ready", "lease", "timer"].map { .init(Humane.bytes(sample.sizes[$0]?.bytes ?? 0)) }
                    + [
                        .init(Humane.bytes(sample.sizes.kept)),
                        .init(jobs > 0 ? "\(Humane.count(grown / jobs)) B" : ""),
                    ])
        }
        return table
    }

    var json: JSONValue {
        .array(
            samples.map { sample in
                guard case .object(let members) = sample.sizes.json else { return .null }
                return .object(
                    [.init(key: "at_s", value: .double(sample.at)), .init(key: "jobs", value: .int(sample.jobs))]
                        + members)
            })
    }
}
