extension Command {
    static func config(_ known: [Setting]) -> Command {
        Command(
            ["config"],
            summary: "Print the effective configuration, and where each value comes from",
            discussion: """
                A flag wins over the environment, and the environment over the default. An empty variable counts as unset. \
                Secrets are masked; they may also be read from a file: DATABASE_URL_FILE names the file that holds \
                DATABASE_URL. If anything is wrong, every mistake is listed and the exit code is 2.
                """,
            flags: known.filter { setting in !CommandFlag.global.contains { $0.name == setting.flagName } }.map(
                \.flag),
            examples: [
                Example("millrace config", "what applies in this directory and this environment"),
                Example("MILLRACE_SLOTS=20 millrace config --json", "for a script"),
            ],
            settings: .reported
        ) { invocation in
            let console = invocation.console
            let settings = invocation.settings
            console.show(settings.json) { console.print(settings.table) }
            for problem in settings.problems { console.failure(problem) }
            return settings.problems.isEmpty ? .done : .misused
        }
    }
}

extension Settings {
    fileprivate var table: Table {
        var table = Table([
            Table.Column("setting"), Table.Column("value", shrinks: true), Table.Column("from"),
            Table.Column("source", shrinks: true),
        ])
        for entry in entries {
            let shown = entry.shown ?? (entry.setting.kind.isPresence ? "off" : "-")
            let isDefault = entry.origin == .fallback
            table.add([
                Table.Cell(entry.setting.environment, .bold), Table.Cell(shown, isDefault ? .dim : .plain),
                Table.Cell(entry.origin.word, isDefault ? .dim : .cyan),
                Table.Cell(entry.note ?? entry.origin.source ?? "", .dim),
            ])
        }
        return table
    }

    fileprivate var json: JSONValue {
        let settings = entries.map { entry -> JSONValue in
            [
                "name": .string(entry.setting.name), "variable": .string(entry.setting.environment),
                "value": JSONValue(entry.shown), "origin": .string(entry.origin.word),
                "source": JSONValue(entry.origin.source), "secret": .bool(entry.setting.secrecy != .open),
                "note": JSONValue(entry.note),
            ]
        }
        return ["settings": .array(settings), "problems": JSONValue(problems), "warnings": JSONValue(warnings)]
    }
}

extension ValueKind {
    fileprivate var isPresence: Bool {
        guard case .presence = self else { return false }
        return true
    }
}
