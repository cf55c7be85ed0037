import FoundationEssentials
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// A claim's answer carries a limited number of bytes of each job. A larger job is claimed like any other, and its contents are read
/// separately.
@Suite struct CarriedTests {
    private struct NotRead: Error {
        let id: Int64
    }

    /// 300 small jobs and, between them, some whose contents are large in one way each; the last is small when stored and large as text.
    private func fill(_ connection: Connection) async throws -> (small: Int, large: [Int]) {
        try await connection.openSession()
        try await connection.run("select millrace.enqueue('test', '{\"n\":1}') from generate_series(1, 300)")
        var large: [Int] = []
        for change in [
            "args = jsonb_build_object('x', repeat('x', 100000))",
            "args = to_jsonb(array(select md5(i::text) from generate_series(1, 3000) i))",
            "metadata = jsonb_build_object('x', repeat('x', 100000))", "tags = array[repeat('x', 100000)]",
            "options = jsonb_build_object('x', repeat('x', 100000))",
        ] {
            let id = try await connection.enqueue()
            try await connection.run("update millrace.job set \(change) where id = \(id)")
            large.append(id)
        }
        return (300, large)
    }

    private func ranges(_ connection: Connection) async throws -> [ClaimRange] {
        try await connection.column("select id from millrace.queue order by id").compactMap { Int32($0) }.map {
            ClaimRange(lane: Lane(queue: $0, code: 17), floor: 0, limit: 2000)
        }
    }

    private func claim(_ connection: Connection, wanted: Int, carry: Int?, limited: Bool = false, apart: Bool = false)
        async throws -> [Claimed]
    {
        let kinds = try await connection.column("select id from millrace.kind").compactMap { Int32($0) }
        let found = try await Queue.claim(
            on: connection, session: 1, number: 8, kinds: kinds, from: try await ranges(connection), wanted: wanted,
            shortQueues: [], longQueues: [], limited: limited, loose: apart, carry: carry)
        guard apart else { return found.jobs }
        #expect(found.jobs.isEmpty)
        return try await Queue.readLeases(on: connection, session: 1, of: found.unreadLeases, carry: carry)
    }

    enum Way: String, CaseIterable {
        case few, neighbours, near, far, limited, limitedMany, apart
    }

    @Test(arguments: Way.allCases)
    func `whichever way a claim goes, large jobs come unread and all others whole`(way: Way) async throws {
        try await withConnection { connection in
            let (small, large) = try await fill(connection)
            switch way {
            case .few, .neighbours, .limited, .limitedMany, .apart: break
            case .near: try await connection.run("delete from millrace.ready where job % 3 = 0 and job < 300")
            case .far: try await connection.run("delete from millrace.ready where job % 5 <> 0 and job < 300")
            }
            let left = try await connection.int("select count(*) from millrace.ready")
            let jobs = try await claim(
                connection, wanted: way == .few || way == .limited ? 999 : 2000, carry: 4000,
                limited: way == .limited || way == .limitedMany || way == .apart, apart: way == .apart)
            #expect(jobs.count == left && left <= small + large.count)
            #expect(jobs.filter(\.isUnread).map { Int($0.id) }.sorted() == large)
            #expect(
                jobs.allSatisfy {
                    $0.isUnread
                        ? $0.args.isEmpty && $0.tags.isEmpty
                        : $0.args == Array(#"{"n": 1}"#.utf8) || $0.args == Array("{}".utf8)
                })
            #expect(jobs.allSatisfy { $0.number == 9 && $0.lane.code == 17 && $0.enqueuedAt > .distantPast })
        }
    }

    @Test func `a caller that sets no limit gets all contents`() async throws {
        try await withConnection { connection in
            let (small, large) = try await fill(connection)
            let jobs = try await claim(connection, wanted: 2000, carry: nil)
            #expect(jobs.count == small + large.count && !jobs.contains(where: \.isUnread))
        }
    }

    @Test func `a job that somebody was woken for comes unread too, if it is large`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            let kind = Int32(try await connection.int("select id from millrace.kind"))
            for carry in [100_000, 1000] {
                let id = try await connection.enqueue(
                    "'test', jsonb_build_object('x', (select string_agg(md5(i::text), '') from generate_series(1, 300) i))"
                )
                let job = try #require(
                    try await Queue.claimOne(
                        on: connection, session: 1, number: 9 + Int64(carry) * 8, kinds: [kind],
                        from: ClaimRange(lane: Lane(queue: 1, code: 17), floor: 0, limit: 1), loose: false, carry: carry
                    ))
                #expect(job.id == Int64(id) && job.isUnread == (carry == 1000) && job.args.isEmpty == job.isUnread)
            }
        }
    }

    @Test func `contents are read until the limit of bytes is reached, and those of the first job always`() async throws
    {
        try await withConnection { connection in
            let (_, large) = try await fill(connection)
            var jobs = try await claim(connection, wanted: 2000, carry: 4000).filter(\.isUnread).sorted {
                $0.id < $1.id
            }
            var sizes: [Int] = []
            var turns = 0
            while !jobs.isEmpty {
                let read = try await Queue.readContents(
                    on: connection, session: 1, of: jobs, most: 150_000, largest: 1 << 20)
                #expect(!read.isEmpty && read.count < 3)
                for job in jobs.prefix(read.count) {
                    guard case .contents(let contents) = try #require(read[job.id]) else {
                        throw NotRead(id: job.id)
                    }
                    sizes.append(contents.size)
                    let whole = job.holding(contents, nil)
                    #expect(!whole.isUnread && whole.id == job.id && whole.number == job.number)
                    #expect(
                        whole.args.count + (whole.options?.count ?? 0) + (whole.metadata?.count ?? 0)
                            + whole.tags.joined().utf8.count >= 100_000)
                }
                jobs.removeFirst(read.count)
                turns += 1
            }
            #expect(sizes.count == large.count && sizes.allSatisfy { $0 >= 100_000 } && turns == 5)
        }
    }

    @Test func `what is too large, cannot be sent or is lost does not keep the others from being read`() async throws {
        try await withConnection { connection in
            let (_, large) = try await fill(connection)
            let kept = try await connection.enqueue("'test', jsonb_build_object('x', repeat('y', 50000))")
            // Each of these numbers is stored in 12 bytes and takes 131,072 as text: together more than the server can send.
            let digits = try await connection.enqueue()
            try await connection.run(
                "update millrace.job set args = (select jsonb_agg('1e131071'::jsonb) from generate_series(1, 9000)) where id = \(digits)"
            )
            let jobs = try await claim(connection, wanted: 2000, carry: 4000).filter(\.isUnread).sorted {
                $0.id < $1.id
            }
            #expect(jobs.map { Int($0.id) } == large + [kept, digits])
            let read = try await Queue.readContents(
                on: connection, session: 1, of: jobs, most: 1 << 20, largest: 90_000)
            for job in jobs {
                switch try #require(read[job.id]) {
                case .contents: #expect(Int(job.id) == kept)
                case .tooLarge(let bytes): #expect(bytes > 90_000 && Int(job.id) != kept)
                case .lost: Issue.record("\(job.id) is not lost")
                }
            }
            try await connection.run("delete from millrace.lease")
            for (id, reading) in try await Queue.readContents(
                on: connection, session: 1, of: jobs, most: 1 << 20, largest: 90_000)
            {
                guard case .lost = reading else { throw NotRead(id: id) }
            }
        }
    }
}
