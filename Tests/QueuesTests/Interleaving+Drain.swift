import Postgres
import TestSupport

/// How a round comes to its end.
extension Interleaving {
    private static let doors = [
        "heed_cancels()", "flows_check()", "signals_tell()", "gates_open()", "slots_sweep()", "promote(null, 5000)",
        "unique_expire()",
    ]

    /// All transactions end; then one worker does all that is left.
    mutating func drain() async throws {
        try await closeTransactions()
        let keeper = index(of: "y")
        let worker = index(of: "v")
        for session in known.beats.keys.sorted() where session != known.session["v"] {
            try await tell(keeper, rescue(session, nil))
        }
        try await tell(
            worker,
            Saying(
                sql: "select millrace.beat(\(known.session["v"] ?? 0), 'working', 0, 0, 0)",
                reading: .beat(known.session["v"] ?? 0)))
        let session = known.session["v"] ?? 0
        for _ in 0..<100 {
            try await house(keeper)
            try await advance(3000)
            guard try await workOff(session, worker) else { continue }
            try await tellAll(keeper)
            let isOpen = try await watcher.bool(
                "exists (select from millrace.ready) or exists (select from millrace.timer) or exists (select from millrace.parked) or exists (select from millrace.ending) or exists (select from millrace.blocked where fresh)"
            )
            if !isOpen { break }
        }
        try await house(keeper)
        wrong += try await places.look(watcher)
        try await check()
        let left = try await verdicts()
        guard left.isEmpty else { throw Fault(sentences: left) }
    }

    private mutating func closeTransactions() async throws {
        for _ in 0..<200 {
            guard let session = sessions.indices.first(where: { sessions[$0].isOpen && sessions[$0].flight == nil })
            else { break }
            let isLost = sessions[session].isFailed || random.chance(0.15)
            try await say(session, Saying(sql: isLost ? "rollback" : "commit"))
        }
        let stuck = sessions.filter { $0.isOpen || $0.flight != nil }
        guard stuck.isEmpty else { throw Fault(sentences: ["sessions wait for each other: \(stuck.map(\.name))"]) }
    }

    private mutating func tell(_ session: Int, _ saying: Saying) async throws {
        try await say(session, saying)
        guard sessions[session].flight == nil else { throw Fault(sentences: ["\(saying.sql) waits for nobody"]) }
    }

    private mutating func house(_ keeper: Int) async throws {
        try await tell(
            keeper, Saying(sql: "select millrace.operation_resume(id) from millrace.operation where state = 'paused'"))
        for _ in 0..<50 {
            try await tell(keeper, Saying(sql: "select operation from millrace.operation_step()"))
            if trace.last?.hasSuffix("null") ?? true { break }
        }
        for door in Self.doors { try await tell(keeper, Saying(sql: "select x::text from millrace.\(door) x")) }
        for _ in 0..<50 {
            try await tell(keeper, Saying(sql: "select more from millrace.flows_advance()"))
            if trace.last?.hasSuffix("false") ?? true { break }
        }
    }

    /// All runs succeed, and more are claimed; true where there are none.
    private mutating func workOff(_ session: Int, _ worker: Int) async throws -> Bool {
        while let first = known.runs.first(where: { $0.session == session && $0.state == .live }) {
            let runs = known.runs.indices.filter {
                known.runs[$0].session == session && known.runs[$0].number == first.number
                    && known.runs[$0].state == .live
            }
            try await tell(worker, finish(session, runs.map { ($0, known.runs[$0].hasExpired ? 2 : 1) }, by: worker))
            guard wrong.isEmpty else { throw Fault(sentences: wrong) }
        }
        for number in emptyLeases(session) { try await tell(worker, give(session, number)) }
        wrong += try await places.look(watcher)
        try await check()
        let before = known.runs.count
        try await tell(worker, claim(session, wanted: 20))
        return known.runs.count == before
    }

    /// Nobody waits in vain.
    private mutating func tellAll(_ keeper: Int) async throws {
        let waiting = "millrace.wait w join millrace.timer d on d.job = w.job and d.due = w.place"
        for sql in [
            "select millrace.signal(w.name, w.key, keep => '1 hour') from \(waiting) where w.what = 2 and w.name <> 'own' order by w.job",
            "select count(millrace.approval_answer(id, true)) from millrace.approval where answered_at is null",
            """
            select millrace.retry(d.job) from millrace.timer d where d.due > millrace.now() + interval '1 minute'
             and not exists (select from millrace.wait w where w.job = d.job and w.what <> 1 and w.place = d.due) order by d.job
            """,
        ] { try await tell(keeper, Saying(sql: sql)) }
    }
}
