import Fakes
import TestSupport
import Testing

import func TestSupport.eventually

@testable import Transfers

@Suite struct MailTests {
    private static let message = Array("Subject: hello\r\n\r\n.dot\r\nbody\r\n".utf8)

    /// What a scripted server does at each verb: the reply, or nil to drop the connection.
    private struct Script: Sendable {
        var offers = ["SIZE 1000000"]
        var reply: @Sendable (String) -> String? = { line in
            switch line.prefix(4).uppercased() {
            case "DATA": "354 go on"
            case "BODY": "250 2.0.0 queued as 7F3"
            case "QUIT": "221 bye"
            default: "250 ok"
            }
        }
    }

    /// A server that follows a script; BODY stands for what comes after the final dot. Gives what was said to it.
    private func withMail<Value>(
        _ script: Script = Script(), _ body: (RawServer, MailTransport, Locked<[String]>) async throws -> Value
    ) async throws -> Value {
        let heard = Locked<[String]>([])
        let server = try RawServer { connection in
            connection.write("220 test ESMTP\r\n")
            while let line = connection.read(until: "\r\n") {
                let line = String(line.dropLast(1))
                heard.withLock { $0.append(line) }
                if line.hasPrefix("EHLO") {
                    let offers = ["test"] + script.offers
                    for (index, offer) in offers.enumerated() {
                        connection.write("250\(index == offers.count - 1 ? " " : "-")\(offer)\r\n")
                    }
                    continue
                }
                guard let reply = script.reply(line) else { return connection.reset() }
                connection.write(reply + "\r\n")
                guard reply.hasPrefix("354") else { continue }
                guard let data = connection.read(until: "\r\n.\r\n") else { return }
                heard.withLock { $0.append(data) }
                guard let reply = script.reply("BODY") else { return connection.reset() }
                if reply.isEmpty { return connection.waitForEnd() }
                connection.write(reply + "\r\n")
            }
        }
        defer { server.stop() }
        var configuration = MailTransport.Configuration(host: "127.0.0.1", port: server.port, security: .none)
        configuration.name = "worker.example"
        configuration.idleLife = .seconds(600)
        configuration.limits.total = .seconds(120)
        return try await body(server, try MailTransport(configuration), heard)
    }

    private func failed(_ body: () async throws -> MailResult) async throws -> MailFailure? {
        do {
            _ = try await body()
            return nil
        } catch let failure as MailFailure {
            return failure
        }
    }

    @Test func `messages are accepted over one connection, with the server's own words`() async throws {
        try await withMail { server, transport, heard in
            for _ in 0..<3 {
                let result = try await transport.send(
                    SMTPEnvelope(from: "a@sender.example", to: ["b@x.example", "c@x.example"], message: Self.message))
                #expect(result.stage == .accepted && result.accepted == [0, 1])
                #expect(result.reply == MailReply(code: 250, text: "2.0.0 queued as 7F3"))
            }
            #expect(server.accepted == 1)
            let lines = heard.withLock { $0 }
            #expect(lines.first == "EHLO worker.example")
            #expect(lines.contains("MAIL FROM:<a@sender.example> SIZE=\(Self.message.count)"))
            #expect(lines.contains("Subject: hello\r\n\r\n..dot\r\nbody\r\n.\r\n"))
            #expect(lines.filter { $0.hasPrefix("EHLO") }.count == 1)
        }
    }

    @Test func `each recipient has its own answer`() async throws {
        var script = Script()
        let usual = script.reply
        script.reply = { line in
            line.contains("gone@")
                ? "550-5.1.1 no\r\n550 5.1.1 such user" : line.contains("later@") ? "451 4.3.0 busy" : usual(line)
        }
        try await withMail(script) { _, transport, _ in
            let result = try await transport.send(
                SMTPEnvelope(
                    from: "", to: ["gone@x.example", "here@x.example", "later@x.example", "too@x.example"],
                    message: Self.message))
            #expect(result.accepted == [1, 3])
            #expect(result.recipients.map { $0?.code } == [550, 250, 451, 250])
            #expect(result.recipients[0]?.text == "5.1.1 no 5.1.1 such user")
            #expect(result.recipients[2]?.isTemporary == true)
            let none = try await transport.send(
                SMTPEnvelope(from: "", to: ["gone@x.example", "later@x.example"], message: Self.message))
            #expect(none.stage == .recipients && none.accepted.isEmpty)
            #expect(none.recipients.map { $0?.code } == [550, 451])
        }
    }

    @Test(arguments: [
        ("MAIL", "530 log in first", MailResult.Stage.sender), ("DATA", "554 no", .data),
        ("BODY", "552 too large", .data),
        ("BODY", "451 try later", .data),
    ])
    func `a refusal is a result, and says where`(verb: String, reply: String, stage: MailResult.Stage) async throws {
        var script = Script()
        let usual = script.reply
        script.reply = { $0.hasPrefix(verb) ? reply : usual($0) }
        try await withMail(script) { _, transport, _ in
            let result = try await transport.send(
                SMTPEnvelope(from: "a@x.example", to: ["b@x.example"], message: Self.message))
            #expect(result.stage == stage && result.accepted.isEmpty)
            #expect(result.reply?.code == Int(reply.prefix(3)))
        }
    }

    @Test(arguments: ["MAIL", "RCPT", "DATA", "BODY"])
    func `a connection that breaks leaves the outcome unknown only after the final dot`(verb: String) async throws {
        var script = Script()
        let usual = script.reply
        script.reply = { $0.hasPrefix(verb) ? nil : usual($0) }
        try await withMail(script) { _, transport, _ in
            let failure = try await failed {
                try await transport.send(SMTPEnvelope(from: "a@x.example", to: ["b@x.example"], message: Self.message))
            }
            #expect(failure != nil)
            #expect(failure?.transfer.outcomeIsUnknown == (verb == "BODY"))
            #expect(failure?.recipients.first??.code == (["DATA", "BODY"].contains(verb) ? 250 : nil))
        }
    }

    @Test func `a server that thinks about the final dot holds up no one else, and can be left`() async throws {
        var script = Script()
        let usual = script.reply
        let dots = Locked(0)
        script.reply = { line in
            guard line == "BODY" else { return usual(line) }
            dots.withLock { $0 += 1 }
            return dots.withLock { $0 } == 1 ? "" : "250 ok"
        }
        try await withMail(script) { _, transport, _ in
            let envelope = SMTPEnvelope(from: "a@x.example", to: ["b@x.example"], message: Self.message)
            let slow = Task { try await failed { try await transport.send(envelope) } }
            try await eventually("the message is being answered") { dots.withLock { $0 } > 0 }
            let other = try await transport.send(envelope)
            #expect(other.stage == .accepted)
            slow.cancel()
            let failure = try await slow.value
            #expect(failure?.transfer.kind == .cancelled && failure?.transfer.outcomeIsUnknown == true)
        }
    }

    @Test func `addresses and messages that would say more than they should never leave`() async throws {
        try await withMail { server, transport, _ in
            for address in [
                "", "b", "b@", "@x", "a@b@c", "x>\r\nRCPT TO:<evil@x.example", "b@x.example\n",
                "b@x.example> NOTIFY=NEVER",
                "<b@x.example>", "b c@x.example", "\"b\"@x.example", "b@x.example\0",
            ] {
                let failure = try await failed {
                    try await transport.send(
                        SMTPEnvelope(from: "a@x.example", to: ["ok@x.example", address], message: Self.message))
                }
                #expect(failure?.transfer.kind == .invalid, "\(address.debugDescription)")
                #expect(failure?.description.contains("evil") == false)
            }
            for message in ["", "a", "a\n", "a\r", "a\r\n.\n", "a\n.\r\nb\r\n", "a\0\r\n", "a\r\r\n"] {
                let failure = try await failed {
                    try await transport.send(SMTPEnvelope(from: "", to: ["b@x.example"], message: Array(message.utf8)))
                }
                #expect(failure?.transfer.kind == .invalid, "\(message.debugDescription)")
            }
            #expect(server.accepted == 0)
        }
    }

    @Test func `required TLS that is not offered ends it, and a password needs TLS`() async throws {
        try await withMail { server, _, heard in
            var configuration = MailTransport.Configuration(host: "127.0.0.1", port: server.port, security: .required)
            configuration.user = "user"
            configuration.password = "hidden"
            #expect(!"\(configuration)".contains("hidden"))
            let transport = try MailTransport(configuration)
            let failure = try await failed {
                try await transport.send(SMTPEnvelope(from: "", to: ["b@x.example"], message: Self.message))
            }
            #expect(failure?.transfer.kind == .tls && failure?.transfer.outcomeIsUnknown == false)
            #expect(heard.withLock { $0.allSatisfy { !$0.hasPrefix("AUTH") && !$0.hasPrefix("MAIL") } })
            configuration.security = .opportunistic
            #expect(throws: TransferError.self) { try MailTransport(configuration) }
            configuration.security = .none
            #expect(throws: TransferError.self) { try MailTransport(configuration) }
        }
    }

    @Test func `cancelled and waiting messages are answered, whatever their lanes do`() async throws {
        let server = try RawServer { $0.waitForEnd() }
        defer { server.stop() }
        var configuration = MailTransport.Configuration(host: "127.0.0.1", port: server.port, security: .none)
        configuration.mostConnections = 2
        let transport = try MailTransport(configuration)
        let envelope = SMTPEnvelope(from: "", to: ["b@x.example"], message: Self.message)
        let tasks = (0..<20).map { _ in Task { try await failed { try await transport.send(envelope) } } }
        try await eventually("both lanes have connected") { server.accepted >= 2 }
        for task in tasks { task.cancel() }
        for task in tasks {
            let failure = try await task.value
            #expect(failure?.transfer.kind == .cancelled && failure?.transfer.outcomeIsUnknown == false)
        }
        transport.close()
        let late = try await failed { try await transport.send(envelope) }
        #expect(late?.transfer.kind == .closed)
    }
}
