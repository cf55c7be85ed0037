import Postgres
import Templates

enum StoragePages {
    static let routes = [
        ConsolePageRoute(path: "/storage", make: storage)
    ]

    private static func storage(_ context: PageContext) async throws -> ConsolePage {
        let found = try await context.json(
            """
            select jsonb_build_object(
                'sizes', (select coalesce(jsonb_agg(to_jsonb(s)), '[]') from (select * from millrace.sizes() limit 40) s),
                'pins', (select coalesce(jsonb_agg(to_jsonb(p)), '[]') from millrace.pins() p),
                'partitions', (select to_jsonb(p) from millrace.partitions() p),
                'schema', (select to_jsonb(s) from millrace.schema_state() s))
            """)
        let partitions = found["partitions"] ?? .null
        return ConsolePage(
            title: "Storage", entry: "Storage",
            parts: [
                .facts([
                    ("Days of history prepared", .count(partitions.int("history_days"))),
                    ("Job numbers prepared", .count(partitions.int("job_ids"))),
                    ("Stray rows", .count(partitions.int("strays"))),
                ]), .heading("Oldest transactions"),
                .table(
                    found.list("pins"),
                    [
                        .text("Process", "pid"), .text("Application", "application"), .text("User", "usename"),
                        .text("State", "state"), .span("Open for", "age_s"),
                    ], empty: "No transaction holds old row versions."), .heading("Tables"),
                .table(
                    found.list("sizes"),
                    [
                        .text("Table", "name"),
                        .own("Size", number: true) { .init(Figures.bytes($0.int("bytes") ?? 0)) },
                        .count("Dead rows", "dead"),
                    ], empty: ""),
            ] + (try await PastPages.storageCharts(context)))
    }
}
