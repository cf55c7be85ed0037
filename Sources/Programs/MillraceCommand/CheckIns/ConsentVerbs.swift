import CheckIns
import Postgres

extension Command {
    static let checkinsBlock = Command(
        ["checkins", "block"],
        summary: "Say for an address that nobody may ask it again, or lift that",
        discussion: """
            As the link in a question does with its third answer: for every person who might name the address as a contact, and \
            what had been agreed there is over. Kept as a keyed hash; the address itself is not stored.
            """,
        arguments: [
            Argument("channel", .one, .choice(["mail", "sms", "voice", "push"]), help: "sms and voice are one number"),
            Argument("address", help: "a mail address, a number such as +4915112345678, or a person for push"),
        ],
        flags: [.toggle("lift", environment: .none, help: "The address may be asked again.")],
        examples: [
            Example("millrace checkins block sms +4915112345678", "they called, and want no more questions"),
            Example("millrace checkins block mail mum@example.com --lift", "it was a slip"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let (channel, address) = (parsed.string("channel") ?? "", parsed.string("address") ?? "")
        let lifting = parsed.isOn("lift")
        let changed = try await invocation.withSchema { connection in
            try await CheckInAdmin.block(channel, address: address, lifting: lifting, on: connection)
        }
        invocation.console.show(["channel": .string(channel), "blocked": .bool(!lifting), "changed": .bool(changed)]) {
            switch (lifting, changed) {
            case (false, true): invocation.console.print("nobody asks there any more")
            case (false, false): invocation.console.print("nobody was allowed to ask there already")
            case (true, true): invocation.console.print("it may be asked again")
            case (true, false): invocation.console.print("it was not blocked")
            }
        }
        return .done
    }
}
