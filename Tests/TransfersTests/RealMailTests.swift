import Fakes
import TestSupport
import Testing

@testable import Transfers

/// Against aiosmtpd: STARTTLS and implicit TLS, with a password.
@Suite struct RealMailTests {
    private static let program = """
        import ssl, sys, time
        from aiosmtpd.controller import Controller
        from aiosmtpd.smtp import SMTP, AuthResult
        class Handler:
            async def handle_DATA(self, server, session, envelope):
                with open(sys.argv[4], "ab") as file:
                    file.write(envelope.mail_from.encode() + b" " + ",".join(envelope.rcpt_tos).encode() + b"\\n" + envelope.original_content)
                return "250 2.0.0 kept"
        def authenticate(server, session, envelope, mechanism, data):
            return AuthResult(success=data.login == b"user" and data.password == b"pass word", handled=False)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(sys.argv[2], sys.argv[3])
        implicit = sys.argv[5] == "implicit"
        class Server(Controller):
            def factory(self):
                return SMTP(self.handler, auth_required=True, authenticator=authenticate, auth_require_tls=not implicit,
                            tls_context=None if implicit else context, require_starttls=not implicit)
        Server(Handler(), hostname="127.0.0.1", port=int(sys.argv[1]), ssl_context=context if implicit else None,
               server_hostname="test").start()
        while True: time.sleep(1)
        """

    @Test(arguments: [MailTransport.Security.required, .implicit])
    func `a real server takes a message over TLS with a password, and refuses a wrong one`(
        security: MailTransport.Security
    ) async throws {
        guard let python = Programs.python else { throw Failed(description: "python3 is not installed") }
        let certificates = try await Certificates.make()
        let directory = certificates.directory
        try write(Self.program, to: "\(directory)/server.py")
        let port = try freePort()
        var isImplicit = false
        if case .implicit = security { isImplicit = true }
        let arguments = [
            "\(directory)/server.py", "\(port)", certificates.certificate, certificates.key, "\(directory)/mail",
            isImplicit ? "implicit" : "starttls",
        ]
        try await withProgram(python, arguments, port: port) {
            var configuration = MailTransport.Configuration(host: "127.0.0.1", port: port, security: security)
            configuration.trust = Trust(certificates: certificates.authority)
            configuration.user = "user"
            configuration.password = "pass word"
            let transport = try MailTransport(configuration)
            let envelope = SMTPEnvelope(
                from: "a@sender.example", to: ["b@x.example", "c@x.example"],
                message: Array("Subject: hello\r\n\r\n.dot\r\n".utf8))
            for _ in 0..<2 {
                let result = try await transport.send(envelope)
                #expect(result.accepted == [0, 1])
                #expect(result.reply == MailReply(code: 250, text: "2.0.0 kept"))
            }
            let kept = String(decoding: try bytes(of: "\(directory)/mail"), as: UTF8.self)
            let once = "a@sender.example b@x.example,c@x.example\nSubject: hello\r\n\r\n.dot\r\n"
            #expect(kept == once + once)

            configuration.password = "wrong"
            do {
                _ = try await MailTransport(configuration).send(envelope)
                Issue.record("a wrong password was accepted")
            } catch let failure as MailFailure {
                #expect(failure.transfer.kind == .authentication)
                #expect(!failure.transfer.outcomeIsUnknown)
                #expect(failure.reply?.code == 535)
            }
            configuration.password = "pass word"
            configuration.trust = Trust()
            do {
                _ = try await MailTransport(configuration).send(envelope)
                Issue.record("an unknown certificate was accepted")
            } catch let failure as MailFailure {
                #expect(failure.transfer.kind == .tls)
            }
        }
    }
}
