import CommandKit
import FoundationEssentials
import Postgres

extension Command {
    static let devicesList = Command(
        ["devices", "list"],
        summary: "List the devices that get pushes",
        flags: [
            .single("person", "PERSON", environment: .none, help: "Only this person's."),
            .single(
                "limit", "N", .integer(1...500), environment: .none, fallback: "50", help: "Show at most this many."),
            .single("after", "TOKEN", environment: .none, help: "Only entries after this one."),
        ],
        examples: [Example("millrace devices list --person anna", "by token: platform, app, when it was seen last")]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let devices = try await invocation.withSchema { connection in
            try await NoticeAdmin.devices(
                person: parsed.string("person"), after: parsed.string("after"), page: limit, on: connection)
        }
        var table = Table(
            [
                .init("person", shrinks: true), .init("platform"), .init("app", shrinks: true), .init("seen"),
                .init("token", shrinks: true),
            ], whenEmpty: "there is no device yet")
        for device in devices {
            table.add([
                .init(device.person), .init(device.platform), .init(device.app ?? ""),
                .init(InstantText.spell(device.seenAt)), .init(device.token),
            ])
        }
        invocation.console.list("devices", devices.map(\.json), table: table)
        if devices.count == limit, invocation.console.format == .human, let last = devices.last {
            invocation.console.note("more may follow: --after \(last.token)")
        }
        return .done
    }

    static let devicesRemove = Command(
        ["devices", "remove"],
        summary: "Forget a device",
        arguments: [Argument("token", help: "its token")],
        examples: [Example("millrace devices remove 740f4707bebcf74f9b7c25d4…", "it gets no more pushes")]
    ) { invocation in
        let token = invocation.parsed.string("token") ?? ""
        let removed = try await invocation.withSchema { try await NoticeAdmin.removeDevice(token, on: $0) }
        guard removed else { throw Failure(.notFound, "there is no such device", hint: "see millrace devices list") }
        invocation.console.show(["removed": .bool(true)]) { invocation.console.print("it is forgotten") }
        return .done
    }
}

extension NoticeAdmin.Device {
    var json: JSONValue {
        [
            "token": .string(token), "person": .string(person), "platform": .string(platform), "app": JSONValue(app),
            "seen_at": .string(InstantText.spell(seenAt)),
        ]
    }
}
