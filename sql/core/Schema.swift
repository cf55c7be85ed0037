/// The core's half of the database, which every installation has.
package enum Schema {
    /// Its line begins at 100: databases of before there were lines have numbers below.
    package static let core = RoomSchema(
        name: "core", purpose: "jobs, queues, workers, schedules, flows, operations, providers",
        migrations: [
            Script("100_core", Embedded._100_core)
        ],
        functions: [
            Script("doors", Embedded.doors),
            Script("clock", Embedded.clock),
            Script("calendars", Embedded.calendars),
            Script("names", Embedded.names),
            Script("kinds", Embedded.kinds),
            Script("fleet", Embedded.fleet),
            Script("sizes", Embedded.sizes),
            Script("checks", Embedded.checks),
            Script("access", Embedded.access),
            Script("audit", Embedded.audit),
            Script("turns", Embedded.turns),
            Script("trace_now", Embedded.trace_now),
            Script("hooks", Embedded.hooks),
            Script("wake", Embedded.wake),
            Script("unique", Embedded.unique),
            Script("sealed", Embedded.sealed),
            Script("fields", Embedded.fields),
            Script("enqueue", Embedded.enqueue),
            Script("limits", Embedded.limits),
            Script("carried", Embedded.carried),
            Script("claim", Embedded.claim),
            Script("claim_limited", Embedded.claim_limited),
            Script("steps", Embedded.steps),
            Script("undo", Embedded.undo),
            Script("changes", Embedded.changes),
            Script("versions", Embedded.versions),
            Script("signals", Embedded.signals),
            Script("approvals", Embedded.approvals),
            Script("approval_people", Embedded.approval_people),
            Script("waits", Embedded.waits),
            Script("published", Embedded.published),
            Script("workflows", Embedded.workflows),
            Script("traces", Embedded.traces),
            Script("finish", Embedded.finish),
            Script("failure_gist", Embedded.failure_gist),
            Script("failures", Embedded.failures),
            Script("sessions", Embedded.sessions),
            Script("refused", Embedded.refused),
            Script("views", Embedded.views),
            Script("flows", Embedded.flows),
            Script("flow_whole", Embedded.flow_whole),
            Script("ends", Embedded.ends),
            Script("control", Embedded.control),
            Script("places", Embedded.places),
            Script("fork", Embedded.fork),
            Script("steps_mend", Embedded.steps_mend),
            Script("schedules", Embedded.schedules),
            Script("edit", Embedded.edit),
            Script("providers", Embedded.providers),
            Script("flags", Embedded.flags),
            Script("bulk_delete", Embedded.bulk_delete),
            Script("lists", Embedded.lists),
            Script("rehearse", Embedded.rehearse),
            Script("why", Embedded.why),
            Script("redact", Embedded.redact),
            Script("why_job", Embedded.why_job),
            Script("jobs_find", Embedded.jobs_find),
            Script("operations_filter", Embedded.operations_filter),
            Script("operations_act", Embedded.operations_act),
            Script("operations_undo", Embedded.operations_undo),
            Script("operations", Embedded.operations),
            Script("queue_remove", Embedded.queue_remove),
            Script("dead", Embedded.dead),
            Script("jobs_erase", Embedded.jobs_erase),
            Script("status", Embedded.status),
            Script("troubles", Embedded.troubles),
            Script("room_lanes", Embedded.room_lanes),
            Script("samples_pack", Embedded.samples_pack),
            Script("samples_take", Embedded.samples_take),
            Script("samples_read", Embedded.samples_read),
            Script("measures", Embedded.measures),
            Script("fleet_past", Embedded.fleet_past),
            Script("kinds_past", Embedded.kinds_past),
            Script("why_rooms", Embedded.why_rooms),
            Script("why_queue", Embedded.why_queue),
            Script("retention", Embedded.retention),
            Script("maintenance", Embedded.maintenance),
            Script("operating_why", Embedded.operating_why),
            Script("operating_hooks", Embedded.operating_hooks),
            Script("queue_hooks", Embedded.queue_hooks),
            Script("schema", Embedded.schema),
        ])

    /// Stands in the place of `clock` where that was asked for.
    package static let testClock = Script("test_clock", Embedded.test_clock)

    /// After the functions of all rooms: who may call what.
    package static let grants = Script("grants", Embedded.grants)

    /// Signatures that no script makes any more and that workers of the previous version still call. A
    /// migration drops every other function that no script makes.
    package static let keptFunctions: [String] = []

    /// Functions that run with the owner's rights and on the caller's search_path, because a setting costs each call too much. They write
    /// every name in full, and tests set a trap for each that is not.
    package static let callersPathFunctions = ["enqueue_as"]

    /// The number of the core's last migration: the schema this program speaks.
    package static var version: Int { core.version }

    /// The oldest schema version whose workers still run on this schema.
    package static let oldestWorker = 11
}
