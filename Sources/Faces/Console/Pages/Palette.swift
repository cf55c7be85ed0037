import Listeners
import Postgres
import Templates

/// Where a few letters may lead: for the dialog that a key opens, and for the page of the search.
enum Palette {
    static let files: [ConsoleFileRoute] = [ConsoleFileRoute(path: "/palette", make: answer)]

    private static let mostNames = 8

    private static func answer(_ context: PageContext) async throws -> Response {
        let text = String((context.query("q") ?? "").prefix(128))
        var cells = ids(text) + pages(text)
        if !text.isEmpty { cells += try await names(text, context) }
        let found = TemplateValue.list(
            cells.map { cell in
                .object(["label": .string(cell.text), "href": cell.href.map { .string($0) } ?? .null])
            })
        return Response(
            headers: [Header("Content-Type", "application/json"), Header("Cache-Control", "no-store")],
            body: .bytes(Array(found.pretty.utf8)))
    }

    /// Pages whose name has this in it; all of them without a text.
    static func pages(_ text: String) -> [ConsoleCell] {
        let wanted = text.lowercased()
        return Navigation.groups.flatMap { $0.entries }.filter { entry in
            wanted.isEmpty || entry.label.lowercased().contains(wanted)
        }.map { ConsoleCell($0.label, href: PageAddress.to($0.path)) }
    }

    /// What has such a number or such an id; whether it is there, its own page says.
    static func ids(_ text: String) -> [ConsoleCell] {
        if let number = Int(text), number > 0 {
            return [
                ConsoleCell("Job \(number)", href: PageAddress.job(number)),
                ConsoleCell("Failures of cause \(number)", href: PageAddress.to("/failures/\(number)")),
                ConsoleCell("Operation \(number)", href: PageAddress.to("/operations/\(number)")),
            ]
        }
        let lengths = text.split(separator: "-", omittingEmptySubsequences: false).map(\.utf8.count)
        guard lengths == [8, 4, 4, 4, 12],
            text.utf8.allSatisfy({ $0 == 0x2D || Character(Unicode.Scalar($0)).isHexDigit })
        else { return [] }
        return [
            ("Message", "/mail"), ("Document", "/documents"), ("Approval", "/approvals"), ("Webhook", "/webhooks"),
            ("Subscription", "/subscriptions"), ("Alarm", "/alarms"),
        ].map { ConsoleCell("\($0.0) \(text)", href: PageAddress.to("\($0.1)/\(text)")) }
    }

    private static func names(_ text: String, _ context: PageContext) async throws -> [ConsoleCell] {
        let found = try await context.json(
            """
            select jsonb_build_object(
                'queues', (select coalesce(jsonb_agg(d.queue order by d.queue), '[]') from millrace.queue_page($1, null, $2) d),
                'kinds', (select coalesce(jsonb_agg(k.kind order by k.kind), '[]')
                            from (select l.kind from millrace.kind_list() l where position(lower($1) in lower(l.kind)) > 0 limit $2) k))
            """, [.text(text), .int4(Int32(mostNames))])
        let queues = found.list("queues").compactMap(\.plainText).map {
            ConsoleCell("Queue \($0)", href: PageAddress.queue($0))
        }
        let kinds = found.list("kinds").compactMap(\.plainText).map {
            ConsoleCell("Kind \($0)", href: KindPages.address($0))
        }
        return queues + kinds
    }
}
