import Templates

/// Searches of jobs that were saved under a name, above the list; and the forms that save this one and remove another.
struct SavedSearches {
    private let searches: [(name: String, address: String)]
    private let here: String
    /// The conditions of the list that is open.
    private let filter: [String: String]

    /// - Parameter rows: those of the database, each with its name and its filter.
    init(_ rows: [TemplateValue], asked: [(String, String?)], sort: String?) {
        let conditions = JobPages.conditions + ["sort"]
        searches = rows.map { row in
            let filter = row["filter"]
            return (row.text("name") ?? "", PageAddress.to("/jobs", conditions.map { ($0, filter?.text($0)) }))
        }
        let open = asked + [("sort", sort)]
        here = PageAddress.to("/jobs", open)
        filter = Dictionary(open.compactMap { name, value in value.map { (name, $0) } }, uniquingKeysWith: { $1 })
    }

    var links: [ConsolePart] {
        guard !searches.isEmpty else { return [] }
        return [
            .tabs(
                [ConsoleCell("Saved searches", tone: "quiet")]
                    + searches.map { ConsoleCell($0.name, href: $0.address, tone: $0.address == here ? "here" : nil) })
        ]
    }

    var forms: [ConsolePart] {
        var forms = [
            ConsoleForm(
                id: "save-search", action: PageAddress.to("/act/search.save"), button: "Save",
                fields: [
                    ConsoleField(name: "filter", value: JSONLine.object(filter), kind: .hidden),
                    ConsoleField(
                        name: "name", label: "Save this search as",
                        value: searches.first { $0.address == here }?.name ?? "", isNeeded: true),
                ])
        ]
        if !searches.isEmpty {
            forms.append(
                ConsoleForm(
                    id: "remove-search", action: PageAddress.to("/act/search.remove"), button: "Remove",
                    fields: [
                        ConsoleField(name: "name", label: "Saved search", kind: .choice(searches.map(\.name)))
                    ]))
        }
        return [.heading("Saved searches"), .forms(forms)]
    }
}
