import TestSupport

/// What comes into the way of another session's open transaction.
extension Interleaving {
    private enum Opening {
        /// A run ends or begins to wait, and its session or caller has not committed that.
        case end(Int), wait(Int)
        case claim
        case enqueue
    }

    private func openings(besides session: Int) -> [Opening] {
        sessions.indices.filter { $0 != session && sessions[$0].isOpen }.flatMap { other in
            sessions[other].heard.flatMap { reading, _ -> [Opening] in
                switch reading {
                case .ends(let runs): runs.map { .end($0) }
                case .completes(let run): [.end(run)]
                case .waits(let run): [.wait(run)]
                case .claim: [.claim]
                case .job: [.enqueue]
                default: []
                }
            }
        }
    }

    /// Nil: there is none, or it would be in nobody's way.
    mutating func rival(_ session: Int) -> Saying? {
        let openings = openings(besides: session)
        guard !openings.isEmpty else { return nil }
        let opening = openings[random.below(openings.count)]
        return switch sessions[session].role {
        case .caller: act(beside: opening)
        case .worker: work(beside: opening, by: session)
        case .keeper: keep(beside: opening)
        }
    }

    private mutating func act(beside opening: Opening) -> Saying? {
        switch opening {
        case .end(let run): return enqueueAfter(known.runs[run].job)
        case .wait:
            known.signals += 1
            return Saying(sql: "select millrace.signal('s\(random.below(2))', payload => '\(known.signals)')")
        case .claim, .enqueue: return nil
        }
    }

    /// The rescue of a run that ends, a claim beside a claim, or the end of a key's holder.
    private mutating func work(beside opening: Opening, by worker: Int) -> Saying? {
        let session = known.session[sessions[worker].name] ?? 0
        switch opening {
        case .end(let run), .wait(let run):
            let other = known.runs[run].session
            guard other != session else { return nil }
            let beat = known.seen[sessions[worker].name]?[other]
            return beat == known.beats[other] ? rescue(other, beat) : watch(session, worker)
        case .claim: return claim(session, wanted: 1 + random.below(3))
        case .enqueue:
            let holder = known.runs.indices.first {
                known.runs[$0].session == session && known.runs[$0].state == .live && known.runs[$0].isKeyed
            }
            return holder.map { finish(session, [($0, random.pick([(1, 2), (3, 1)]))], by: worker) }
        }
    }

    private func keep(beside opening: Opening) -> Saying? {
        switch opening {
        case .end: Saying(sql: "select x::text from millrace.flows_check() x")
        case .wait: Saying(sql: "select x::text from millrace.signals_tell() x")
        case .claim, .enqueue: nil
        }
    }
}
