import CYardstick
import CommandKit
import Glibc
import LoadKit
import Postgres
import Synchronization

extension Yardstick {
    /// Milliseconds from the call of a hand-written insert with a notification until a listener has claimed the row. No worker may serve
    /// the line meanwhile.
    func wake(_ line: Line, tries: Int, on connection: Connection) async throws -> [Double] {
        let session = Int64.random(in: 1...Int64.max)
        try await connection.execute(
            "select millrace.session_open($1, 'yardstick', 'yardstick', $2, '0', null, array[$3::int], 1, true)",
            [.int8(session), .int4(getpid()), .int4(line.kind)])
        let times = Times(count: tries)
        let result = try await run { location in
            times.values.withLock { values in
                values.withUnsafeMutableBufferPointer { values in
                    guard let first = values.baseAddress else { return yardstick_result() }
                    return yardstick_wake(
                        location, session, line.queue, line.lane, line.kind, Int32(values.count), 100, first)
                }
            }
        }
        try await connection.execute("select millrace.session_close($1)", [.int8(session)])
        return times.values.withLock { Array($0.prefix(result.jobs)) }
    }

    private final class Times: Sendable {
        let values: Mutex<[Double]>
        init(count: Int) { values = Mutex([Double](repeating: 0, count: count)) }
    }
}
