import Postgres
import TestSupport

extension Interleaving {
    struct Fault: Error {
        var sentences: [String]
    }

    /// Functions that wait for a lock for 60 ms at most: see `InterleavingTests.template`. Others wait for as long as it takes.
    private static let patient = ["flows_", "signals_tell", "operation_step", "maintain"]

    /// Waits until each statement has ended or waits for another session, and then takes note of what the ended ones say: what was said last comes first.
    mutating func settle() async throws {
        var answers: [(session: Int, saying: Saying, answer: Result<[String], PostgresError>)] = []
        var waiting: [Int: Set<Int>] = [:]
        let start = ContinuousClock.now
        while true {
            for session in sessions.indices {
                guard let flight = sessions[session].flight, let answer = flight.answer.value else { continue }
                sessions[session].flight = nil
                answers.append((session, flight.saying, answer))
            }
            let busy = sessions.indices.filter { sessions[$0].flight != nil }
            if busy.isEmpty { break }
            // Most statements end within a millisecond or two.
            try await watcher.run("select pg_sleep(0.001)")
            if let holders = try await holders(of: busy) {
                waiting = holders
                guard let late = rival(among: busy, holders) else { break }
                trace.append("    \(sessions[late].name) gives up")
                try await watcher.run("select pg_cancel_backend(\(sessions[late].process))")
                while sessions[late].flight?.answer.value == nil { await Task.yield() }
            }
            guard ContinuousClock.now - start < .seconds(30) else {
                throw Fault(sentences: ["these statements neither end nor wait: \(busy.map { sessions[$0].name })"])
            }
            await Task.yield()
        }
        answers.sort { sessions[$0.session].said > sessions[$1.session].said }
        let told = answers.flatMap { ended($0.session, $0.saying, $0.answer) }
        noteWaits(waiting)
        try await learn(told)
    }

    /// Whom each of these sessions waits for, if all of them do and will go on doing so: a wait is over where it closes a circle, and where the function has a limit.
    private func holders(of busy: [Int]) async throws -> [Int: Set<Int>]? {
        var holders: [Int: Set<Int>] = [:]
        for session in busy {
            let row = try await watcher.column(
                """
                select concat_ws(' ', (extract(epoch from clock_timestamp() - l.waitstart) * 1000)::int, array_to_string(pg_blocking_pids(l.pid), ' '))
                  from pg_locks l where l.pid = \(sessions[session].process) and not l.granted and l.waitstart is not null
                """
            ).first
            let fields = (row ?? "").split(separator: " ").compactMap { Int($0) }
            let sql = sessions[session].flight?.saying.sql ?? ""
            let least = Self.patient.contains { sql.contains("millrace.\($0)") } ? 200 : 50
            guard fields.count > 1, fields[0] >= least else { return nil }
            holders[session] = Set(fields[1...])
        }
        return holders
    }

    /// The later of two that wait for the same session.
    private func rival(among busy: [Int], _ holders: [Int: Set<Int>]) -> Int? {
        for one in busy {
            for other in busy where other > one {
                if !(holders[one] ?? []).isDisjoint(with: holders[other] ?? []) {
                    return sessions[one].said > sessions[other].said ? one : other
                }
            }
        }
        return nil
    }

    private mutating func noteWaits(_ holders: [Int: Set<Int>]) {
        for session in sessions.indices where sessions[session].flight?.isKnownToWait == false {
            sessions[session].flight?.isKnownToWait = true
            waits += 1
            let names = sessions.filter { holders[session]?.contains($0.process) ?? false }.map(\.name)
            trace.append("    \(sessions[session].name) waits for \(names.joined(separator: " and "))")
        }
    }

    /// What is known from now on, by a statement outside of a transaction or by a commit.
    private mutating func ended(
        _ session: Int, _ saying: Saying, _ answer: Result<[String], PostgresError>
    ) -> [(Int, Reading, [String])] {
        let name = sessions[session].name
        switch answer {
        case .failure(let error):
            let state = error.sqlState ?? "no answer"
            trace.append("    \(name) is refused: \(state) \(error)")
            if !isUsual(state, for: session) {
                wrong.append("\(name) was refused: \(error.debugDescription.prefix(300))")
            }
            if sessions[session].isOpen, saying.sql != "commit" {
                sessions[session].isFailed = true
            } else {
                leave(session)
            }
            return isOfLostSession(state, session) ? [(session, .beat(known.session[name] ?? 0), ["false"])] : []
        case .success(let rows):
            trace.append("    \(name) -> \(rows.joined(separator: " | "))")
            return heard(session, saying, rows)
        }
    }

    private func isUsual(_ state: String, for session: Int) -> Bool {
        Self.usual.contains(state) || sessions[session].role == .caller && Self.usualForCallers.contains(state)
            || isOfLostSession(state, session)
    }

    /// A claim for a session that was rescued.
    private func isOfLostSession(_ state: String, _ session: Int) -> Bool {
        state == "23503" && sessions[session].role == .worker
    }

    private mutating func heard(_ session: Int, _ saying: Saying, _ rows: [String]) -> [(Int, Reading, [String])] {
        switch saying.sql {
        case "commit":
            let heard = sessions[session].heard
            hasCommitted = true
            leave(session)
            return heard.map { (session, $0.0, $0.1) }
        case "rollback": leave(session)
        case "savepoint s": sessions[session].savepoints.append(sessions[session].heard.count)
        case "rollback to s":
            sessions[session].isFailed = false
            sessions[session].heard.removeLast(sessions[session].heard.count - (sessions[session].savepoints.last ?? 0))
        default:
            guard sessions[session].isOpen else {
                hasCommitted = true
                return [(session, saying.reading, rows)]
            }
            sessions[session].heard.append((saying.reading, rows))
        }
        return []
    }

    /// Its transaction is over.
    private mutating func leave(_ session: Int) {
        sessions[session].isOpen = false
        sessions[session].isFailed = false
        sessions[session].savepoints = []
        sessions[session].heard = []
    }
}
