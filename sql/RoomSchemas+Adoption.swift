package import Schema

extension RoomSchemas {
    /// From the one line that there was before each room had its own, up to the lines. That line had every room, so this stands with the rooms
    /// and not with the core.
    package static let adoption = SchemaAdoption(
        oldest: 74,
        scripts: [
            Script("075_trusted_logins", Embedded._075_trusted_logins),
            Script("076_own_bounds", Embedded._076_own_bounds),
            Script("077_console_sign_outs", Embedded._077_console_sign_outs),
            Script("078_waits_and_signals_looked_at_again", Embedded._078_waits_and_signals_looked_at_again),
            Script("079_clocks_of_workers", Embedded._079_clocks_of_workers),
            Script("080_answers_without_reasons", Embedded._080_answers_without_reasons),
            Script("081_one_row_for_a_thread", Embedded._081_one_row_for_a_thread),
            Script("082_hooks", Embedded._082_hooks),
            Script("083_each_room_writes_its_own_tables", Embedded._083_each_room_writes_its_own_tables),
            Script("084_doors", Embedded._084_doors),
            Script("099_lines", Embedded._099_lines),
        ],
        rooms: [
            "ai", "blobs", "chat", "checkins", "console", "documents", "events", "feed", "gateway", "lessons", "mail",
            "media", "notices", "people", "quests", "quotas", "subscriptions", "templates", "webhooks",
        ])
}
