import TestSupport

/// What callers and handlers say.
extension Interleaving {
    enum Act: CaseIterable {
        case enqueue, many, key, after, cancel, retry, retryFresh, delete, signal, signalJob, answer, reschedule,
            priority, flowCancel, flowRetry
        case page, operation, undoOperation, complete, wait, spawn, step

        private static let usual: [(Act, Int)] = [
            (.enqueue, 6), (.many, 5), (.key, 8), (.after, 9), (.cancel, 7), (.retry, 4), (.retryFresh, 2),
            (.delete, 2), (.signal, 4), (.signalJob, 2),
            (.answer, 2), (.reschedule, 3), (.priority, 1), (.flowCancel, 1), (.flowRetry, 2), (.page, 2),
            (.operation, 4), (.undoOperation, 2),
            (.complete, 6), (.wait, 8), (.spawn, 3), (.step, 1),
        ]

        /// Every other round does few kinds of things, and some of them more often.
        static func weights(_ random: inout SeededRandom) -> [(Act, Int)] {
            guard random.chance(0.5) else { return usual }
            let always: Set<Act> = [.enqueue, .many, .key, .after]
            return usual.compactMap { act, weight in
                let isDone = always.contains(act) || random.chance(0.4)
                return isDone ? (act, weight * random.pick([(1, 1), (2, 1), (4, 1)])) : nil
            }
        }
    }

    /// Nil: there is nothing to do it to.
    mutating func act(by session: Int) -> Saying? {
        let act = random.pick(weights)
        switch act {
        case .enqueue: return Saying(sql: "select millrace.enqueue('test', \(extras()))", reading: .job)
        case .many:
            let job = random.pick([
                (#"{"kind": "test", "tenant": "a"}"#, 2), (#"{"kind": "test", "limit_key": "l"}"#, 1),
            ])
            return Saying(
                sql: "select id from millrace.enqueue_many('[\(job), \(job), {\"kind\": \"test\"}]')", reading: .job)
        case .key:
            let conflict = random.pick([("replace", 5), ("skip", 3), ("error", 1)])
            return Saying(
                sql:
                    "select millrace.enqueue('test', unique_key => 'k\(random.below(3))', on_conflict => '\(conflict)', \(extras()))",
                reading: .job)
        case .after: return enqueueAfter()
        case .signal:
            known.signals += 1
            return Saying(
                sql:
                    "select millrace.signal('s\(random.below(2))', payload => '\(known.signals)', to_all => \(random.chance(0.2)))"
            )
        case .answer:
            return Saying(
                sql:
                    "select count(millrace.approval_answer(id, true)) from (select id from millrace.approval where answered_at is null order by id limit 1) a"
            )
        case .undoOperation:
            guard !known.operations.isEmpty else { return nil }
            return Saying(
                sql: "select millrace.operation_undo(\(known.operations[random.below(known.operations.count)]))")
        case .operation: return operate()
        case .complete, .wait, .spawn, .step: return handle(act, by: session)
        case .page:
            guard let ids = ids(2) else { return nil }
            return Saying(
                sql:
                    "select x::text from millrace.jobs_do('\(random.pick([("cancel", 2), ("retry", 2)]))', array[\(ids)]) x"
            )
        default: return deal(act)
        }
    }

    /// What is done to one job.
    private mutating func deal(_ act: Act) -> Saying? {
        guard let job = job() else { return nil }
        switch act {
        case .cancel: return Saying(sql: "select millrace.cancel(\(job))")
        case .retry: return Saying(sql: "select millrace.retry(\(job))")
        case .retryFresh: return Saying(sql: "select millrace.retry_fresh(\(job))")
        case .delete: return Saying(sql: "select millrace.job_delete(\(job))", reading: .deleted(job))
        case .signalJob:
            known.signals += 1
            return Saying(sql: "select millrace.signal_job(\(job), 'own', '\(known.signals)')")
        case .reschedule:
            let by = random.chance(0.5) ? "-1 s" : "4 s"
            return Saying(sql: "select millrace.reschedule(\(job), millrace.now() + interval '\(by)')")
        case .priority: return Saying(sql: "select millrace.job_priority(\(job), \(random.below(3)))")
        case .flowCancel: return Saying(sql: "select millrace.flow_cancel(\(job))")
        default: return Saying(sql: "select millrace.flow_retry(\(job))")
        }
    }

    private mutating func extras() -> String {
        let tenant = random.pick([("null", 2), ("'a'", 2), ("'b'", 1)])
        let limit = random.chance(0.25) ? "'l'" : "null"
        let time = random.chance(0.15) ? ", run_at => millrace.now() + interval '3 s'" : ""
        return "tenant => \(tenant), limit_key => \(limit)\(time)"
    }

    mutating func enqueueAfter(_ job: Int? = nil) -> Saying? {
        guard let ids = job.map(String.init) ?? ids(1 + random.below(2)) else { return nil }
        let key = random.chance(0.2) ? "unique_key => 'k\(random.below(3))', " : ""
        let when = random.pick([("ended", 3), ("succeeded", 3), ("dead", 1)])
        return Saying(
            sql:
                "select millrace.enqueue('test', \(key)options => '{\"after\": {\"jobs\": [\(ids)], \"when\": \"\(when)\"}}')",
            reading: .job)
    }

    private mutating func operate() -> Saying? {
        let (action, arguments) = random.pick([
            (("cancel", "{}"), 4), (("retry", "{}"), 3), (("reschedule", #"{"run_at": "2090-01-01T00:00:00Z"}"#), 1),
            (("priority", #"{"priority": 1}"#), 1),
        ])
        var filter = #"{"kind": "test"}"#
        if random.chance(0.7) {
            guard let ids = ids(2) else { return nil }
            filter = "{\"ids\": [\(ids)]}"
        }
        return Saying(
            sql: "select millrace.operation_start('\(action)', '\(filter)', '\(arguments)')", reading: .operation)
    }

    /// What a run does in a transaction of its handler.
    private mutating func handle(_ act: Act, by session: Int) -> Saying? {
        let live = known.runs.indices.filter { known.runs[$0].state == .live }
        guard !live.isEmpty else { return nil }
        let run = live[random.below(live.count)]
        let token = known.runs[run].token
        touch(known.runs[run].job)
        switch act {
        case .complete:
            known.runs[run].state = .ending(session)
            return Saying(sql: "select millrace.complete('\(token)')", reading: .completes(run))
        case .wait:
            known.runs[run].state = .ending(session)
            let key = "k\(random.below(3))"
            let (what, options) = random.pick([
                (("time", #"{"seconds": 2}"#), 2), (("signal", "{\"name\": \"s\(random.below(2))\"}"), 5),
                (("approval", #"{"request": 1}"#), 1),
                (("jobs", #"{"jobs": [{"kind": "test"}]}"#), 3),
                (
                    (
                        "jobs",
                        "{\"jobs\": [{\"kind\": \"test\", \"unique_key\": \"\(key)\", \"on_conflict\": \"replace\"}]}"
                    ), 2
                ),
            ])
            return Saying(
                sql: "select millrace.wait('\(token)', '\(what)', '\(what)', '\(options)')", reading: .waits(run))
        case .spawn:
            return Saying(
                sql: "select concat_ws(' ', first, last) from millrace.spawn('\(token)', 'test', array['{}', '{}'])",
                reading: .spawned)
        default: return Saying(sql: "select millrace.step('\(token)', 'plain', '1')")
        }
    }

    // MARK: Which job

    /// A job that somebody has had to do with lately, or one of the last.
    mutating func job() -> Int? {
        guard !known.jobs.isEmpty else { return nil }
        let job =
            !known.recent.isEmpty && random.chance(0.75)
            ? known.recent[
                known.recent.count - 1 - min(random.below(known.recent.count), random.below(known.recent.count))]
            : known.jobs[known.jobs.count - 1 - random.below(min(8, known.jobs.count))]
        touch(job)
        return job
    }

    private mutating func ids(_ count: Int) -> String? {
        let ids = Set((0..<count).compactMap { _ in job() })
        return ids.isEmpty ? nil : ids.sorted().map(String.init).joined(separator: ", ")
    }

    mutating func touch(_ job: Int) {
        guard known.jobs.contains(job) else { return }
        known.recent.removeAll { $0 == job }
        known.recent = (known.recent + [job]).suffix(5)
    }
}
