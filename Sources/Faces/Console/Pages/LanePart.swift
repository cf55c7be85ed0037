import Postgres
import Templates

/// The lanes of a room, which look like queues.
enum LanePart {
    static func lanes(_ lanes: [TemplateValue]) -> ConsolePart {
        .table(
            lanes,
            [
                .own("Lane") { ConsoleCell("\($0.text("room") ?? "") / \($0.text("lane") ?? "")") },
                .count("Waiting", "waiting"), .count("Later", "later"), .count("Running", "running"),
                .span("Oldest", "oldest_s"), .count("Ended in 1 h", "ended"), .count("Failed in 1 h", "failed"),
                .count("Workers", "workers"),
            ], empty: "No lane is used.")
    }

    static func lanes(of room: String, _ context: PageContext) async throws -> ConsolePart {
        let found = try await context.json(
            "select coalesce(jsonb_agg(to_jsonb(l)), '[]') from millrace.room_lanes(2000) l where l.room = $1",
            [.text(room)])
        return lanes(found.elements)
    }
}
