import Postgres
import TestSupport
import Testing

/// Faults that the random sequences find: `MILLRACE_PLANTED=forgetsFollowers`.
enum PlantedFault: String, CaseIterable {
    /// A flow, a list or an operation cancels undos.
    case cancelsUndos
    /// An order runs again while it is being undone.
    case retriesWhileUndone
    /// An order runs again before the end of what has undone its charge is on record, and a second run of that undoes the order's next charge.
    case undoesWhatCameAfter
    /// An end that sees nobody who waits leaves no note.
    case forgetsFollowers
    /// What is undone does not wait for what it waited for.
    case losesWaits
    /// What was signalled meanwhile is not told.
    case tellsNothingAgain
    /// A job that waits in the middle of its work, and has no options, is not found.
    case hidesParents
    /// A parent that comes back waits as one that was enqueued after its children.
    case losesRules
    /// Jobs that have begun expire.
    case expiresBegun
    /// A holder in the middle of its work is replaced.
    case replacesMidway
    /// Jobs wait for each other.
    case waitsInCircles
    /// Deleted jobs leave their waits.
    case leavesWaits
    /// A step with an undo is done again from the start.
    case beginsAfresh
    /// What is to be undone is deleted.
    case deletesCharged

    private var changes: [(function: String, from: String, to: String)] {
        switch self {
        case .cancelsUndos:
            [
                ("undo_end_check", "select x.* into u", "return; select x.* into u"),
                ("operation_act", "u.undo_job = i offset 0", "u.undo_job = -i offset 0"),
                ("flow_cancel", "u.undo_job = one", "u.undo_job = -one"),
            ]
        case .retriesWhileUndone: [("undos_back", "for one in select", "return; for one in select")]
        case .undoesWhatCameAfter:
            [
                ("undo_ending", "return (select", "return null; return (select"),
                (
                    "steps_to_undo", "from millrace.undo u join",
                    "from (select j.id as undo_job, (j.options #>> '{undo,job}')::bigint as job from millrace.job j) u join"
                ),
            ]
        case .forgetsFollowers:
            [
                (
                    "ends_note", "from unnest(ids) i;",
                    "from unnest(ids) i where exists (select from millrace.edge e where e.pred = i);"
                )
            ]
        case .losesWaits: [("operation_traces", "'wait', (select", "'weight', (select")]
        case .tellsNothingAgain:
            [
                ("place_put", "look_at = millrace.now()", "look_at = null"),
                ("operation_undo_plain", "look_at = t", "look_at = null"),
                ("operation_traces_back", "then millrace.now() end", "then null end"),
            ]
        case .hidesParents: [("job", "exists (select from millrace.blocked b where b.job = job.id)", "false")]
        case .losesRules: [("flow_starts_again", "then 2", "then 1")]
        case .expiresBegun: [("job_has_begun", "return exists", "return false; return exists")]
        case .replacesMidway:
            [
                ("unique_replace", "held.next is null and held.is_midway", "false"),
                ("unique_replace", "if millrace.job_is_midway(held.job)", "if false"),
            ]
        case .waitsInCircles: [("flow_waits", "return exists", "return false and exists")]
        case .leavesWaits: [("trace_forget", "w.job = any (trace_forget.jobs)", "w.job = any (jobs)")]
        case .beginsAfresh:
            [
                ("undo_fresh_refusal", "x.job = the_job", "x.job = -the_job"),
                ("operation_move", "u.job = i.job", "u.job = -i.job"),
            ]
        case .deletesCharged: [("undo_delete_check", "if not found", "if true")]
        }
    }

    func plant(in connection: Connection) async throws {
        for change in changes { try await connection.replace(in: change.function, change.from, with: change.to) }
    }
}

extension Connection {
    /// A function of the schema with another text in it.
    func replace(in function: String, _ text: String, with other: String) async throws {
        let source = try #require(
            try await value(
                "select pg_get_functiondef(p.oid) from pg_proc p where p.pronamespace = 'millrace'::regnamespace and p.proname = '\(function)'"
            ))
        let changed = source.replacing(text, with: other)
        #expect(changed != source, "\(function) has no \(text)")
        try await run(changed)
    }
}
