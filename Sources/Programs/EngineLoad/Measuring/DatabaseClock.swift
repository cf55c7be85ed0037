import CommandKit
import Postgres
import Workers

/// The offset of the database's clock from this machine's monotonic clock, wherever the database runs.
struct DatabaseClock: Sendable {
    /// Microseconds since 1970 on the database's clock, less microseconds of `Marks.now()`.
    let offset: Int64
    /// How wrong it can be, in nanoseconds: half of the fastest query's time.
    let error: Int64

    init(on connection: Connection) async throws {
        var best: (offset: Int64, error: Int64)?
        for _ in 0..<20 {
            let asked = PracticeMarks.now()
            let said = try await connection.query("select (extract(epoch from clock_timestamp()) * 1000000)::bigint") {
                row throws(PostgresError) in try row.int(0)
            }.first
            let heard = PracticeMarks.now()
            let error = (heard - asked) / 2 + 1000  // it tells whole microseconds
            if let said, error < best?.error ?? .max { best = (said - (asked + heard) / 2000, error) }
        }
        guard let best else { throw Failure("the database does not tell its time") }
        offset = best.offset
        error = best.error
    }

    /// Microseconds since 1970, as the database has it, to nanoseconds of `Marks.now()`.
    func monotonic(_ microseconds: Int64) -> Int64 { (microseconds - offset) * 1000 }

    /// Nanoseconds of `Marks.now()` to the database's microseconds since 1970.
    func microseconds(_ monotonic: Int64) -> Int64 { monotonic / 1000 + offset }
}
