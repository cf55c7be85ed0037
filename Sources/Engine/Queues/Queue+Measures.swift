package import Postgres

/// Jobs of a queue, kind and state, as they were last counted for all collectors of metrics.
package struct MeasureRow: Sendable, Equatable {
    package var queue: String
    package var kind: String
    package var state: String
    package var jobs: Int
    /// How long the oldest ready one has waited, in seconds.
    package var oldest: Double?
    /// Seconds since they were counted.
    package var age: Double

    package init(queue: String, kind: String, state: String, jobs: Int, oldest: Double?, age: Double) {
        self.queue = queue
        self.kind = kind
        self.state = state
        self.jobs = jobs
        self.oldest = oldest
        self.age = age
    }
}

/// A number of the fleet, as it was counted with the jobs: see `millrace.measures_fleet`.
package struct FleetMeasure: Sendable, Equatable {
    package var name: String
    /// The values of its labels.
    package var labels: [String]
    package var value: Double
    /// Seconds since it was counted.
    package var age: Double

    package init(name: String, labels: [String] = [], value: Double, age: Double = 0) {
        self.name = name
        self.labels = labels
        self.value = value
        self.age = age
    }
}

/// What was counted last for all collectors of metrics.
package struct Measures: Sendable {
    package var jobs: [MeasureRow]
    package var fleet: [FleetMeasure]

    package init(jobs: [MeasureRow], fleet: [FleetMeasure]) {
        self.jobs = jobs
        self.fleet = fleet
    }
}

extension Queue {
    package static func measures(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [MeasureRow] {
        try await connection.query(
            "select queue, kind, state, jobs, oldest_s, age_s from millrace.measures()", deadline: deadline
        ) { row throws(PostgresError) in
            MeasureRow(
                queue: try row.string(0), kind: try row.string(1), state: try row.string(2),
                jobs: Int(try row.int(3)), oldest: row.optionalDouble(4), age: max(0, try row.double(5)))
        }
    }

    package static func fleetMeasures(
        on connection: Connection, deadline: Duration? = nil
    ) async throws(PostgresError) -> [FleetMeasure] {
        try await connection.query(
            "select name, coalesce(labels, '{}'), value, age_s from millrace.measures_fleet()", deadline: deadline
        ) { row throws(PostgresError) in
            FleetMeasure(
                name: try row.string(0), labels: try row.strings(1), value: try row.double(2),
                age: max(0, try row.double(3)))
        }
    }
}
