import CommandKit
import Postgres

extension Command {
    private static let thread = Argument("thread", .one, .uuid, help: "the thread's id")
    private static let person = CommandFlag.single(
        "as", "PERSON", environment: .none, help: "The person who reads or writes there.")

    static let chatBegin = Command(
        ["chat", "begin"],
        summary: "Begin a thread for a person",
        discussion: """
            With --with the thread is between the person and these members of the family, or one accepted contact; without it, \
            it is for the whole family, including those who join later. Two contacts have one thread, which either of them can begin. Prints the thread's id.
            """,
        flags: [
            person, .repeated("with", "PERSON", environment: .none, help: "Who else is in it."),
            .single("title", "TEXT", environment: .none, help: "What it is called."),
        ],
        examples: [Example("millrace chat begin --as anna --title Holidays", "for anna's whole family")]
    ) { invocation in
        let parsed = invocation.parsed
        let person = try invocation.chatPerson()
        let others = parsed.list("with")
        let id = try await invocation.withSchema { connection in
            try await ChatAdmin.begin(
                as: person, members: others.isEmpty ? nil : others, title: parsed.string("title"), on: connection)
        }
        invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
        return .done
    }

    static let chatSend = Command(
        ["chat", "send"],
        summary: "Send a message for a person",
        discussion: "Repeating an --id with the same text sends nothing again. Prints the message's id.",
        arguments: [thread, Argument("text", help: "what is written")],
        flags: [person, .single("id", "UUID", .uuid, environment: .none, help: "The message's own id.")],
        examples: [
            Example(
                "millrace chat send 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e 'On my way' --as anna", "to all others there")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let person = try invocation.chatPerson()
        let id = try await invocation.withSchema { connection in
            try await ChatAdmin.send(
                parsed.string("text") ?? "", to: parsed.string("thread") ?? "", as: person, id: parsed.string("id"),
                on: connection)
        }
        invocation.console.show(["id": .string(id)]) { invocation.console.print(id) }
        return .done
    }

    static let chatRead = Command(
        ["chat", "read"],
        summary: "Mark a thread as read by a person, up to a message",
        discussion: "A mark never goes back. Prints how many messages are still unread.",
        arguments: [thread, Argument("message", .one, .uuid, help: "the last message that was read")],
        flags: [person],
        examples: [
            Example(
                "millrace chat read 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5f --as anna",
                "up to the second")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let person = try invocation.chatPerson()
        let unread = try await invocation.withSchema { connection in
            try await ChatAdmin.read(
                upTo: parsed.string("message") ?? "", in: parsed.string("thread") ?? "", as: person, on: connection)
        }
        invocation.console.show(["person": .string(person), "unread": .int(unread)]) {
            invocation.console.print("\(Humane.count(unread, "message")) unread")
        }
        return .done
    }

    static let chatDelete = Command(
        ["chat", "delete"],
        summary: "Delete a message of any sender",
        discussion: "Its text and files go, and a row without them stays. The audit records that an operator did it.",
        arguments: [Argument("message", .one, .uuid, help: "the message's id")],
        examples: [Example("millrace chat delete 0198c1f2-7a3e-7000-8000-5a1f2b3c4d5e", "nobody reads it any more")]
    ) { invocation in
        let id = invocation.parsed.string("message") ?? ""
        let changed = try await invocation.withSchema { try await ChatAdmin.remove(id, on: $0) }
        invocation.console.show(["id": .string(id), "changed": .bool(changed)]) {
            invocation.console.print(changed ? "it is deleted" : "it was deleted before")
        }
        return .done
    }

    static let chatRules = Command(
        ["chat", "rules"],
        summary: "Set how much a person may send a day, how long messages are kept, and whether they are judged",
        flags: [
            .single("day", "N", .integer(0...999_999), environment: .none, help: "Messages a person may send a day."),
            .single(
                "keep-days", "N", .integer(0...999_999), environment: .none,
                help: "Messages are deleted when they are this old; 0: never."),
            .single(
                "moderate", "on|off", .choice(["on", "off"]), environment: .none,
                help: "A language model judges each new message of families with AI switched on."),
        ],
        examples: [Example("millrace chat rules --keep-days 365", "older messages are deleted")]
    ) { invocation in
        let parsed = invocation.parsed
        let rules = [
            ("day", parsed.integer("day")), ("keep_days", parsed.integer("keep-days")),
            ("moderate", parsed.string("moderate").map { $0 == "on" ? 1 : 0 }),
        ].compactMap { name, value in value.map { (name, $0) } }
        guard !rules.isEmpty else { throw Failure(.misused, "give --day, --keep-days or --moderate") }
        let given = JSONValue.object(rules.map { .init(key: $0.0, value: .int($0.1)) })
        let changed = try await invocation.withSchema { connection in
            try await ChatAdmin.setRules(Array(given.compact.utf8), on: connection)
        }
        invocation.console.show(["rules": given, "changed": .bool(changed)]) {
            invocation.console.print(changed ? "it is set" : "already set")
        }
        return .done
    }
}
