import Postgres
import TestSupport
import Testing

/// The scan that takes jobs from lanes stands in several functions, because each needs a plan of its own. They must take the same jobs.
@Suite struct ClaimScanTests {
    private struct Bench {
        let connection: Connection
        /// Holds what another claim would hold.
        let other: Connection
        let queues: [Int]
        let kinds: [Int]

        /// What each of these scans takes from one mixture, where it is not what it must take.
        func differences(seed: Int, of scans: [ClaimScan]) async throws -> [String] {
            let mixture = ClaimMixture(seed: seed, queues: queues, kinds: kinds)
            try await connection.run(mixture.setUp)
            try await other.run("begin; \(mixture.lock)")
            var differences: [String] = []
            for scan in scans where scan.fits(mixture) {
                let taken = try await connection.column(scan.call(mixture)).compactMap { Int($0) }
                if !scan.agrees(taken, mixture) {
                    differences.append("seed \(seed), \(scan): \(taken) instead of \(mixture.expected)")
                }
            }
            try await other.run("rollback")
            return differences
        }
    }

    private func withBench(_ body: (Bench) async throws -> Void) async throws {
        try await withDatabase { database in
            let connection = try await database.connect()
            let other = try await database.connect()
            try await connection.openSession()
            try await connection.run(ClaimScan.functions)
            let kinds = try await connection.column(
                "select millrace.kind_id(k) from unnest(array['a', 'b', 'c']) k order by 1")
            let queues = try await connection.column(
                "select millrace.queue_id(q) from unnest(array['x', 'y', 'z']) q order by 1")
            // For the scans whose queues have limited keys, which are lines of a main queue.
            try await connection.run("select millrace.queue_id('main-' || q) from unnest(array['x', 'y', 'z']) q")
            let first = try await connection.int(
                "select first from millrace.enqueue_bulk('a', array(select '{}' from generate_series(1, \(ClaimMixture.largest))), 'x')"
            )
            try #require(first == 1)
            try await body(
                Bench(
                    connection: connection, other: other, queues: queues.compactMap { Int($0) },
                    kinds: kinds.compactMap { Int($0) }))
            await connection.close()
            await other.close()
        }
    }

    @Test func `all claims take the same jobs from the same lanes, and one by one in the same order`() async throws {
        try await withBench { bench in
            var differences: [String] = []
            for seed in 0..<200 {
                differences += try await bench.differences(seed: seed, of: ClaimScan.allCases)
            }
            #expect(differences.isEmpty, "\(differences.prefix(3))")
        }
    }

    /// The parts of a scan, each with another that takes other jobs.
    private static let parts = [
        ("order by c.seq", "order by c.seq desc"), ("c.seq > p.floor", "c.seq >= p.floor"),
        ("c.seq > claim_one.floor", "c.seq >= claim_one.floor"), ("c.seq <= p.ceiling", "c.seq < p.ceiling"),
        ("and c.kind = any (the_kinds)", ""), ("limit p.most", "limit p.most + 1"),
        ("p.queue <> all (paused)", "true"), ("limit wanted", "limit wanted - 1"),
    ]

    @Test func `a change to one of the scans alone is found`() async throws {
        try await withBench { bench in
            for (function, scans) in [
                ("claim", [ClaimScan.claim]), ("claim_many", [.many]), ("claim_one", [.one]),
                ("claim_limited", [.limited, .limitedAtOnce, .limitedLocking]),
            ] {
                let places = try await changes(in: function, foundBy: scans, bench)
                #expect(places == ["claim": 7, "claim_many": 7, "claim_one": 3, "claim_limited": 14][function])
            }
        }
    }

    /// Makes each change alone, and expects these scans to show it. How many there were.
    private func changes(in function: String, foundBy scans: [ClaimScan], _ bench: Bench) async throws -> Int {
        var count = 0
        let original = try #require(
            try await bench.connection.value("pg_get_functiondef('millrace.\(function)'::regproc)"))
        for (part, change) in Self.parts {
            let pieces = original.split(separator: part, omittingEmptySubsequences: false)
            for place in pieces.indices.dropFirst() {
                count += 1
                let changed =
                    pieces[..<place].joined(separator: part) + change + pieces[place...].joined(separator: part)
                try await bench.connection.run(changed)
                var isFound = false
                for seed in 0..<125 where !isFound {
                    isFound = try await !bench.differences(seed: seed, of: scans).isEmpty
                }
                #expect(isFound, "\(function): \(change) for \(part), place \(place)")
            }
        }
        try await bench.connection.run(original)
        return count
    }
}
