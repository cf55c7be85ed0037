import CommandKit
import Postgres
import Templates

extension Command {
    static let templatesLint = Command(
        ["templates", "lint"],
        summary: "Check mail templates before they are published",
        discussion: """
            Checks a folder <name>/<locale>/{subject.txt, body.html, body.txt, variables.json}, a folder of such \
            folders, or with --name the live template. Every finding has its file, its line and what to do about it; \
            exit 1 when there is one.
            """,
        arguments: [Argument("dir", .optional, .path, help: "the folder")],
        flags: [
            .single("name", "NAME", environment: .none, help: "The live template of that name instead."),
            .localeOfTemplate,
            .single("version", "N", .integer(0...1_000_000), environment: .none, help: "This version of the template."),
            Setting.locale.flag,
        ],
        examples: [Example("millrace templates lint mails", "all templates below mails/")]
    ) { invocation in
        var findings: [PlacedFinding] = []
        var count = 1
        if let name = invocation.parsed.string("name") {
            guard invocation.parsed.string("dir") == nil else {
                throw Failure(.misused, "give a folder or --name, not both")
            }
            let source = try await invocation.templateSource(named: name)
            findings = Lint.findings(source).map {
                PlacedFinding(file: "\(source.name)/\(source.locale) \($0.part)", finding: $0)
            }
        } else {
            guard let directory = invocation.parsed.string("dir") else {
                throw Failure(.misused, "a folder or --name is needed")
            }
            let folders = try TemplateFolder.find(directory)
            count = folders.count
            findings = try PlacedFinding.all(of: folders)
        }
        invocation.show(findings, of: count)
        return findings.isEmpty ? .done : .failed
    }

    static let templatesPublish = Command(
        ["templates", "publish"],
        summary: "Publish the mail templates of a folder; they are live at once",
        discussion: """
            Publishes all of them or none. If lint has findings they are printed, and nothing is published. A template \
            that equals the live one gets no new version. templates use goes back to an earlier version.
            """,
        arguments: [Argument("dir", .one, .path, help: "a folder as templates lint takes it")],
        flags: [
            .toggle("dry-run", environment: .none, help: "Print what would be published, and change nothing."),
            .single("note", "TEXT", environment: .none, help: "The reason, for templates list."),
        ],
        examples: [Example("millrace templates publish mails --note 'new address'", "every template below mails/")]
    ) { invocation in
        let folders = try TemplateFolder.find(invocation.parsed.string("dir") ?? "")
        let findings = try PlacedFinding.all(of: folders)
        guard findings.isEmpty else {
            invocation.show(findings, of: folders.count)
            throw Failure(
                .misused, "nothing was published",
                hint: "fix what is listed above; millrace templates lint lists it again")
        }
        var sources: [MailSource] = []
        for folder in folders { sources.append(try folder.read()) }
        let isDry = invocation.parsed.isOn("dry-run")
        let note = invocation.parsed.string("note")
        let published = try await invocation.withSchema { [sources] connection in
            try await connection.transaction { connection async throws(PostgresError) -> [(MailSource, Int, Bool)] in
                var published: [(MailSource, Int, Bool)] = []
                for source in sources {
                    let live = try await TemplateStore.source(source.name, locales: [source.locale], on: connection)
                    let isSame = live.map { TemplateDiff.lines(from: $0, to: source).isEmpty } ?? false
                    var version = live?.version ?? 0
                    if !isDry, !isSame { version = try await TemplateStore.publish(source, note: note, on: connection) }
                    published.append((source, version, !isSame))
                }
                return published
            }
        }
        invocation.console.show([
            "dry_run": .bool(isDry),
            "templates": .array(
                published.map { source, version, changed in
                    [
                        "name": .string(source.name), "locale": .string(source.locale),
                        "template_version": isDry && changed ? .null : .int(version), "changed": .bool(changed),
                    ]
                }),
        ]) {
            for (source, version, changed) in published {
                let deed =
                    !changed ? "as it is, version \(version)" : isDry ? "would be published" : "version \(version)"
                invocation.console.print("\(source.name) \(source.locale): \(deed)")
            }
        }
        return .done
    }
}

/// A finding and the file it is in.
struct PlacedFinding: Sendable {
    let file: String
    let finding: LintFinding

    static func all(of folders: [TemplateFolder]) throws(Failure) -> [PlacedFinding] {
        var findings: [PlacedFinding] = []
        for folder in folders {
            for finding in Lint.findings(try folder.read()) {
                findings.append(PlacedFinding(file: folder.file(of: finding.part), finding: finding))
            }
        }
        return findings
    }
}

extension Invocation {
    fileprivate func show(_ findings: [PlacedFinding], of count: Int) {
        console.show([
            "templates": .int(count),
            "findings": .array(
                findings.map {
                    [
                        "file": .string($0.file), "line": .int($0.finding.line), "part": .string($0.finding.part),
                        "finding": .string($0.finding.sentence), "hint": .string($0.finding.hint),
                    ]
                }),
        ]) {
            for one in findings {
                console.print("\(one.file):\(one.finding.line): \(one.finding.sentence); \(one.finding.hint)")
            }
            if findings.isEmpty { console.print("\(count) \(count == 1 ? "template" : "templates"), nothing to fix") }
        }
    }
}
