import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    private static let family = Argument("family", help: "the family")

    static let familiesInvite = Command(
        ["families", "invite"],
        summary: "Invite a person into a family, or to another role in it",
        discussion: """
            The person joins by accepting it (family_join) within 14 days. --withdraw takes an invitation back. \
            Nothing is sent: the app shows family_invitations.
            """,
        arguments: [
            family, Argument("person", help: "who is invited"),
            Argument("role", .optional, .choice(["teen", "parent"]), help: "the role; not with --withdraw"),
        ],
        flags: [.toggle("withdraw", environment: .none, help: "Withdraw the invitation.")],
        examples: [Example("millrace families invite smith ben teen", "open for 14 days")]
    ) { invocation in
        let parsed = invocation.parsed
        let (name, person) = (parsed.string("family") ?? "", parsed.string("person") ?? "")
        if parsed.isOn("withdraw") {
            let gone = try await invocation.withSchema { connection in
                try await QuestAdmin.uninvite(name, person: person, on: connection)
            }
            invocation.console.show(["family": .string(name), "person": .string(person), "withdrawn": .bool(gone)]) {
                invocation.console.print(gone ? "\(person) is no longer invited" : "\(person) was not invited")
            }
            return .done
        }
        guard let role = parsed.string("role") else { throw Failure(.misused, "say in which role: teen or parent") }
        let until = try await invocation.withSchema { connection in
            try await QuestAdmin.invite(name, person: person, role: role, on: connection)
        }
        invocation.console.show([
            "family": .string(name), "person": .string(person), "role": .string(role),
            "expires_at": until.map { .string(InstantText.spell($0)) } ?? .null,
        ]) {
            invocation.console.print(
                until.map { "\(person) is invited until \(InstantText.spell($0))" }
                    ?? "\(person) is a \(role) of \(name) already")
        }
        return .done
    }

    static let familiesInvitations = Command(
        ["families", "invitations"],
        summary: "List a family's invitations, or a person's",
        flags: [
            .single("family", "FAMILY", environment: .none, help: "Into this family."),
            .single("person", "PERSON", environment: .none, help: "Of this person."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
        ],
        examples: [Example("millrace families invitations --family smith", "open, and declined")]
    ) { invocation in
        let parsed = invocation.parsed
        let (name, person) = (parsed.string("family"), parsed.string("person"))
        guard name != nil || person != nil else { throw Failure(.misused, "give --family or --person") }
        let rows = try await invocation.withSchema { connection in
            try await QuestAdmin.invitations(
                family: name, person: person, page: parsed.integer("limit") ?? 50, on: connection)
        }.map { try JSONValue.read($0) }
        var table = Table(
            [
                .init("family", shrinks: true), .init("person", shrinks: true), .init("role"),
                .init("invited by", shrinks: true), .init("expires"), .init("declined"),
            ], whenEmpty: "nobody is invited")
        for row in rows {
            table.add(
                ["family", "person", "role", "invited_by", "expires_at", "declined_at"].map {
                    .init(row[$0]?.text ?? "")
                })
        }
        invocation.console.list("invitations", rows, table: table)
        return .done
    }

    static let familiesLeave = Command(
        ["families", "leave"],
        summary: "Take a person out of a family",
        discussion: "Nothing is deleted: points, moods and streaks stay the person's.",
        arguments: [family, Argument("person", help: "who leaves")],
        examples: [Example("millrace families leave smith ben", "a back end may, and so may ben himself")]
    ) { invocation in
        let (name, person) = (invocation.parsed.string("family") ?? "", invocation.parsed.string("person") ?? "")
        let left = try await invocation.withSchema { connection in
            try await QuestAdmin.leave(name, person: person, on: connection)
        }
        invocation.console.show(["family": .string(name), "person": .string(person), "left": .bool(left)]) {
            invocation.console.print("\(person) \(left ? "has left" : "was not in") \(name)")
        }
        return .done
    }
}
