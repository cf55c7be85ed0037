import CommandKit
import FoundationEssentials
import Templates

extension Command {
    static let templatesRender = Command(
        ["templates", "render"],
        summary: "Render a template: a file of Mustache, or a mail template by its name",
        discussion: """
            A file is rendered without a database. A file that ends in .html is escaped by context as in a mail, any \
            other like a mail's text; a variables.json beside it declares its data. With --plain it is rendered as \
            specified Mustache, and its partials are <dir>/<name>.mustache. The data are JSON: a text, @file, or - for \
            standard input.
            """,
        arguments: [Argument("file", .optional, .path, help: "the file, or - for standard input")],
        flags: [
            .single("name", "NAME", environment: .none, help: "A mail template instead of a file."),
            .localeOfTemplate,
            .single(
                "version", "N", .integer(0...1_000_000), environment: .none,
                help: "This version of the template; 0 is built in."),
            .single(
                "part", "PART", .choice(["subject", "html", "text"]), environment: .none, help: "Only this part of it."),
            .single("data", "JSON", environment: .none, fallback: "{}", help: "The data to render it with."),
            .single("partials", "DIR", .path, environment: .none, help: "The folder with the partials for --plain."),
            .toggle("plain", environment: .none, help: "Plain Mustache, as specified, without the rules for mails."),
            Setting.locale.flag,
        ],
        examples: [
            Example("millrace templates render page.mustache --plain", "as Mustache"),
            Example("millrace templates render mail.html --data @a.json", "as a mail"),
            Example("millrace templates render --name welcome --data -", "what would be sent"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let data = try invocation.templateData()
        do {
            if let name = parsed.string("name") {
                guard parsed.string("file") == nil, !parsed.isOn("plain"), parsed.string("partials") == nil else {
                    throw Failure(.misused, "--name cannot be combined with a file, --plain or --partials")
                }
                let mail = try MailTemplate(try await invocation.templateSource(named: name)).render(data)
                invocation.show(mail, part: parsed.string("part"))
            } else {
                guard let path = parsed.string("file") else {
                    throw Failure(.misused, "a file or --name is needed")
                }
                guard parsed.string("part") == nil, parsed.integer("version") == nil else {
                    throw Failure(.misused, "--part and --version go with --name")
                }
                let bytes = try invocation.renderFile(path, data)
                switch invocation.console.format {
                case .human: invocation.console.output.write(String(decoding: bytes, as: UTF8.self))
                case .json, .jsonLines:
                    invocation.console.show(["output": .string(String(decoding: bytes, as: UTF8.self))]) {}
                }
            }
        } catch let error as TemplateError {
            throw Failure(.misused, error.inWords, hint: error.hint)
        }
        return .done
    }
}

extension TemplateError {
    var inWords: String {
        var plain = self
        plain.hint = nil
        return plain.description
    }
}

extension Invocation {
    fileprivate func templateData() throws(Failure) -> TemplateValue {
        let text = parsed.string("data") ?? "{}"
        var bytes = Array(text.utf8)
        if text == "-" || text.hasPrefix("@") {
            let path = text == "-" ? "-" : String(text.dropFirst())
            bytes = try templateFile(path, named: "the data")
        }
        do throws(TemplateError) {
            return try TemplateValue(json: bytes)
        } catch {
            throw Failure(
                .misused, error.sentence, hint: "in a shell, put JSON in single quotes: '{\"name\": \"value\"}'")
        }
    }

    private func templateFile(_ path: String, named what: String) throws(Failure) -> [UInt8] {
        do throws(FileProblem) {
            return try surroundings.read(path, 4 << 20)
        } catch {
            throw Failure(.misused, "\(what): \(Secrets.quoted(path)): \(error.complaint)")
        }
    }

    fileprivate func renderFile(_ path: String, _ data: TemplateValue) throws -> [UInt8] {
        let source = try templateFile(path, named: "the template")
        if parsed.isOn("plain") {
            let directory = parsed.string("partials")
            let surroundings = surroundings
            let partials = Partials { name in
                // A name stays inside the folder.
                guard let directory, !name.contains(".."), !name.hasPrefix("/"), !name.contains("\0") else {
                    return nil
                }
                return try? surroundings.read("\(directory)/\(name).mustache", 1 << 20)
            }
            return try Template(source).render(data, partials: partials)
        }
        guard parsed.string("partials") == nil else {
            throw Failure(.misused, "--partials goes with --plain", hint: "a mail template cannot include another one")
        }
        let folder = path.contains("/") ? String(path[..<(path.lastIndex(of: "/") ?? path.endIndex)]) : "."
        var variables: Variables?
        if path != "-", FileManager.default.fileExists(atPath: folder + "/variables.json") {
            variables = try Variables(json: try templateFile(folder + "/variables.json", named: "the variables"))
        }
        let template = try Template(source, mode: path.hasSuffix(".html") ? .html : .text, variables: variables)
        return try template.render(variables?.check(data) ?? data)
    }

    fileprivate func show(_ mail: RenderedMail, part: String?) {
        let parts: [String: String] = ["subject": mail.subject, "text": mail.text, "html": mail.html ?? ""]
        if let part, console.format == .human {
            console.output.write(parts[part] ?? "")
            if part == "subject" { console.output.write("\n") }
            return
        }
        console.show([
            "subject": .string(mail.subject), "html": JSONValue(mail.html), "text": .string(mail.text),
            "template_version": .int(mail.version), "locale": .string(mail.locale),
        ]) {
            console.print("subject: \(mail.subject)", .bold)
            console.print()
            console.print(mail.text)
            if let html = mail.html { console.print(html) }
        }
    }
}
