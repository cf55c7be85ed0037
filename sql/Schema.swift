/// The database's half of Millrace: numbered migrations, applied once, and functions, applied again by every migrate.
package enum Schema {
    package struct Script: Sendable {
        package let name: String
        package let bytes: [UInt8]
    }

    /// In order. Append only; never edit one that was released.
    package static let migrations: [Script] = [
        Script(name: "001_names_and_settings", bytes: Embedded._001_names_and_settings),
        Script(name: "002_jobs_and_places", bytes: Embedded._002_jobs_and_places),
        Script(name: "003_sessions_and_leases", bytes: Embedded._003_sessions_and_leases),
        Script(name: "004_history", bytes: Embedded._004_history),
        Script(name: "005_unique_successors", bytes: Embedded._005_unique_successors),
        Script(name: "006_limits_and_tenants", bytes: Embedded._006_limits_and_tenants),
        Script(name: "007_schedules", bytes: Embedded._007_schedules),
        Script(name: "008_steps_and_results", bytes: Embedded._008_steps_and_results),
        Script(name: "009_sealed_arguments", bytes: Embedded._009_sealed_arguments),
        Script(name: "010_retention_by_state", bytes: Embedded._010_retention_by_state),
        Script(name: "011_flows", bytes: Embedded._011_flows),
        Script(name: "012_shorter_slots", bytes: Embedded._012_shorter_slots),
        Script(name: "013_events", bytes: Embedded._013_events),
        Script(name: "014_blobs", bytes: Embedded._014_blobs),
        Script(name: "015_provider_health", bytes: Embedded._015_provider_health),
        Script(name: "016_shorter_claims", bytes: Embedded._016_shorter_claims),
        Script(name: "017_templates", bytes: Embedded._017_templates),
        Script(name: "018_mail", bytes: Embedded._018_mail),
        Script(name: "019_quests", bytes: Embedded._019_quests),
        Script(name: "020_notices", bytes: Embedded._020_notices),
        Script(name: "021_documents", bytes: Embedded._021_documents),
        Script(name: "022_webhooks", bytes: Embedded._022_webhooks),
        Script(name: "023_checkins", bytes: Embedded._023_checkins),
        Script(name: "024_finding_a_contact", bytes: Embedded._024_finding_a_contact),
        Script(name: "025_briefer_claims", bytes: Embedded._025_briefer_claims),
        Script(name: "026_loose_claims", bytes: Embedded._026_loose_claims),
        Script(name: "027_confirmed_claims", bytes: Embedded._027_confirmed_claims),
        Script(name: "028_claims_apart", bytes: Embedded._028_claims_apart),
        Script(name: "029_routes", bytes: Embedded._029_routes),
        Script(name: "030_unchecked_hot_tables", bytes: Embedded._030_unchecked_hot_tables),
        Script(name: "031_drawn_numbers", bytes: Embedded._031_drawn_numbers),
        Script(name: "032_keys_by_their_holder", bytes: Embedded._032_keys_by_their_holder),
        Script(name: "033_promoted_lanes", bytes: Embedded._033_promoted_lanes),
        Script(name: "034_keys_by_rounds", bytes: Embedded._034_keys_by_rounds),
        Script(name: "035_replaced_at_once", bytes: Embedded._035_replaced_at_once),
        Script(name: "036_gentler_vacuum", bytes: Embedded._036_gentler_vacuum),
        Script(name: "037_sparse_routes", bytes: Embedded._037_sparse_routes),
        Script(name: "038_turns", bytes: Embedded._038_turns),
        Script(name: "039_attested_callers", bytes: Embedded._039_attested_callers),
        Script(name: "040_invitations_and_consents", bytes: Embedded._040_invitations_and_consents),
        Script(name: "041_blob_grants", bytes: Embedded._041_blob_grants),
        Script(name: "042_checked_templates", bytes: Embedded._042_checked_templates),
        Script(name: "043_turns_by_row", bytes: Embedded._043_turns_by_row),
        Script(name: "044_carried_contents", bytes: Embedded._044_carried_contents),
        Script(name: "045_why_and_how_it_goes", bytes: Embedded._045_why_and_how_it_goes),
        Script(name: "046_webhooks_passed_by", bytes: Embedded._046_webhooks_passed_by),
        Script(name: "047_profiles", bytes: Embedded._047_profiles),
        Script(name: "048_quest_texts", bytes: Embedded._048_quest_texts),
        Script(name: "049_people_alone", bytes: Embedded._049_people_alone),
        Script(name: "050_document_feeds", bytes: Embedded._050_document_feeds),
        Script(name: "051_operations_and_audit", bytes: Embedded._051_operations_and_audit),
        Script(name: "052_failures_fields_redaction", bytes: Embedded._052_failures_fields_redaction),
        Script(name: "053_samples", bytes: Embedded._053_samples),
        Script(name: "054_refused_workers", bytes: Embedded._054_refused_workers),
        Script(name: "055_console", bytes: Embedded._055_console),
        Script(name: "057_gateway", bytes: Embedded._057_gateway),
    ]

    /// In the order in which they build on each other; `clock` gives way to `test_clock` where that was asked for.
    package static let functions: [Script] = [
        Script(name: "clock", bytes: Embedded.clock),
        Script(name: "calendars", bytes: Embedded.calendars),
        Script(name: "names", bytes: Embedded.names),
        Script(name: "sizes", bytes: Embedded.sizes),
        Script(name: "access", bytes: Embedded.access),
        Script(name: "audit", bytes: Embedded.audit),
        Script(name: "turns", bytes: Embedded.turns),
        Script(name: "wake", bytes: Embedded.wake),
        Script(name: "unique", bytes: Embedded.unique),
        Script(name: "sealed", bytes: Embedded.sealed),
        Script(name: "fields", bytes: Embedded.fields),
        Script(name: "enqueue", bytes: Embedded.enqueue),
        Script(name: "limits", bytes: Embedded.limits),
        Script(name: "carried", bytes: Embedded.carried),
        Script(name: "claim", bytes: Embedded.claim),
        Script(name: "claim_limited", bytes: Embedded.claim_limited),
        Script(name: "steps", bytes: Embedded.steps),
        Script(name: "traces", bytes: Embedded.traces),
        Script(name: "finish", bytes: Embedded.finish),
        Script(name: "failures", bytes: Embedded.failures),
        Script(name: "sessions", bytes: Embedded.sessions),
        Script(name: "refused", bytes: Embedded.refused),
        Script(name: "views", bytes: Embedded.views),
        Script(name: "flows", bytes: Embedded.flows),
        Script(name: "flow_whole", bytes: Embedded.flow_whole),
        Script(name: "control", bytes: Embedded.control),
        Script(name: "places", bytes: Embedded.places),
        Script(name: "schedules", bytes: Embedded.schedules),
        Script(name: "providers", bytes: Embedded.providers),
        Script(name: "flags", bytes: Embedded.flags),
        Script(name: "bulk_delete", bytes: Embedded.bulk_delete),
        Script(name: "lists", bytes: Embedded.lists),
        Script(name: "why", bytes: Embedded.why),
        Script(name: "redact", bytes: Embedded.redact),
        Script(name: "why_job", bytes: Embedded.why_job),
        Script(name: "jobs_find", bytes: Embedded.jobs_find),
        Script(name: "operations_filter", bytes: Embedded.operations_filter),
        Script(name: "operations_act", bytes: Embedded.operations_act),
        Script(name: "operations_undo", bytes: Embedded.operations_undo),
        Script(name: "operations", bytes: Embedded.operations),
        Script(name: "queue_remove", bytes: Embedded.queue_remove),
        Script(name: "dead", bytes: Embedded.dead),
        Script(name: "events", bytes: Embedded.events),
        Script(name: "blobs", bytes: Embedded.blobs),
        Script(name: "uploads", bytes: Embedded.uploads),
        Script(name: "templates", bytes: Embedded.templates),
        Script(name: "template_render", bytes: Embedded.template_render),
        Script(name: "mail_track", bytes: Embedded.mail_track),
        Script(name: "mail_pipe", bytes: Embedded.mail_pipe),
        Script(name: "mail_attachment_check", bytes: Embedded.mail_attachment_check),
        Script(name: "mail_send", bytes: Embedded.mail_send),
        Script(name: "mail_house", bytes: Embedded.mail_house),
        Script(name: "people", bytes: Embedded.people),
        Script(name: "notices", bytes: Embedded.notices),
        Script(name: "profiles", bytes: Embedded.profiles),
        Script(name: "notices_people", bytes: Embedded.notices_people),
        Script(name: "notices_own", bytes: Embedded.notices_own),
        Script(name: "notices_take", bytes: Embedded.notices_take),
        Script(name: "notices_record", bytes: Embedded.notices_record),
        Script(name: "quests_rules", bytes: Embedded.quests_rules),
        Script(name: "quests_families", bytes: Embedded.quests_families),
        Script(name: "quests_joining", bytes: Embedded.quests_joining),
        Script(name: "quests_days", bytes: Embedded.quests_days),
        Script(name: "quests_moods", bytes: Embedded.quests_moods),
        Script(name: "quests_hobbies", bytes: Embedded.quests_hobbies),
        Script(name: "quests_rollover", bytes: Embedded.quests_rollover),
        Script(name: "quests_audit", bytes: Embedded.quests_audit),
        Script(name: "quotas", bytes: Embedded.quotas),
        Script(name: "documents_pipe", bytes: Embedded.documents_pipe),
        Script(name: "documents", bytes: Embedded.documents),
        Script(name: "documents_read", bytes: Embedded.documents_read),
        Script(name: "checkins_rules", bytes: Embedded.checkins_rules),
        Script(name: "checkins_alarms", bytes: Embedded.checkins_alarms),
        Script(name: "checkins_contacts", bytes: Embedded.checkins_contacts),
        Script(name: "checkins_consent", bytes: Embedded.checkins_consent),
        Script(name: "checkins_timer", bytes: Embedded.checkins_timer),
        Script(name: "checkins_watches", bytes: Embedded.checkins_watches),
        Script(name: "checkins_views", bytes: Embedded.checkins_views),
        Script(name: "checkins_leaving", bytes: Embedded.checkins_leaving),
        Script(name: "webhooks", bytes: Embedded.webhooks),
        Script(name: "webhooks_send", bytes: Embedded.webhooks_send),
        Script(name: "sync_operations", bytes: Embedded.sync_operations),
        Script(name: "sync", bytes: Embedded.sync),
        Script(name: "sync_devices", bytes: Embedded.sync_devices),
        Script(name: "gateway", bytes: Embedded.gateway),
        Script(name: "status", bytes: Embedded.status),
        Script(name: "troubles", bytes: Embedded.troubles),
        Script(name: "room_lanes", bytes: Embedded.room_lanes),
        Script(name: "console", bytes: Embedded.console),
        Script(name: "samples_pack", bytes: Embedded.samples_pack),
        Script(name: "samples_take", bytes: Embedded.samples_take),
        Script(name: "samples_read", bytes: Embedded.samples_read),
        Script(name: "measures", bytes: Embedded.measures),
        Script(name: "fleet_past", bytes: Embedded.fleet_past),
        Script(name: "why_rooms", bytes: Embedded.why_rooms),
        Script(name: "why_queue", bytes: Embedded.why_queue),
        Script(name: "retention", bytes: Embedded.retention),
        Script(name: "maintenance", bytes: Embedded.maintenance),
        Script(name: "schema", bytes: Embedded.schema),
        Script(name: "grants", bytes: Embedded.grants),
    ]

    package static let testClock = Script(name: "test_clock", bytes: Embedded.test_clock)

    /// Functions that migrations made and no script makes again, as `regprocedure` prints them.
    package static let functionsOfMigrations = [
        "millrace.mail_never()", "millrace.alarm_notice_failed()", "millrace.route_moves()",
    ]

    /// Signatures that no script makes any more and that workers of the previous version still call. A
    /// migration drops every other function that no script makes.
    package static let keptFunctions: [String] = []

    /// Names that earlier versions shipped and this one does not.
    package static let retiredFunctions = [
        "caller", "caller_is_admin", "caller_is_trusted", "language_of", "quest_parent_only", "quest_sees",
        "quest_subject", "schedule_job_lives", "wake_ready",
    ]

    /// Functions that run with the owner's rights and on the caller's search_path, because a setting costs each call too much. They write
    /// every name in full, and tests set a trap for each that is not.
    package static let callersPathFunctions = ["enqueue_as"]

    /// The number of the last migration: the schema this program speaks.
    package static var version: Int { migrations.count }

    /// The oldest schema version whose workers still run on this schema.
    package static let oldestWorker = 11
}
