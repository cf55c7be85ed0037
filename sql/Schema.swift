/// The database's half of Millrace: numbered migrations, applied once, and functions, applied again by every migrate.
package enum Schema {
    package struct Script: Sendable {
        package let name: String
        package let bytes: [UInt8]
    }

    /// In order. Append only; never edit one that was released.
    package static let migrations: [Script] = [
        Script(name: "001_names_and_settings", bytes: PackageResources._01_names_and_settings_sql),
        Script(name: "002_jobs_and_places", bytes: PackageResources._02_jobs_and_places_sql),
        Script(name: "003_sessions_and_leases", bytes: PackageResources._03_sessions_and_leases_sql),
        Script(name: "004_history", bytes: PackageResources._04_history_sql),
        Script(name: "005_unique_successors", bytes: PackageResources._05_unique_successors_sql),
        Script(name: "006_limits_and_tenants", bytes: PackageResources._06_limits_and_tenants_sql),
        Script(name: "007_schedules", bytes: PackageResources._07_schedules_sql),
        Script(name: "008_steps_and_results", bytes: PackageResources._08_steps_and_results_sql),
        Script(name: "009_sealed_arguments", bytes: PackageResources._09_sealed_arguments_sql),
        Script(name: "010_retention_by_state", bytes: PackageResources._10_retention_by_state_sql),
        Script(name: "011_flows", bytes: PackageResources._11_flows_sql),
        Script(name: "012_shorter_slots", bytes: PackageResources._12_shorter_slots_sql),
        Script(name: "013_events", bytes: PackageResources._13_events_sql),
        Script(name: "014_blobs", bytes: PackageResources._14_blobs_sql),
        Script(name: "015_provider_health", bytes: PackageResources._15_provider_health_sql),
    ]

    /// In the order in which they build on each other; `clock` gives way to `test_clock` where that was asked for.
    package static let functions: [Script] = [
        Script(name: "clock", bytes: PackageResources.clock_sql),
        Script(name: "names", bytes: PackageResources.names_sql),
        Script(name: "access", bytes: PackageResources.access_sql),
        Script(name: "wake", bytes: PackageResources.wake_sql),
        Script(name: "unique", bytes: PackageResources.unique_sql),
        Script(name: "sealed", bytes: PackageResources.sealed_sql),
        Script(name: "enqueue", bytes: PackageResources.enqueue_sql),
        Script(name: "limits", bytes: PackageResources.limits_sql),
        Script(name: "claim", bytes: PackageResources.claim_sql),
        Script(name: "claim_limited", bytes: PackageResources.claim_limited_sql),
        Script(name: "steps", bytes: PackageResources.steps_sql),
        Script(name: "traces", bytes: PackageResources.traces_sql),
        Script(name: "finish", bytes: PackageResources.finish_sql),
        Script(name: "sessions", bytes: PackageResources.sessions_sql),
        Script(name: "views", bytes: PackageResources.views_sql),
        Script(name: "flows", bytes: PackageResources.flows_sql),
        Script(name: "flow_whole", bytes: PackageResources.flow_whole_sql),
        Script(name: "control", bytes: PackageResources.control_sql),
        Script(name: "schedules", bytes: PackageResources.schedules_sql),
        Script(name: "providers", bytes: PackageResources.providers_sql),
        Script(name: "flags", bytes: PackageResources.flags_sql),
        Script(name: "lists", bytes: PackageResources.lists_sql),
        Script(name: "dead", bytes: PackageResources.dead_sql),
        Script(name: "events", bytes: PackageResources.events_sql),
        Script(name: "blobs", bytes: PackageResources.blobs_sql),
        Script(name: "status", bytes: PackageResources.status_sql),
        Script(name: "retention", bytes: PackageResources.retention_sql),
        Script(name: "maintenance", bytes: PackageResources.maintenance_sql),
        Script(name: "schema", bytes: PackageResources.schema_sql),
        Script(name: "grants", bytes: PackageResources.grants_sql),
    ]

    package static let testClock = Script(name: "test_clock", bytes: PackageResources.test_clock_sql)

    /// The number of the last migration: the schema this program speaks.
    package static var version: Int { migrations.count }

    /// The oldest schema version whose workers still run on this schema.
    package static let oldestWorker = 11
}
