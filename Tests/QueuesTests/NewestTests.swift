import Postgres
import TestSupport
import Testing

/// The newest jobs in line, read lane by lane, are those that reading everything would find.
@Suite struct NewestTests {
    @Test func `a page of jobs in line is the newest, whatever lanes they stand in`() async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            var random = SeededRandom(38)
            for mixture in 0..<12 {
                let queues = [1, 3, 40][mixture % 3]
                let lanes = [1, 4][mixture % 2]
                let rows = [0, 7, 900][(mixture / 3) % 3]
                // Sorted by queue, or mixed.
                let isMixed = random.chance(0.5)
                try await connection.run(
                    """
                    delete from millrace.ready;
                    insert into millrace.ready (seq, job, queue, kind, lane)
                    select n, n, case when \(isMixed) then n * 31 % \(queues) else n * \(queues) / \(rows + 1) end + 1, 1, 16 + n / 3 % \(lanes)
                      from generate_series(1, \(rows)) n;
                    """)
                for (top, page) in [("null", 500), ("null", 3), ("\(rows / 2 + 1)", 50)] {
                    let found = try await connection.column(
                        "select i from millrace.job_ids('ready', after => \(top), page => \(page)) i")
                    let expected = try await connection.column(
                        "select job from millrace.ready where \(top == "null" ? "true" : "job < \(top)") order by job desc limit \(page)"
                    )
                    #expect(
                        found == expected, "\(queues) queues, \(lanes) lanes, \(rows) rows, top \(top), page \(page)")
                }
            }
        }
    }
}
