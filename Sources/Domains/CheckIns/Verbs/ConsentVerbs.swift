import CommandKit
import Postgres

extension Command {
    static let checkinsBlock = Command(
        ["checkins", "block"],
        summary: "Forbid further consent requests to an address, or allow them again",
        discussion: """
            Does the same as the third answer behind the link in a request: nobody can name this address as a contact \
            any more, and agreements given there end. It is stored as a keyed hash, without the address \
            itself.
            """,
        arguments: [
            Argument("channel", .one, .choice(["mail", "sms", "voice", "push"]), help: "sms and voice are one number"),
            Argument("address", help: "a mail address, a number such as +4915112345678, or a person for push"),
        ],
        flags: [.toggle("lift", environment: .none, help: "Allow requests to the address again.")],
        examples: [
            Example("millrace checkins block sms +4915112345678", "they called, and want no more questions"),
            Example("millrace checkins block mail mum@example.com --lift", "it was a mistake"),
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
            case (false, false): invocation.console.print("it was already blocked")
            case (true, true): invocation.console.print("it may be asked again")
            case (true, false): invocation.console.print("it was not blocked")
            }
        }
        return .done
    }
}
