import CommandKit
import Postgres

extension Command {
    static let aiPurposeShow = Command(
        ["ai", "purpose", "show"],
        summary: "Show a purpose: its prompt, the schema of its answers, its limits",
        discussion: "What --json prints can be edited, and put again with ai purpose put --file.",
        arguments: [Argument("purpose", help: "its name; see millrace ai purposes")],
        examples: [
            Example("millrace ai purpose show sentiment --json > sentiment.json", "as a starting point for your own")
        ]
    ) { invocation in
        let name = invocation.parsed.string("purpose") ?? ""
        guard let found = try await invocation.withSchema({ try await AIAdmin.purpose(name, on: $0) }) else {
            throw Failure(
                .notFound, "there is no purpose \(DisplayWidth.harmless(name))", hint: "see millrace ai purposes")
        }
        let purpose = try JSONValue.read(found)
        invocation.console.show(purpose) { invocation.console.print(purpose.indented) }
        return .done
    }

    static let aiPurposePut = Command(
        ["ai", "purpose", "put"],
        summary: "Add a purpose for which models are asked, or a new version of one",
        discussion: """
            The file is a JSON object with instructions, prompt, variables and schema, and optionally model, limits and \
            note. Flags take precedence over the file. Without a file the purpose stays as it is, except for what the flags change. \
            Running workers take its questions at once. Questions that were asked keep their version.
            """,
        arguments: [Argument("purpose", help: "its name, such as menu")],
        flags: [
            .single("file", "FILE", .path, environment: .none, help: "The purpose as JSON; - for standard input."),
            .single("instructions", "TEXT", environment: .none, help: "What the model is told first, in one line."),
            .single("prompt", "TEXT", environment: .none, help: "A template with the variables of the input."),
            .single(
                "variables", "JSON", environment: .none,
                help: "The variables of the prompt, such as {\"people\": {\"type\": \"number\"}}."),
            .single("schema", "JSON", environment: .none, help: "The schema of an answer; an object."),
            .single("model", "MODEL", environment: .none, help: "A model, or provider:model; \"\" for the usual one."),
            .single(
                "max-tokens", "N", .integer(16...32_000), environment: .none,
                help: "The maximum number of tokens in an answer."),
            .single(
                "client-tokens", "N", .integer(0...1_000_000_000), environment: .none,
                help: "The maximum number of tokens a person may use for it in a day; 0: only back ends may ask."),
            .single(
                "timeout", "DURATION", .duration(.seconds(1) ... .seconds(3600)), environment: .none,
                help: "How long an answer may take."),
            .single("note", "TEXT", environment: .none, help: "Why it changes."),
        ],
        examples: [
            Example("millrace ai purpose put menu --file menu.json", "prints the version"),
            Example("millrace ai purpose put menu --client-tokens 20000", "for each person in a day"),
            Example(
                "millrace ai purpose put sentiment --model anthropic:claude-haiku-4-5",
                "another model, everything else unchanged"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("purpose") ?? ""
        let file = try parsed.string("file").map { try invocation.purposeFile($0) }
        let (before, version) = try await invocation.withSchema { connection in
            let known = try await AIAdmin.purpose(name, on: connection).map { try JSONValue.read($0) }
            let draft = PurposeDraft(from: file ?? known ?? .object([]))
            let purpose = try draft.changed(by: parsed).checked()
            return (known, try await AIAdmin.put(name, purpose, on: connection))
        }
        let isNew = before?["purpose_version"]?.integer != version
        invocation.console.show([
            "name": .string(name), "purpose_version": .int(version), "changed": .bool(isNew),
        ]) {
            invocation.console.print(
                "the purpose \(DisplayWidth.harmless(name)) \(isNew ? "has now" : "already had") version \(version)")
        }
        return .done
    }
}

extension Invocation {
    fileprivate func purposeFile(_ path: String) throws -> JSONValue {
        let bytes = try json(at: path == "-" ? "-" : "@\(path)", named: "the purpose", most: 1 << 20)
        let value = try JSONValue.read(bytes)
        guard case .object(let members) = value else {
            throw Failure(.misused, "the purpose: expected an object, found \(value.word)")
        }
        if let strange = members.first(where: { !PurposeDraft.known.contains($0.key) })?.key {
            throw Failure(
                .misused, "the purpose has an unknown key \(Secrets.quoted(strange))",
                hint: "known are \(PurposeDraft.keys.joined(separator: ", "))")
        }
        return value
    }
}

/// A purpose that may lack something yet.
struct PurposeDraft {
    static let keys = ["instructions", "prompt", "variables", "schema", "model", "limits", "note"]
    /// With what show adds, which is passed over.
    static let known = Set(keys + ["name", "purpose_version", "version", "built_in", "put_by", "put_at"])

    private var members: [String: JSONValue] = [:]

    init(from value: JSONValue) {
        for key in Self.keys { if let member = value[key], member != .null { members[key] = member } }
    }

    func changed(by parsed: Parsed) throws(Failure) -> PurposeDraft {
        var draft = self
        for key in ["instructions", "prompt", "note"] {
            if let text = parsed.string(key) { draft.members[key] = .string(text) }
        }
        if let model = parsed.string("model") { draft.members["model"] = model.isEmpty ? nil : .string(model) }
        for key in ["variables", "schema"] {
            guard let text = parsed.string(key) else { continue }
            do throws(JSONProblem) {
                draft.members[key] = try JSONValue.read(text)
            } catch {
                throw Failure(
                    .misused, "--\(key): malformed JSON, \(error.sentence)", hint: "put JSON in single quotes")
            }
        }
        var limits: [JSONValue.Member] = []
        if case .object(let given)? = draft.members["limits"] { limits = given }
        let changes = [
            ("max_tokens", parsed.integer("max-tokens")),
            ("client_tokens", parsed.integer("client-tokens")),
            ("timeout_seconds", parsed.duration("timeout").map { Int($0.components.seconds) }),
        ]
        for case (let key, let number?) in changes {
            limits = limits.filter { $0.key != key } + [.init(key: key, value: .int(number))]
        }
        if changes.contains(where: { $0.1 != nil }) { draft.members["limits"] = .object(limits) }
        return draft
    }

    /// The database checks the rest: names, schema, limits, the template.
    func checked() throws(Failure) -> AIAdmin.NewPurpose {
        let missing = ["instructions", "prompt", "schema"].filter { members[$0] == nil }
        if let first = missing.first {
            throw Failure(
                .misused, "the purpose lacks \(missing.joined(separator: ", "))",
                hint: "give --\(first), or a file with it")
        }
        func text(_ key: String) throws(Failure) -> String? {
            guard let value = members[key] else { return nil }
            guard case .string(let text) = value else {
                throw Failure(.misused, "the purpose's \(key): expected a text, found \(value.word)")
            }
            return text
        }
        func object(_ key: String) throws(Failure) -> String {
            let value = members[key] ?? .object([])
            guard case .object = value else {
                throw Failure(.misused, "the purpose's \(key): expected an object, found \(value.word)")
            }
            return value.compact
        }
        return AIAdmin.NewPurpose(
            instructions: try text("instructions") ?? "", prompt: try text("prompt") ?? "",
            variables: try object("variables"), schema: try object("schema"), model: try text("model"),
            limits: try object("limits"), note: try text("note"))
    }
}
