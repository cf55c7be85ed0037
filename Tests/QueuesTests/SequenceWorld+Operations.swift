import Postgres
import TestSupport

extension SequenceWorld {
    enum Operation: CaseIterable {
        case enqueue, enqueueMany, enqueueWithKey, enqueueAfter, cancel, cancelUndo, retry, retryFresh, reschedule
        case priority, delete, flowCancel, flowRetry, page, fork, stepSet, stepForget, signal, signalJob, answer
        case startOperation, stepOperation, changeOperation, undoOperation, thereAndBack, cancelAndRetry, circle
        case retryUndone, failCharged, followWhileEnding
        case claim, end, complete, handle, charge, wait, spawn, crash, handBack, house, time

        static let weights: [(Operation, Int)] = [
            (.enqueue, 4), (.enqueueMany, 1), (.enqueueWithKey, 8), (.enqueueAfter, 8), (.cancel, 5), (.cancelUndo, 1),
            (.retry, 5), (.retryFresh, 3), (.reschedule, 2), (.priority, 2), (.delete, 3), (.flowCancel, 2),
            (.flowRetry, 3), (.page, 3), (.fork, 2), (.stepSet, 1), (.stepForget, 1), (.signal, 3), (.signalJob, 1),
            (.answer, 2), (.startOperation, 6), (.stepOperation, 8), (.changeOperation, 1), (.undoOperation, 4),
            (.thereAndBack, 4), (.cancelAndRetry, 3), (.circle, 2), (.retryUndone, 2), (.failCharged, 5),
            (.followWhileEnding, 3), (.claim, 12), (.end, 14), (.complete, 3), (.handle, 2), (.charge, 10), (.wait, 8),
            (.spawn, 3), (.crash, 2),
            (.handBack, 1), (.house, 12), (.time, 4),
        ]
    }

    private static let ended = "select id from millrace.history where outcome in (2, 3)"
    private static let successors = "select next from millrace.unique_lock where next is not null"
    private static let charged = "select u.job from millrace.undo u join millrace.timer d on d.job = u.job"
    private static let parents = "select w.job from millrace.wait w join millrace.blocked b on b.job = w.job"
    private static let waiting = """
        select w.job from millrace.wait w join millrace.timer d on d.job = w.job and d.due = w.place
        """
    /// Jobs a step of which has been undone by one that has not ended.
    private static let undone = """
        select (j.options #>> '{undo,job}')::bigint from millrace.job j
         where j.options ? 'undo' and not exists (select from millrace.undo u where u.undo_job = j.id)
           and not exists (select from millrace.history h where h.id = j.id and h.outcome in (1, 2, 3))
        """

    mutating func perform(_ operation: Operation, by caller: Int) async throws {
        switch operation {
        case .enqueue: try await say(caller, "select millrace.enqueue('test', \(extras()))", begins: true)
        case .enqueueMany:
            try await say(
                caller,
                #"select millrace.enqueue_many('[{"kind": "test"}, {"kind": "test", "unique_key": "k1", "on_conflict": "replace"}]'); select millrace.enqueue_bulk('test', '{"{}","{}"}')"#
            )
        case .enqueueWithKey:
            let conflict = random.chance(0.7) ? "replace" : "skip"
            try await say(
                caller,
                "select millrace.enqueue('test', unique_key => 'k\(random.below(3))', on_conflict => '\(conflict)', \(extras()))",
                begins: true)
        case .enqueueAfter: try await enqueueAfter(by: caller)
        case .cancel: try await each(Self.jobs, "select millrace.cancel({})", by: caller)
        case .cancelUndo:
            guard let id = try await one("select undo_job from millrace.undo") else { return }
            try await say(
                caller, "select * from millrace.jobs_do('cancel', array[\(id)], \(random.chance(0.5)))", begins: true)
        case .retry:
            try await each(random.chance(0.7) ? Self.ended : Self.jobs, "select millrace.retry({})", by: caller)
        case .retryFresh:
            try await each(
                random.pick([(Self.ended, 5), (Self.jobs, 3), (Self.charged, 2)]), "select millrace.retry_fresh({})",
                by: caller)
        case .reschedule:
            let time = random.chance(0.5) ? "-1 s" : "40 s"
            try await each(
                Self.jobs, "select millrace.reschedule({}, millrace.now() + interval '\(time)')", by: caller)
        case .priority:
            try await each(Self.jobs, "select millrace.job_priority({}, \(random.below(3)))", by: caller)
        case .delete: try await each(Self.jobs, "\(Self.waived); select millrace.job_delete({})", by: caller)
        case .flowCancel: try await each(Self.jobs, "select millrace.flow_cancel({})", by: caller)
        case .flowRetry: try await each(Self.ended, "select millrace.flow_retry({})", by: caller)
        case .page:
            let ids = try await some(3, Self.jobs).joined(separator: ",")
            let deed = random.pick([("cancel", 2), ("retry", 2), ("retry_fresh", 1), ("delete", 2)])
            guard !ids.isEmpty else { return }
            try await say(
                caller, "\(Self.waived); select * from millrace.jobs_do('\(deed)', array[\(ids)])", begins: true)
        case .fork: try await fork(by: caller)
        case .stepSet: try await setStep(by: caller)
        case .stepForget:
            guard let id = try await one("select job from millrace.step where name = 'charge'") else { return }
            try await say(
                caller,
                "select millrace.step_forget(\(id), 'charge'); insert into public.ledger values (\(id), 'waived')",
                begins: true)
        case .signal:
            count += 1
            try await say(
                caller,
                "select millrace.signal('s\(random.below(2))', payload => '\(count)', to_all => \(random.chance(0.2)))",
                begins: true)
        case .signalJob:
            count += 1
            try await each(
                "select job from millrace.wait union select id from millrace.job",
                random.chance(0.5)
                    ? "select millrace.signal_job({}, 'own', '\(count)')"
                    : "select millrace.signal_waiting({}, (select name from millrace.wait where job = {}), '\(count)')",
                by: caller)
        case .answer:
            try await say(
                caller,
                "select count(millrace.approval_answer(id, true)) from (select id from millrace.approval where answered_at is null limit 1) a",
                begins: true)
        case .startOperation, .stepOperation, .changeOperation, .undoOperation:
            try await operate(operation, by: caller)
        case .thereAndBack: try await thereAndBack(by: caller)
        case .cancelAndRetry:
            guard let id = try await one(random.chance(0.7) ? Self.parents : Self.jobs) else { return }
            try await say(caller, "select millrace.cancel(\(id))")
            try await say(caller, "select millrace.retry(\(id))")
        case .circle: try await circle(by: caller)
        case .retryUndone: try await retryUndone(by: caller)
        case .failCharged: try await failCharged(by: caller)
        case .followWhileEnding: try await followWhileEnding(by: caller)
        case .claim: try await claim()
        case .end: try await endSome()
        case .complete: try await complete(by: caller)
        case .handle: try await handle(by: caller)
        case .charge: try await charge(by: caller)
        case .wait: try await wait(by: caller)
        case .spawn: try await spawn(by: caller)
        case .crash:
            try await tell("select millrace.rescue(\(session), null)")
            session += 1
            try await worker.openSession(session)
        case .handBack:
            guard let number = try await one("select number from millrace.lease where session = \(session)") else {
                return
            }
            try await tell("select millrace.leases_return(\(session), array[\(number)])")
        case .house: try await house()
        case .time: try await tell("select millrace.test_clock_advance('20 s')")
        }
    }

    /// An admin has decided that what these undos were to undo stays as it is.
    static let waived = """
        insert into public.ledger select u.job, 'waived' from millrace.undo u join millrace.history h on h.id = u.undo_job and h.outcome in (2, 3)
        """

    private mutating func each(_ choices: String, _ call: String, by caller: Int) async throws {
        guard let id = try await one(choices) else { return }
        try await say(caller, call.replacing("{}", with: id), begins: true)
    }

    private mutating func enqueueAfter(by caller: Int) async throws {
        let after = try await some(2, random.chance(0.7) ? Self.jobs : Self.successors)
        guard !after.isEmpty else { return }
        let key = random.chance(0.3) ? "unique_key => 'k\(random.below(3))'," : ""
        let when = random.pick([("ended", 3), ("succeeded", 3), ("dead", 1)])
        var before = ""
        if random.chance(0.1), let blocked = try await one("select job from millrace.blocked") {
            before = ", \"before\": [\(blocked)]"
        }
        try await say(
            caller,
            """
            select millrace.enqueue('test', \(key) options => '{"after": {"jobs": [\(after.joined(separator: ","))], "when": "\(when)"}\(before)}')
            """, begins: true)
    }

    /// An open transaction ends a job, and somebody who does not see that yet has another wait for it.
    private mutating func followWhileEnding(by caller: Int) async throws {
        guard !callers[caller].isOpen, let id = try await one(Self.jobs) else { return }
        callers[caller].isOpen = true
        try await say(caller, "begin")
        try await say(
            caller,
            random.pick([
                ("select millrace.cancel(\(id))", 3), ("\(Self.waived); select millrace.job_delete(\(id))", 1),
                ("select millrace.flow_cancel(\(id))", 1),
                ("select * from millrace.jobs_do('cancel', array[\(id)])", 1),
            ]))
        try await say(
            (caller + 1) % callers.count,
            "select millrace.enqueue('test', options => '{\"after\": {\"jobs\": [\(id)], \"when\": \"ended\"}}')")
        if random.chance(0.7) { try await house() }
    }

    private mutating func fork(by caller: Int) async throws {
        guard let id = try await one(Self.jobs) else { return }
        try await say(
            caller,
            "select millrace.fork(\(id), live => \(random.chance(0.3))); insert into public.ledger select f.job, 'fork' from millrace.fork f",
            begins: true)
    }

    private mutating func setStep(by caller: Int) async throws {
        guard let id = try await one("select job from millrace.wait union select job from millrace.step") else {
            return
        }
        try await say(
            caller,
            "select millrace.step_set(\(id), coalesce((select w.step from millrace.wait w where w.job = \(id)), 'extra'), '{\"value\": 0}', true)",
            begins: true)
    }

    private mutating func operate(_ operation: Operation, by caller: Int) async throws {
        switch operation {
        case .startOperation:
            let (action, arguments) = random.pick([
                (("cancel", "{}"), 4), (("retry", "{}"), 3), (("retry_fresh", "{}"), 3), (("delete", "{}"), 3),
                (("reschedule", #"{"run_at": "2090-01-01T00:00:00Z"}"#), 1), (("priority", #"{"priority": 1}"#), 1),
            ])
            var filter = #"{"kind": "test"}"#
            if random.chance(0.7) {
                let ids = Set(try await some(3, Self.jobs)).joined(separator: ",")
                guard !ids.isEmpty else { return }
                filter = "{\"ids\": [\(ids)]}"
            }
            try await say(
                caller, "select millrace.operation_start('\(action)', '\(filter)', '\(arguments)')", begins: true)
        case .stepOperation:
            try await tell("\(Self.waived); select millrace.operation_step(most => \(1 + random.below(4)))")
        case .changeOperation:
            let change = random.pick([("pause", 2), ("resume", 2), ("stop", 1)])
            try await each(
                "select id from millrace.operation",
                change == "pause"
                    ? "select millrace.operation_pause({})"
                    : change == "stop" ? "select millrace.operation_stop({})" : "select millrace.operation_resume({})",
                by: caller)
        default:
            try await each("select id from millrace.operation", "select millrace.operation_undo({})", by: caller)
        }
    }

    /// An operation that is undone at once, or when little has happened in between.
    private mutating func thereAndBack(by caller: Int) async throws {
        let actions = [("cancel", 3), ("retry", 3), ("retry_fresh", 3), ("delete", 3)]
        guard !callers[caller].isOpen else { return }
        if random.chance(0.5) { try await waitForSignal(by: caller) }
        guard let id = try await one(random.chance(0.7) ? Self.waiting : Self.jobs) else { return }
        let wanted = try await worker.column("select name from millrace.wait where job = \(id) and name like 's_'")
            .first
        try await say(caller, "select millrace.operation_start('\(random.pick(actions))', '{\"ids\": [\(id)]}')")
        guard let operation = try await one("select max(id) from millrace.operation") else { return }
        try await tell("\(Self.waived); select millrace.operation_step(\(operation))")
        if random.chance(0.6) {
            count += 1
            // Most often the one that the job has waited for.
            let name = random.chance(0.8) ? wanted : nil
            try await say(
                caller, "select millrace.signal('\(name ?? "s\(random.below(2))")', payload => '\(count)')")
            try await tell("select millrace.signals_tell()")
        }
        try await tell("select millrace.operation_step(\(operation))")
        try await say(caller, "select millrace.operation_undo(\(operation))")
        try await tell("select millrace.operation_step(\(operation))")
    }

    /// A job that is to come after one that waits for another, and before that other.
    private mutating func circle(by caller: Int) async throws {
        let pairs = try await worker.column(
            """
            select e.succ || ' ' || e.pred from millrace.edge e join millrace.blocked b on b.job = e.pred
             where e.outcome is null and e.number is null order by 1
            """)
        guard !pairs.isEmpty else { return }
        let ids = pairs[random.below(pairs.count)].split(separator: " ")
        try await say(
            caller,
            "select millrace.enqueue('test', options => '{\"after\": {\"jobs\": [\(ids[0])]}, \"before\": [\(ids[1])]}')"
        )
    }

    /// A job is retried whose charge was given back by a run whose end is not on record; where it runs, it charges once more.
    mutating func retryUndone(by caller: Int) async throws {
        guard let id = try await one(Self.undone) else { return }
        try await say(caller, "select millrace.retry(\(id))")
        try await claim(wanted: 20)
        if let run = try await running("r.job = \(id)") { try await charge(run, by: caller) }
    }

    /// A charged job fails. Where that was for the last time its charge is given back, by a worker that dies before the end of that is on record.
    private mutating func failCharged(by caller: Int) async throws {
        guard !callers[caller].isOpen, let run = try await running("j.options #>> '{undo,job}' is null") else { return }
        try await charge(run, by: caller)
        guard random.chance(0.7) else {
            try await end(run, outcome: 4)
            return try await say(caller, "select millrace.retry_fresh(\(run.job))")
        }
        try await end(run, outcome: 3)
        try await house()
        try await claim(wanted: 20)
        guard let undo = try await running("(j.options #>> '{undo,job}')::bigint = \(run.job)") else { return }
        try await giveBack(undo)
        try await end(undo, outcome: 4)
        try await retryUndone(by: caller)
    }

    private mutating func extras() -> String {
        let tenant = random.pick([("null", 1), ("'a'", 2), ("'b'", 2)])
        let limit = random.chance(0.3) ? "'l'" : "null"
        let time = random.chance(0.2) ? ", run_at => millrace.now() + interval '30 s'" : ""
        let expiry =
            random.chance(0.3)
            ? ", options => jsonb_build_object('expires_at', millrace.now() + interval '15 s')" : ""
        return "tenant => \(tenant), limit_key => \(limit)\(time)\(expiry)"
    }
}
