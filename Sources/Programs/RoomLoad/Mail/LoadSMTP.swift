package import CommandKit
import Glibc
import LoadKit
import Mail
import Subprocesses
import Threads
import Transfers

extension Command {
    package static let loadSMTP = scenario(
        "smtp",
        summary: "Measure the mail room's way to an SMTP server",
        discussion: """
            Sends messages to an SMTP server on this machine, over a given number of connections, through the \
            adapter that is used for all SMTP. It uses no database and no templates. deploy/bench/smtp starts \
            postfix's smtp-sink as the server, and names smtp-source, which takes turns with this command.
            """,
        flags: [
            .single("host", "HOST", .text, environment: .none, fallback: "127.0.0.1", help: "The server."),
            .single("port", "PORT", .integer(1...65_535), environment: .none, fallback: "2525", help: "Its port."),
            .single(
                "source", "PROGRAM", .path, environment: .none,
                help: "The path of postfix's smtp-source, for comparison."),
        ] + ProviderLoad.flags,
        examples: [
            Example("millrace load smtp --port 2525 --sessions 8", "5,000 messages, three times"),
            Example(
                "millrace load smtp --sessions 100 --messages 100 --attachment 26214400",
                "A hundred attachments of 25 MiB at once"),
        ],
        settings: .unused
    ) { invocation in
        let load = ProviderLoad(invocation)
        var configuration = MailTransport.Configuration(
            host: invocation.parsed.string("host") ?? "127.0.0.1", port: invocation.parsed.integer("port") ?? 2525,
            security: .none)
        configuration.name = "load.millrace.invalid"
        configuration.mostConnections = load.sessions
        configuration.limits.total = .seconds(300)
        let transport: MailTransport
        do throws(TransferError) {
            transport = try MailTransport(configuration)
        } catch {
            throw Failure(.misused, error.sentence)
        }
        let relay = SMTPProvider(transport, blobs: ProviderLoad.blobs)
        guard let source = invocation.parsed.string("source") else { return try await load.run(relay) }
        return try await load.run(relay, beside: ("smtp-source", 0.5)) { [configuration] in
            try await send(with: source, to: configuration, load)
        }
    }

    /// Messages a second of smtp-source's.
    private static func send(
        with program: String, to configuration: MailTransport.Configuration, _ load: ProviderLoad
    ) async throws -> Double {
        let arguments = [
            "-d", "-4", "-s", "\(load.sessions)", "-m", "\(load.messages)", "-l", "\(load.bytes)", "-f",
            "load@millrace.invalid", "-t", "sink@millrace.invalid", "\(configuration.host):\(configuration.port)",
        ]
        let began = ContinuousClock.now
        let status = await Thread.run(name: "smtp-source") { () -> Int32 in
            var child = Subprocess(program, arguments)
            child.hasOwnGroup = false
            return (try? child.start()).flatMap(Subprocess.wait) ?? -1
        }
        guard status == 0 else { throw Failure("\(program) did not run to its end") }
        return Double(load.messages) / ((ContinuousClock.now - began) / .seconds(1))
    }
}

extension Command {
    package static let loadResend = scenario(
        "resend",
        summary: "Measure the mail room's way to Resend, against a fake of it",
        discussion: """
            Like load smtp, but through the adapter for Resend, one message in each request. Never give it the \
            address of the real Resend, which would send the messages. Build a fake with `swift build --product \
            FakeResendServer`; it prints its port.
            """,
        flags: [
            .single(
                "port", "PORT", .integer(1...65_535), environment: .none, fallback: "8480",
                help: "The port of the fake, on this machine.")
        ] + ProviderLoad.flags,
        examples: [Example("millrace load resend --port 8480 --sessions 64", "5,000 messages, three times")],
        settings: .unused
    ) { invocation in
        var configuration = ResendProvider.Configuration(key: "re_test")
        configuration.base = "http://127.0.0.1:\(invocation.parsed.integer("port") ?? 8480)"
        configuration.timeout = .seconds(300)
        let client = HTTPClient()
        defer { client.close() }
        return try await ProviderLoad(invocation).run(
            ResendProvider(configuration, client: client, blobs: ProviderLoad.blobs))
    }
}
