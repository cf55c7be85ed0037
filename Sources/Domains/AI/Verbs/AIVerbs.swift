import CommandKit
import Postgres

extension Command {
    static let aiList = Command(
        ["ai", "list"],
        summary: "List questions to models, newest first",
        discussion: "Shows neither what was asked nor what was answered; ai show does.",
        flags: [
            .single("purpose", "NAME", environment: .none, help: "Only of this purpose."),
            .single(
                "status", "STATUS", .choice(["waiting", "asking", "answered", "refused", "failed", "cancelled"]),
                environment: .none, help: "Only with this status."),
            .single("tenant", "TENANT", environment: .none, help: "Only of this tenant."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
            .single("after", "SEQ", .integer(1...Int.max), environment: .none, help: "Only older ones than this."),
        ],
        examples: [Example("millrace ai list --status failed", "what failed, and why")]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let questions = try await invocation.withSchema { connection in
            try await AIAdmin.list(
                purpose: parsed.string("purpose"), status: parsed.string("status"), tenant: parsed.string("tenant"),
                after: parsed.integer("after"), page: limit, on: connection)
        }
        invocation.console.list("questions", questions.map(\.json), table: AIAdmin.Question.table(questions))
        if questions.count == limit, invocation.console.format == .human, let last = questions.last {
            invocation.console.note("more may follow: --after \(last.seq)")
        }
        return .done
    }

    static let aiShow = Command(
        ["ai", "show"],
        summary: "Show a question with its answer and its calls",
        arguments: [Argument("id", help: "the question")],
        examples: [
            Example("millrace ai show 6f0f3c1e-2b7a-4c1f-9a53-0f2f7b1f3d11", "what was sent, what came, what it cost")
        ]
    ) { invocation in
        let id = invocation.parsed.string("id") ?? ""
        guard let text = try await invocation.withSchema({ try await AIAdmin.show(id, on: $0) }),
            let question = try? JSONValue.read(text)
        else {
            throw Failure(
                .notFound, "there is no question \(DisplayWidth.harmless(id))", hint: "see millrace ai list")
        }
        invocation.console.show(question) {
            invocation.console.print(question.indented)
        }
        return .done
    }

    static let aiAsk = Command(
        ["ai", "ask"],
        summary: "Ask a model for a purpose",
        discussion: "Prints the question's id. A worker asks; an identical question is answered from the store.",
        arguments: [
            Argument("purpose", help: "the purpose; see millrace ai purposes"),
            Argument("input", help: "the variables of its prompt, as a JSON object"),
        ],
        flags: [
            .single("tenant", "TENANT", environment: .none, help: "For this tenant."),
            .single("person", "PERSON", environment: .none, help: "On behalf of this person."),
            .single("locale", "LOCALE", environment: .none, help: "The language of the answer, such as de."),
            .toggle("fresh", environment: .none, help: "Ask even if the answer is already stored."),
            .toggle("may-wait", environment: .none, help: "Ask in a batch, within a day and for half the price."),
        ],
        examples: [
            Example("millrace ai ask sentiment '{\"text\": \"I am fine.\"}' --tenant shop", "the question's id")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let input = parsed.string("input") ?? "{}"
        guard case .object? = try? JSONValue.read(input) else {
            throw Failure(.misused, "the input is not a JSON object", hint: "put JSON in single quotes")
        }
        var options: [JSONValue.Member] = []
        if let locale = parsed.string("locale") { options.append(.init(key: "locale", value: .string(locale))) }
        if parsed.isOn("fresh") { options.append(.init(key: "fresh", value: true)) }
        if parsed.isOn("may-wait") { options.append(.init(key: "may_wait", value: true)) }
        let chosen = JSONValue.object(options).compact
        let id = try await invocation.withSchema { connection in
            try await AIAdmin.ask(
                parsed.string("purpose") ?? "", input: input, tenant: parsed.string("tenant"),
                actor: parsed.string("person"), options: chosen, on: connection)
        }
        invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
        return .done
    }

    static let aiPurposes = Command(
        ["ai", "purposes"],
        summary: "List the purposes for which models are asked",
        examples: [Example("millrace ai purposes", "their versions, models and limits")]
    ) { invocation in
        let purposes = try await invocation.withSchema { try await AIAdmin.purposes(on: $0) }
        var table = Table([
            .init("purpose"), .init("version", .trailing), .init("model"), .init("tokens", .trailing),
            .init("a person's day", .trailing),
            .init("requires", shrinks: true),
        ])
        for purpose in purposes {
            table.add([
                .init(purpose.name), .init(purpose.builtIn ? "built in" : "\(purpose.version)"),
                .init(purpose.model ?? ""), "\(purpose.maxTokens)", .init(purpose.clientTokens.map { "\($0)" } ?? "-"),
                .init(purpose.required.joined(separator: ", ")),
            ])
        }
        invocation.console.list(
            "purposes",
            purposes.map {
                [
                    "name": .string($0.name), "version": .int($0.version), "built_in": .bool($0.builtIn),
                    "model": JSONValue($0.model), "max_tokens": .int($0.maxTokens), "required": JSONValue($0.required),
                    "client_tokens": JSONValue($0.clientTokens),
                ]
            }, table: table)
        return .done
    }

    static let aiSwitch = Command(
        ["ai", "switch"],
        summary: "Switch AI on or off for a tenant or a family",
        discussion: "Nothing is asked for a tenant or a family that is not switched on.",
        arguments: [
            Argument("scope", .one, .choice(["tenant", "family"]), help: "tenant or family"),
            Argument("name", help: "which"), Argument("state", .one, .choice(["on", "off"]), help: "on or off"),
        ],
        examples: [Example("millrace ai switch family smith on", "a parent can do the same in the app")]
    ) { invocation in
        let parsed = invocation.parsed
        let (scope, name) = (parsed.string("scope") ?? "", parsed.string("name") ?? "")
        let isOn = parsed.string("state") == "on"
        let changed = try await invocation.withSchema { connection in
            try await AIAdmin.toggle(scope: scope, name: name, isOn: isOn, on: connection)
        }
        invocation.console.show([
            "scope": .string(scope), "name": .string(name), "on": .bool(isOn), "changed": .bool(changed),
        ]) {
            invocation.console.print(
                "AI is\(changed ? "" : " already") switched \(isOn ? "on" : "off") for the \(scope) \(name)")
        }
        return .done
    }
}

extension AIAdmin.Question {
    var json: JSONValue {
        .object([
            .init(key: "seq", value: .int(seq)), .init(key: "id", value: .string(id)),
            .init(key: "purpose", value: .string(purpose)), .init(key: "purpose_version", value: .int(version)),
            .init(key: "status", value: .string(status)), .init(key: "tenant", value: JSONValue(tenant)),
            .init(key: "actor", value: JSONValue(actor)), .init(key: "job", value: JSONValue(job)),
            .init(key: "provider", value: JSONValue(provider)), .init(key: "model", value: JSONValue(model)),
            .init(key: "from_store", value: .bool(fromStore)), .init(key: "calls", value: .int(calls)),
            .init(key: "tokens_in", value: .int(tokensIn)), .init(key: "tokens_out", value: .int(tokensOut)),
            .init(key: "reason", value: JSONValue(reason)),
            .init(key: "asked_at", value: .string(InstantText.spell(askedAt))),
            .init(key: "ended_at", value: endedAt.map { .string(InstantText.spell($0)) } ?? .null),
        ])
    }

    static func table(_ questions: [AIAdmin.Question]) -> Table {
        var table = Table(
            [
                .init("id"), .init("purpose"), .init("status"), .init("tenant", shrinks: true),
                .init("model", shrinks: true), .init("tokens", .trailing), .init("asked"), .init("reason"),
            ], whenEmpty: "nothing was asked")
        for question in questions {
            table.add([
                .init(question.id), .init(question.purpose), .init(question.status), .init(question.tenant ?? ""),
                .init(question.fromStore ? "from the store" : question.model ?? ""),
                "\(question.tokensIn + question.tokensOut)", .init(InstantText.spell(question.askedAt)),
                .init(question.reason ?? "", .red),
            ])
        }
        return table
    }
}
