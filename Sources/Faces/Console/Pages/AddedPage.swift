package import PageKit
import Postgres
import Templates

/// A page that a room of another package has added.
package struct AddedPage: Sendable {
    package let room: String
    package let page: RoomPage

    package init(room: String, page: RoomPage) {
        self.room = room
        self.page = page
    }

    var route: ConsolePageRoute { ConsolePageRoute(path: page.path, room: room, make: make) }

    private func make(_ context: PageContext) async throws -> ConsolePage {
        var parts: [ConsolePart] = []
        for section in page.sections {
            let rows = try await rows(of: section, context)
            let columns = section.columns.map { RowColumn.text($0.title, $0.name) }
            parts += [.heading(section.heading), .table(rows, columns, empty: section.empty)]
        }
        return ConsolePage(title: page.label, entry: page.label, parts: parts)
    }

    private func rows(of section: RoomPage.Section, _ context: PageContext) async throws -> [TemplateValue] {
        let statement =
            "select coalesce(pg_catalog.jsonb_agg(pg_catalog.to_jsonb(r)), '[]') from (\(section.statement)) r"
        return try await context.json(.shipped(Array(statement.utf8))).elements
    }
}
