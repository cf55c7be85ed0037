import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    private static let person = Argument("person", help: "the person who is watched")
    private static let alarm = Argument(
        "alarm", .one, .custom(expects: "an alarm's id", complaint: uuidComplaint),
        help: "its id, as millrace checkins alarms shows it")

    private static let uuidComplaint: @Sendable (String) -> String? = { text in
        UUID(uuidString: text) == nil ? "takes an alarm's id, as millrace checkins alarms shows it" : nil
    }

    static let checkinsContacts = Command(
        ["checkins", "contacts"],
        summary: "Show who is told of a person's alarms, and change it",
        discussion: """
            An address counts once its owner has agreed, by the link that --add sends there. --confirm is for an operator \
            who learned of the agreement in another way; it is recorded as such. An address is asked at most five times, at most once \
            a day, and within the daily limits of the asker and of the address; after that it is held, and --ask asks again later.
            """,
        arguments: [person],
        flags: [
            .single(
                "add", "CONTACT", environment: .none,
                help: "Name a contact, or change one: the channels given replace its own."),
            .single(
                "step", "N", .integer(1...20), environment: .none, fallback: "1",
                help: "With --add: the step of the contact."),
            .single("mail", "ADDRESS", environment: .none, help: "With --add: told by mail."),
            .single("sms", "NUMBER", environment: .none, help: "With --add: told by SMS, as +4915112345678."),
            .single("voice", "NUMBER", environment: .none, help: "With --add: called by telephone."),
            .toggle("push", environment: .none, help: "With --add: told on the contact's own devices."),
            .single(
                "wait", "DURATION", .duration(.seconds(1) ... .seconds(86_400)), environment: .none, fallback: "5m",
                help: "With --add: how long to wait for the contact's answer."),
            .single("remove", "CONTACT", environment: .none, help: "Remove this contact."),
            .single(
                "confirm", "CONTACT", environment: .none, help: "The contact has agreed, and its addresses are right."),
            .single("ask", "CONTACT", environment: .none, help: "Ask again at addresses without an answer."),
        ],
        examples: [
            Example("millrace checkins contacts anna", "in their order"),
            Example(
                "millrace checkins contacts anna --add mum --mail mum@example.com --sms +4915112345678", "asks her"),
            Example("millrace checkins contacts anna --confirm mum", "she said yes on the telephone"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let name = parsed.string("person") ?? ""
        let verbs = ["add", "remove", "confirm", "ask"].filter { parsed.string($0) != nil }
        guard verbs.count <= 1 else { throw Failure(.misused, "give one of --add, --remove, --confirm and --ask") }
        let rows = try await invocation.withSchema { connection in
            if let contact = parsed.string("add") {
                _ = try await CheckInAdmin.call(
                    """
                    select millrace.check_in_contact($1, $2, $3, jsonb_strip_nulls(jsonb_build_object('mail', $4::text, 'sms', $5::text,
                           'voice', $6::text, 'push', $7::bool)), $8 * interval '1 millisecond', actor => $1)::text
                    """,
                    [
                        .text(name), .text(contact), .int4(Int32(clamping: parsed.integer("step") ?? 1)),
                        .text(parsed.string("mail")), .text(parsed.string("sms")), .text(parsed.string("voice")),
                        .bool(parsed.isOn("push") ? true : nil), .int8(parsed.duration("wait")?.wholeMilliseconds),
                    ], on: connection)
            } else if let contact = parsed.string("remove") {
                _ = try await CheckInAdmin.call(
                    "select millrace.check_in_contact_remove($1, $2, actor => $1)::text",
                    [.text(name), .text(contact)],
                    on: connection)
            } else if let contact = parsed.string("confirm") {
                _ = try await CheckInAdmin.call(
                    "select millrace.check_in_confirm($1, $2)::text", [.text(name), .text(contact)], on: connection)
            } else if let contact = parsed.string("ask") {
                _ = try await CheckInAdmin.call(
                    "select millrace.check_in_consent_ask($1, $2, actor => $1)::text", [.text(name), .text(contact)],
                    on: connection)
            }
            return try await CheckInAdmin.contacts(of: name, on: connection)
        }.map { try JSONValue.read($0) }
        invocation.console.list("contacts", rows, table: CheckInTables.contacts(rows))
        return .done
    }

    static let checkinsAlarms = Command(
        ["checkins", "alarms"],
        summary: "List alarms, the newest first",
        flags: [
            .single("person", "PERSON", environment: .none, help: "Only this person's."),
            .toggle("all", environment: .none, help: "Show alarms that are over, too."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
        ],
        examples: [Example("millrace checkins alarms", "those that nobody has ended")]
    ) { invocation in
        let parsed = invocation.parsed
        let rows = try await invocation.withSchema { connection in
            try await CheckInAdmin.alarms(
                person: parsed.string("person"), all: parsed.isOn("all"), page: parsed.integer("limit") ?? 50,
                on: connection)
        }.map { try JSONValue.read($0) }
        invocation.console.list("alarms", rows, table: CheckInTables.alarms(rows))
        return .done
    }

    static let checkinsAlarm = Command(
        ["checkins", "alarm"],
        summary: "Call for help in a person's name, now",
        discussion: """
            The contacts are told at once, with or without a watch. An open alarm becomes an alarm for help. Prints \
            who is told; exit 10 when nobody can be told, and even then the alarm is open.
            """,
        arguments: [person],
        flags: [
            .single("note", "TEXT", environment: .none, help: "What the contacts read."), .place, .accuracy,
        ],
        examples: [
            Example("millrace checkins alarm anna --note 'at the lake'", "she asked for it on the telephone"),
            Example("millrace checkins alarm anna --place 48.137,11.575 --accuracy 20", "and said where she is"),
        ]
    ) { invocation in
        let name = invocation.parsed.string("person") ?? ""
        let note = invocation.parsed.string("note")
        let place = try invocation.parsed.place()
        let answer = try await invocation.withSchema {
            try await CheckInAdmin.help(name, note: note, place: place, on: $0)
        }
        let alarm = try answer.map { try JSONValue.read($0) } ?? .null
        invocation.console.show(alarm) {
            invocation.console.print("the alarm is \(alarm["state"]?.text ?? "?"): \(alarm["alarm"]?.text ?? "?")")
            invocation.tellReach(of: alarm)
        }
        return alarm["reaches_nobody"] == .bool(true) ? .degraded : .done
    }

    static let checkinsAcknowledge = Command(
        ["checkins", "acknowledge"],
        summary: "Answer an alarm for a contact",
        arguments: [alarm],
        flags: [
            .single("by", "CONTACT", environment: .none, help: "Who answers; needed."),
            .single(
                "answer", "ANSWER", .choice(["acknowledged", "on_my_way", "cannot", "safe"]), environment: .none,
                fallback: "acknowledged", help: "The answer: safe ends the alarm, cannot goes on to the next contact."),
        ],
        examples: [
            Example("millrace checkins acknowledge <id> --by mum --answer on_my_way", "she said so on the telephone")
        ]
    ) { invocation in
        let parsed = invocation.parsed
        guard let contact = parsed.string("by") else { throw Failure(.misused, "say who answers, with --by") }
        let id = parsed.string("alarm") ?? ""
        let state = try await invocation.withSchema { connection in
            try await CheckInAdmin.respond(
                id, contact: contact, answer: parsed.string("answer") ?? "acknowledged", on: connection)
        }
        invocation.console.show(["alarm": .string(id), "state": JSONValue(state)]) {
            invocation.console.print("the alarm is \(state ?? "?")")
        }
        return .done
    }

    static let checkinsResolve = Command(
        ["checkins", "resolve"],
        summary: "End an alarm, and tell everybody who was told of it",
        arguments: [alarm],
        flags: [.single("reason", "TEXT", environment: .none, help: "The reason; the contacts read it.")],
        examples: [Example("millrace checkins resolve <id> --reason 'she is in hospital, and well'", "by an operator")]
    ) { invocation in
        let id = invocation.parsed.string("alarm") ?? ""
        let reason = invocation.parsed.string("reason")
        let ended = try await invocation.withSchema { connection in
            try await CheckInAdmin.call(
                "select millrace.check_in_resolve($1::text::uuid, $2)::text", [.text(id), .text(reason)], on: connection
            )
        }
        invocation.console.show(["alarm": .string(id), "resolved": .bool(ended == "true")]) {
            invocation.console.print(ended == "true" ? "the alarm is over" : "the alarm was over already")
        }
        return .done
    }

    static let checkinsHistory = Command(
        ["checkins", "history"],
        summary: "Show what happened in a person's alarms, or in one",
        arguments: [Argument("of", help: "a person, or an alarm's id")],
        flags: [
            .single(
                "limit", "N", .integer(1...5000), environment: .none, fallback: "500",
                help: "Show at most this many lines.")
        ],
        examples: [Example("millrace checkins history anna", "who was told when, by what, and what they said")]
    ) { invocation in
        let parsed = invocation.parsed
        let rows = try await invocation.withSchema { connection in
            try await CheckInAdmin.history(
                of: parsed.string("of") ?? "", page: parsed.integer("limit") ?? 500, on: connection)
        }.map { try JSONValue.read($0) }
        invocation.console.list("history", rows, table: CheckInTables.history(rows))
        return .done
    }

    static let checkinsDrill = Command(
        ["checkins", "drill"],
        summary: "Rehearse an alarm with all contacts of a person, marked as a test",
        arguments: [person],
        examples: [Example("millrace checkins drill anna", "every message begins with TEST; an answer ends it")]
    ) { invocation in
        let name = invocation.parsed.string("person") ?? ""
        let id = try await invocation.withSchema { connection in
            try await CheckInAdmin.call(
                "select millrace.check_in_drill($1, actor => $1)::text", [.text(name)], on: connection)
        }
        invocation.console.show(["person": .string(name), "alarm": JSONValue(id)]) {
            invocation.console.print("a test runs: millrace checkins history \(id ?? "?")")
        }
        return .done
    }
}

enum CheckInTables {
    private static func text(_ row: JSONValue, _ key: String) -> Table.Cell {
        guard let value = row[key] else { return "" }
        switch value {
        case .string(let text): return .init(text)
        case .null: return ""
        default: return .init(value.compact)
        }
    }

    private static func state(_ row: JSONValue) -> Table.Cell {
        let state = row["state"]?.text ?? ""
        let style: Style =
            switch state {
            case "expired", "open", "unreachable": .red
            case "warned", "acknowledged": .yellow
            default: .plain
            }
        return .init(state, style)
    }

    static func watches(_ rows: [JSONValue]) -> Table {
        var table = Table(
            [
                .init("person", shrinks: true), .init("state"), .init("expires"), .init("interval"),
                .init("last check-in"),
                .init("zone"), .init("problem", shrinks: true),
            ], whenEmpty: "nobody is watched over")
        for row in rows {
            table.add([
                text(row, "person"), state(row), text(row, "check_in_expiration"), text(row, "check_in_interval"),
                text(row, "last_checked_in"), text(row, "zone"), text(row, "problem"),
            ])
        }
        return table
    }

    static func contacts(_ rows: [JSONValue]) -> Table {
        var table = Table(
            [
                .init("step", .trailing), .init("contact", shrinks: true), .init("channel"),
                .init("address", shrinks: true), .init("consent"), .init("held until"),
            ],
            whenEmpty: "there is no contact")
        for row in rows {
            for channel in row["channels"]?.items ?? [] {
                let consent = channel["consent"]?.text ?? ""
                table.add([
                    text(row, "step"), text(row, "contact"), text(channel, "channel"), text(channel, "address"),
                    .init(consent, consent == "given" ? .green : .yellow), text(channel, "held_until"),
                ])
            }
        }
        return table
    }

    static func alarms(_ rows: [JSONValue]) -> Table {
        var table = Table(
            [
                .init("id", importance: .key), .init("person", shrinks: true, importance: .high),
                .init("cause", importance: .high), .init("state", importance: .high),
                .init("step", .trailing), .init("expired"), .init("late by", importance: .low),
                .init("first accepted", importance: .low),
                .init("acknowledged by", shrinks: true),
            ], whenEmpty: "there is no open alarm")
        for row in rows {
            table.add([
                text(row, "id"), text(row, "person"), text(row, "cause"), state(row), text(row, "step"),
                text(row, "expired_at"), text(row, "late_by"), text(row, "first_accepted_at"),
                text(row, "acknowledged_by"),
            ])
        }
        return table
    }

    static func history(_ rows: [JSONValue]) -> Table {
        var table = Table(
            [
                .init("at"), .init("what"), .init("contact", shrinks: true), .init("channel"), .init("step", .trailing),
                .init("round", .trailing), .init("notice"), .init("by", shrinks: true),
            ], whenEmpty: "nothing has happened")
        for row in rows {
            table.add([
                text(row, "at"), text(row, "what"), text(row, "contact"), text(row, "channel"), text(row, "step"),
                text(row, "round"), text(row, "notice_status"), text(row, "by"),
            ])
        }
        return table
    }
}
