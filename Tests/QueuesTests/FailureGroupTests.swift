import Foundation
import MillraceQueues
import Postgres
import TestSupport
import Testing

/// Failed runs grouped by cause: what the groups say, against what was done.
@Suite struct FailureGroupTests {
    /// Causes with what differs from run to run.
    private static let causes: [(gist: String, errorClass: String, error: @Sendable (Int) -> String)] = [
        ("timed out: after # s", "timeout", { "timed out: after \($0) s" }),
        ("transient (#): the server # failed", "transient", { "transient (503): the server \($0) failed\nstack" }),
        ("no order # for <address>", "error", { "no order \(uuid($0)) for u\($0).x@mail.example" }),
        (
            "the arguments do not fit k: total is not a Int", "arguments",
            { _ in "the arguments do not fit k: total is not a Int" }
        ),
        (
            "the arguments are encrypted with key #, which is not here: add it to MILLRACE_ENCRYPTION_KEY", "key",
            { "the arguments are encrypted with key \($0), which is not here: add it to MILLRACE_ENCRYPTION_KEY" }
        ),
        ("Declined(reason: \"limit of a#\")", "error", { "Declined(reason: \"limit of a\($0 % 90 + 10)\")" }),
    ]

    private static func uuid(_ n: Int) -> String {
        String(format: "3f2504e0-4f89-11d3-9a0c-%012x", n)
    }

    private struct Model: Equatable {
        var failed = 0
        var dead = 0
        var first = 0
        var last = 0
        var versions: [String] = []
        var queues: Set<String> = []
        var jobs: [Int] = []
    }

    @Test(arguments: [1, 2, 3])
    func `random failures, told in beats of several workers and folded now and then, are counted by cause`(
        seed: UInt64
    ) async throws {
        try await withConnection(.movableClock) { connection in
            var random = SeededRandom(seed)
            try await connection.run(
                """
                select millrace.register_kinds('{a,b}', '{null,null}'), millrace.register_queues('{p,q}');
                select millrace.session_open(n, 'w' || n, 'h', 1, 'v' || n, null, '{}', 1, false) from generate_series(1, 3) n
                """)
            var ids: [String: Int32] = [:]
            for name in ["a", "b"] {
                ids[name] = Int32(try await connection.int("select id from millrace.kind where name = '\(name)'"))
            }
            for name in ["p", "q"] {
                ids[name] = Int32(try await connection.int("select id from millrace.queue where name = '\(name)'"))
            }
            var model: [String: Model] = [:]
            var job = 0
            for beat in 1...40 {
                let session = Int.random(in: 1...3, using: &random)
                var tallies: [String: FailureTally] = [:]
                for _ in 0..<Int.random(in: 0...12, using: &random) {
                    let cause = Self.causes[Int.random(in: 0..<Self.causes.count, using: &random)]
                    let kind = ["a", "b"][Int.random(in: 0...1, using: &random)]
                    let queue = ["p", "q"][Int.random(in: 0...1, using: &random)]
                    let isDead = Bool.random(using: &random)
                    job += 1
                    let error = (isDead ? "attempt \(job) of 99: " : "") + cause.error(job)
                    let key = "\(kind) \(queue) \(cause.gist)"
                    if tallies[key] == nil {
                        tallies[key] = FailureTally(
                            queue: ids[queue] ?? 0, kind: ids[kind] ?? 0, error: error)
                    }
                    tallies[key]?.add(job: Int64(job), isDead: isDead)
                    var group = model["\(kind)|\(cause.errorClass)|\(cause.gist)"] ?? Model(first: beat)
                    group.failed += 1
                    group.dead += isDead ? 1 : 0
                    group.last = beat
                    if group.versions.last != "v\(session)" { group.versions.append("v\(session)") }
                    group.queues.insert(queue)
                    group.jobs.append(job)
                    model["\(kind)|\(cause.errorClass)|\(cause.gist)"] = group
                }
                #expect(
                    try await Queue.beat(
                        on: connection, session: Int64(session), state: "working", running: 0, waiting: 0, stuck: 0,
                        tallies: [:], failures: Array(tallies.values)))
                if Bool.random(using: &random) { try await connection.run("select millrace.failures_fold(3)") }
                try await connection.run("select millrace.test_clock_advance('1 s')")
            }
            let groups = try await Queue.failureGroups(
                since: nil, kind: nil, queue: nil, sort: "last", after: nil, limit: 500, on: connection)
            #expect(groups.count == model.count)
            for group in groups {
                let expected = try #require(
                    model["\(group.kind)|\(group.errorClass)|\(group.gist)"], "\(group.errorClass) \(group.gist)")
                #expect(group.failed == expected.failed && group.dead == expected.dead)
                #expect(group.firstVersion == expected.versions.first && group.lastVersion == expected.versions.last)
                #expect(Set(group.queues) == expected.queues)
                #expect(Set(group.examples.prefix(1)).isSubset(of: Set(expected.jobs.suffix(12).map(Int64.init))))
                #expect(Set(group.examples).isSubset(of: Set(expected.jobs.map(Int64.init))))
                #expect(group.examples.count == min(20, expected.jobs.count))
                let seconds = group.lastAt.timeIntervalSince(group.firstAt)
                #expect(abs(seconds - Double(expected.last - expected.first)) < 0.9)
            }
            #expect(groups.map(\.lastAt) == groups.map(\.lastAt).sorted(by: >))
            // By queue, the sum is the same.
            var byQueue = 0
            for queue in ["p", "q"] {
                byQueue += try await Queue.failureGroups(
                    since: nil, kind: nil, queue: queue, sort: "failed", after: nil, limit: 500, on: connection
                ).reduce(0) { $0 + $1.failed }
            }
            #expect(byQueue == job)
            // Page by page it is the same list.
            for sort in ["last", "first", "failed", "dead"] {
                var pages: [Int64] = []
                while true {
                    let page = try await Queue.failureGroups(
                        since: nil, kind: nil, queue: nil, sort: sort, after: pages.last, limit: 3, on: connection)
                    pages += page.map(\.id)
                    if page.count < 3 { break }
                }
                #expect(Set(pages) == Set(groups.map(\.id)) && pages.count == groups.count, "\(sort)")
            }
        }
    }

    @Test func `a group's jobs are the dead and retrying ones with that cause, in bounded looks`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            try await connection.run("select millrace.enqueue('other')")
            var dead: [Int] = []
            var retrying: [Int] = []
            for n in 1...30 {
                try await connection.fail(
                    "test", outcome: 3, error: n % 3 == 0 ? "no order \(n)" : "other trouble \(n)")
                if n % 3 == 0 { dead.append(try await connection.int("select max(id) from millrace.job")) }
                if n % 5 == 0 {
                    try await connection.fail("test", outcome: 4, error: "no order \(n)")
                    retrying.append(try await connection.int("select max(id) from millrace.job"))
                }
            }
            try await connection.run("select millrace.failures_keep()")
            let group = try await connection.int(
                "select id from millrace.failure_groups() where gist = 'no order #'")
            #expect(try await connection.int("select failed from millrace.failure_group(\(group))") == 16)
            var found: [Int] = []
            var states: [String] = []
            var next = "null"
            var looks = 0
            while true {
                let ids = try await connection.column(
                    "select unnest(ids) from millrace.failure_group_jobs(\(group), \(next), 4, 1)")
                found += ids.compactMap { Int($0) }
                states += try await connection.column(
                    "select unnest(states) from millrace.failure_group_jobs(\(group), \(next), 4, 1)")
                looks += 1
                guard
                    let further = try await connection.value(
                        "select next from millrace.failure_group_jobs(\(group), \(next), 4, 1)"), looks < 50
                else { break }
                next = further
            }
            #expect(found == (dead + retrying).sorted(by: >))
            #expect(states == found.map { dead.contains($0) ? "dead" : "retrying" })
            #expect(
                try await connection.column("select unnest(ids) from millrace.jobs_find('dead', the_group => \(group))")
                    == dead.sorted(by: >).map(String.init))
            #expect(
                try await connection.column(
                    "select unnest(ids) from millrace.jobs_find('retrying', the_group => \(group))")
                    == retrying.sorted(by: >).map(String.init))
            #expect(try await connection.records("select * from millrace.failure_group_jobs(4242)") == ["({},{},0,)"])
            #expect(try await connection.refusal(of: "select millrace.failure_group_jobs(1, page => 501)") != nil)
        }
    }

    @Test func `what failed before the groups were is counted once, in chunks, and then forgotten after 30 days`()
        async throws
    {
        try await withConnection(.movableClock) { connection in
            try await connection.openSession()
            try await connection.run(
                """
                insert into millrace.failure_past select o, 9223372036854775807, millrace.now() + interval '1 h' from unnest(array[3, 4, 7]) o
                """)
            for n in 1...7 { try await connection.fail("test", outcome: n % 2 == 0 ? 3 : 4, error: "boom \(n)") }
            for _ in 1...2 { try await connection.run("select millrace.failures_keep(most => 2)") }
            #expect(try await connection.int("select count(*) from millrace.failure_past") == 0)
            #expect(
                try await connection.records("select failed, dead, first_version, rest from millrace.failure_groups()")
                    == ["(7,3,0,f)"])
            try await connection.run(
                "select millrace.test_clock_advance('29 days'), millrace.failures_keep()")
            #expect(try await connection.int("select count(*) from millrace.failure_groups()") == 1)
            try await connection.run(
                "select millrace.test_clock_advance('2 days'), millrace.failures_keep()")
            #expect(try await connection.int("select count(*) from millrace.failure_groups()") == 0)
            #expect(try await connection.int("select count(*) from millrace.failure_place") == 0)
        }
    }

    @Test func `jobs of a lost worker are a crash, whatever the worker's name`() async throws {
        try await withConnection { connection in
            for session in [1, 2] {
                try await connection.openSession(session)
                try await connection.enqueue()
                #expect(try await connection.claim(session, number: 8 * session).count == session)
                _ = try await connection.rescue(session)
            }
            #expect(
                try await connection.records("select class, gist, failed, dead from millrace.failure_groups()")
                    == ["(crash,\"its worker was lost while the job ran or waited there\",3,0)"])
        }
    }

    @Test func `a beat of a worker of the previous version still works, and tells no failures`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            #expect(
                try await connection.bool(
                    "select millrace.beat(1, 'working', 0, 0, 0, '{1}', '{1}', '{1}', '{1}', '{0}', '{0}', '{0}', '{5}')"
                ))
            #expect(try await connection.bool("select millrace.beat(1, 'working', 0, 0, 0)"))
            #expect(try await connection.int("select count(*) from millrace.tally") == 1)
            #expect(try await connection.int("select count(*) from millrace.failure_groups()") == 0)
            #expect(
                try await connection.value(
                    "select cardinality(millrace.register_kinds('{a,b}', '{null,q}'))") == "2")
        }
    }

    @Test func `a kind has 200 groups at most, and the last one has the jobs of all other errors`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            func letters(_ n: Int) -> String {
                String(decoding: [UInt8(97 + n / 26 % 26), UInt8(97 + n % 26)], as: UTF8.self)
            }
            for n in 0..<210 { try await connection.fail("test", outcome: 3, error: "error \(letters(n))") }
            try await connection.run("select millrace.failures_keep()")
            #expect(try await connection.int("select count(*) from millrace.failure_group") == 200)
            let rest = try await connection.int("select id from millrace.failure_groups() where rest")
            #expect(try await connection.int("select failed from millrace.failure_group(\(rest))") == 11)
            let jobs = try await connection.column("select unnest(ids) from millrace.failure_group_jobs(\(rest))")
            #expect(jobs.count == 11)
            // What comes later joins them, and what has a group of its own goes there.
            try await connection.fail("test", outcome: 3, error: "quite another")
            try await connection.fail("test", outcome: 3, error: "error aa")
            #expect(try await connection.int("select failed from millrace.failure_group(\(rest))") == 12)
            #expect(
                try await connection.int("select failed from millrace.failure_groups() where gist = 'error aa'") == 2)
        }
    }

    @Test func `a look in a transaction that may not write folds nothing and still answers`() async throws {
        try await withConnection { connection in
            try await connection.openSession()
            try await connection.fail("test", outcome: 3, error: "boom")
            for mode in ["read only", "isolation level repeatable read"] {
                try await connection.run("begin \(mode)")
                #expect(try await connection.int("select count(*) from millrace.failure_groups()") == 0)
                try await connection.run("commit")
            }
            #expect(try await connection.int("select count(*) from millrace.failure_groups()") == 1)
        }
    }
}

extension Connection {
    /// A run that failed, recorded and told as by a worker.
    fileprivate func fail(_ kind: String, outcome: Int, error: String) async throws {
        let id = try await enqueue("'\(kind)'")
        let place =
            outcome == 4
            ? "insert into millrace.timer (due, job, queue, kind, lane, attempt) select millrace.now() + interval '1 h', id, queue, kind, lane, 1 from millrace.job where id = \(id);"
            : ""
        try await run(
            """
            delete from millrace.ready where job = \(id); \(place)
            insert into millrace.history (id, session, number, started, finished, kind, queue, class, outcome, attempt, crashes, error)
            select id, 1, 8, millrace.now(), millrace.now(), kind, queue, 1, \(outcome), 1, 0, '\(error)' from millrace.job where id = \(id);
            """)
        let tells = try await bool("select not exists (select from millrace.failure_past)")
        guard tells else { return }
        try await run(
            """
            select millrace.beat(1, 'working', 0, 0, 0, the_failures => (select jsonb_build_array(jsonb_build_object('queue', queue, 'kind', kind,
                'error', '\(error)', 'failed', 1, 'dead', \(outcome == 3 ? 1 : 0), 'jobs', jsonb_build_array(id), 'lo', id, 'hi', id))
              from millrace.job where id = \(id)))
            """)
    }
}
