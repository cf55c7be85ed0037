import Fakes
import Faults
import Foundation
import TestSupport
import Testing
import Transfers

@testable import Mail

/// Against aiosmtpd with scripted replies. Addresses decide: gone@ is refused, later@ is at first, big@ after the data, drop@ loses the
/// connection after the final dot.
@Suite struct SMTPProviderTests {
    private static let program = """
        import asyncio, base64, json, socket, ssl, sys, time
        from aiosmtpd.controller import Controller
        from aiosmtpd.smtp import SMTP, AuthResult
        kept, mode = open(sys.argv[1], "a"), sys.argv[2]
        seen = set()
        class Handler:
            async def handle_RCPT(self, server, session, envelope, address, options):
                if address.startswith("gone@"): return "550 5.1.1 no such user " + address
                if address.startswith("later@") and address not in seen:
                    seen.add(address)
                    return "451 4.3.0 busy"
                if address.startswith("fast@"): return "452 4.5.3 too many"
                envelope.rcpt_tos.append(address)
                return "250 ok"
            async def handle_DATA(self, server, session, envelope):
                if any(a.startswith("big@") for a in envelope.rcpt_tos): return "552 5.3.4 too large"
                kept.write(json.dumps([envelope.mail_from, envelope.rcpt_tos, id(session), base64.b64encode(envelope.original_content).decode()]) + "\\n")
                kept.flush()
                if any(a.startswith("drop@") for a in envelope.rcpt_tos):
                    server.transport.abort()
                return "250 2.0.0 Ok: queued as 4XyZ-1"
        def authenticate(server, session, envelope, mechanism, data):
            return AuthResult(success=data.login == b"user" and data.password == b"word", handled=False)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        context = None
        if mode == "tls":
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(sys.argv[3], sys.argv[4])
        class Server(Controller):
            def factory(self):
                if context is None: return SMTP(self.handler, data_size_limit=60_000_000)
                return SMTP(self.handler, auth_required=True, authenticator=authenticate, tls_context=context, require_starttls=True)
        Server(Handler(), hostname="127.0.0.1", port=port, server_hostname="test").start()
        print(port, flush=True)
        time.sleep(600)
        """

    private struct Kept {
        var from: String
        var to: [String]
        var session: Int
        var content: [UInt8]
    }

    private func withServer<Value>(
        tls: Bool = false, _ body: (MailTransport.Configuration, () throws -> [Kept]) async throws -> Value
    ) async throws -> Value {
        let directory = FileManager.default.temporaryDirectory.appending(path: "millrace-relay-\(UUID().uuidString)")
            .path
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        try Self.program.write(toFile: "\(directory)/server.py", atomically: true, encoding: .utf8)
        if tls {
            try await Program.check(
                "openssl",
                [
                    "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", "key",
                    "-out", "certificate", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days",
                    "2",
                ], in: directory)
        }
        let said = Pipe()
        let process = try run(
            "/usr/bin/python3",
            [
                "\(directory)/server.py", "\(directory)/kept", tls ? "tls" : "plain", "\(directory)/certificate",
                "\(directory)/key",
            ],
            output: said)
        defer { kill(process.processIdentifier, SIGKILL) }
        let line = String(decoding: said.fileHandleForReading.availableData, as: UTF8.self)
        let port = try #require(Int(line.split(separator: "\n").first ?? ""))
        var configuration = MailTransport.Configuration(
            host: "127.0.0.1", port: port, security: tls ? .required : .none)
        configuration.name = "worker.example"
        configuration.idleLife = .seconds(600)
        configuration.limits.total = .seconds(120)
        if tls { configuration.trust = Trust(certificates: "\(directory)/certificate") }
        return try await body(configuration) {
            try String(contentsOfFile: "\(directory)/kept", encoding: .utf8).split(separator: "\n").map { line in
                let list = try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [Any])
                return Kept(
                    from: list[0] as? String ?? "", to: list[1] as? [String] ?? [], session: list[2] as? Int ?? 0,
                    content: Array(Data(base64Encoded: list[3] as? String ?? "") ?? Data()))
            }
        }
    }

    private func run(_ program: String, _ arguments: [String], output: Pipe) throws -> Process {
        let process = Process()
        process.executableURL = URL(filePath: program)
        process.arguments = arguments
        process.standardOutput = output
        try process.run()
        return process
    }

    private func letter(_ locals: String...) -> Letter {
        .sample { $0.to = locals.map { Mailbox(address: "\($0)@reader.example") } }
    }

    @Test func `letters arrive as they were written, over one connection`() async throws {
        try await withServer { configuration, kept in
            let relay = SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source)
            let letter = Letter.sample {
                $0.cc = [Mailbox(address: "cc@reader.example")]
                $0.bcc = [Mailbox(address: "bcc@reader.example"), $0.to[0]]
                $0.text = ".\n.dot\nFrom here\n"
            }
            for _ in 0..<3 { #expect(try await handOver(relay, [letter]) == [.accepted(id: "4XyZ-1")]) }
            let all = try kept()
            #expect(all.count == 3 && Set(all.map(\.session)).count == 1)
            #expect(all[0].from == "mill@sender.example")
            #expect(all[0].to == ["ada@reader.example", "cc@reader.example", "bcc@reader.example"])
            #expect(all[0].content == Message.wire(letter).whole)
            #expect(!String(decoding: all[0].content, as: UTF8.self).contains("bcc@"))
        }
    }

    @Test func `each recipient has its answer, and a letter that anybody got is accepted`() async throws {
        try await withServer { configuration, kept in
            let told = Locked<[SMTPProvider.Answer]>([])
            let relay = SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source) { _, answers in
                told.withLock { $0 += answers }
            }
            let handovers = try await handOver(relay, [letter("gone", "ada", "later")])
            #expect(handovers == [.accepted(id: "4XyZ-1")])
            #expect(try kept().map(\.to) == [["ada@reader.example"]])
            let faults = told.withLock { $0.map(\.fault?.kind) }
            #expect(faults == [.notFound, nil, .transient])
            #expect(told.withLock { $0[0].fault?.code } == "550 5.1.1")
            #expect(!told.withLock { "\($0)" }.contains("no such user"))

            let gone = try await handOver(relay, [letter("gone")])
            #expect(gone[0].verdict == "refused" && gone[0].kind == .notFound && gone[0].kind?.retry == .never)
            let later = try await handOver(relay, [letter("later2", "gone")].map { $0 })
            #expect(later[0].verdict == "accepted")
            let fast = try await handOver(relay, [letter("fast")])
            #expect(fast[0].verdict == "throttled")
            let big = try await handOver(relay, [letter("big")])
            #expect(big[0].verdict == "refused" && big[0].kind == .tooLarge)
        }
    }

    @Test func `what the server does not take for now is taken later`() async throws {
        try await withServer { configuration, kept in
            let relay = SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source)
            let first = try await handOver(relay, [letter("later", "gone")])
            #expect(first[0].verdict == "refused" && first[0].kind == .transient && first[0].kind?.retry == .after)
            let second = try await handOver(relay, [letter("later", "gone")])
            #expect(second[0].verdict == "accepted")
            #expect(try kept().map(\.to) == [["later@reader.example"]])
        }
    }

    @Test func `a connection that is lost after the final dot leaves it unknown`() async throws {
        try await withServer { configuration, kept in
            let relay = SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source)
            let handover = try await handOver(relay, [letter("drop")])[0]
            #expect(handover.verdict == "unknown" && handover.kind?.retry == .sameKey)
            #expect(try kept().count == 1)
            #expect(try await handOver(relay, [letter("ada")])[0].verdict == "accepted")
        }
    }

    @Test func `TLS is required, and a password is given over it only`() async throws {
        try await withServer(tls: true) { configuration, kept in
            var configuration = configuration
            (configuration.user, configuration.password) = ("user", "word")
            let relay = SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source)
            #expect(try await handOver(relay, [letter("ada")])[0].verdict == "accepted")
            configuration.password = "wrong"
            let wrong = try await handOver(
                SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source), [letter("ada")])[0]
            #expect(wrong.verdict == "refused" && wrong.kind == .authentication && wrong.kind?.retry == .elsewhere)
            (configuration.user, configuration.password, configuration.security) = (nil, nil, .none)
            let plain = try await handOver(
                SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source), [letter("ada")])[0]
            #expect(plain.verdict == "refused")
            #expect(try kept().count == 1)
        }
        try await withServer { configuration, kept in
            var configuration = configuration
            configuration.security = .required
            let relay = SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source)
            let handover = try await handOver(relay, [letter("ada")])[0]
            #expect(handover.verdict == "refused" && handover.kind == .unavailable)
            #expect(try kept().isEmpty)
        }
    }

    @Test func `attachments are streamed, and a message that breaks off is never ended`() async throws {
        let content = (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31) }
        let letter = Letter.sample {
            $0.attachments = [
                .init(filename: "a.pdf", contentType: "application/pdf", blob: SampleBlobs.id(1), size: content.count)
            ]
        }
        let (good, short) = (
            SampleBlobs([SampleBlobs.id(1): content]), SampleBlobs([SampleBlobs.id(1): content.dropLast(50)])
        )
        try await withServer { configuration, kept in
            let transport = try MailTransport(configuration)
            for blobs in [good, short, SampleBlobs(), good] {
                let handover = try await handOver(SMTPProvider(transport, blobs: blobs.source), [letter])[0]
                if blobs === good {
                    #expect(handover.verdict == "accepted")
                } else {
                    #expect(handover.verdict == "refused" && handover.kind == .internal)
                }
            }
            let all = try kept()
            let whole = try await Message.wire(letter).gather(from: good.source)
            #expect(all.count == 2 && all.allSatisfy { $0.content == whole })
        }
    }

    @Test func `a server that is not there is the provider's refusal`() async throws {
        let server = try RawServer { _ in }
        server.stop()
        var configuration = MailTransport.Configuration(host: "127.0.0.1", port: server.port)
        configuration.limits.connect = .seconds(2)
        let relay = SMTPProvider(try MailTransport(configuration), blobs: SampleBlobs().source)
        let handover = try await handOver(relay, [.sample()])[0]
        #expect(handover.verdict == "refused" && handover.kind == .unavailable && handover.kind?.retry == .elsewhere)
    }

    @Test(arguments: [
        ("2.0.0 Ok: queued as 4XyZ-1", "4XyZ-1"), ("ok queued as A.b;", "A.b"), ("2.0.0 kept", nil), ("queued as", nil),
        ("queued as \u{1b}[31m", nil),
    ])
    func `the server's own id is found in its words`(text: String, id: String?) {
        #expect(SMTPProvider.queueID(text) == id)
    }
}
