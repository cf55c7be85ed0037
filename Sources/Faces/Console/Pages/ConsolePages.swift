import Templates

/// Every page by its path.
package enum ConsolePages {
    static let all: [ConsolePageRoute] =
        OverviewPages.routes + QueuePages.routes + KindPages.routes + JobPages.routes + JobForms.routes
        + FailurePages.routes + SchedulePages.routes + ScheduleForm.routes
        + WorkerPages.routes + ProviderPages.routes + MailPages.routes + TemplatePages.routes + DocumentPages.routes
        + ApprovalPages.routes + CheckInPages.routes + QuestPages.routes + NoticePages.routes
        + WebhookPages.routes + StoragePages.routes + SubscriptionPages.routes + OperationPages.routes
        + PastPages.routes

    /// Whether a path is one of the console's own.
    package static func has(_ path: String) -> Bool {
        all.contains { $0.path == path } || files.contains { $0.path == path }
            || ["", "/", "/signin", "/signout", "/live"].contains(path)
    }

    static let files: [ConsoleFileRoute] =
        TemplatePages.files + DocumentPages.files + OperationPages.files + MailPages.files
        + Palette.files
}

/// A column of a table, and how its cell is made of a row.
struct RowColumn: Sendable {
    let column: ConsoleTable.Column
    let cell: @Sendable (TemplateValue) -> ConsoleCell

    static func text(
        _ title: String, _ key: String, href: (@Sendable (TemplateValue) -> String?)? = nil
    ) -> RowColumn {
        RowColumn(column: .text(title)) { .text($0.text(key), href: href?($0)) }
    }

    static func count(_ title: String, _ key: String, live: (@Sendable (TemplateValue) -> String)? = nil) -> RowColumn {
        RowColumn(column: .number(title)) { .count($0.int(key), live: live?($0)) }
    }

    static func state(_ title: String, _ key: String) -> RowColumn {
        RowColumn(column: .text(title)) { .state($0.text(key)) }
    }

    static func time(_ title: String, _ key: String) -> RowColumn {
        RowColumn(column: .text(title)) { .time($0.text(key)) }
    }

    static func span(_ title: String, _ key: String) -> RowColumn {
        RowColumn(column: .number(title)) { .span($0.double(key)) }
    }

    static func own(
        _ title: String, number: Bool = false, _ cell: @escaping @Sendable (TemplateValue) -> ConsoleCell
    ) -> RowColumn {
        RowColumn(column: .init(title: title, isNumber: number), cell: cell)
    }
}

extension ConsolePart {
    static func table(
        _ rows: [TemplateValue], _ columns: [RowColumn], empty: String, next: String? = nil, isBrief: Bool = false
    ) -> ConsolePart {
        .table(
            ConsoleTable(
                columns: columns.map(\.column), rows: rows.map { row in columns.map { $0.cell(row) } }, empty: empty,
                next: next, isBrief: isBrief))
    }
}
