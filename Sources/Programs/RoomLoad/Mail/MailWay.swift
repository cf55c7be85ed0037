import CommandKit
import Composition
import FoundationEssentials
import Glibc
import LoadKit
import Mail
import MillraceMail
import Postgres
import Templates
import Transfers
import Workers

extension MailLoad {
    /// From mail_send to the server's 250: handed in, claimed, rendered, frozen, requested, sent, written down.
    func way(
        messages: Int, to server: String, _ bars: inout [Bar], _ figures: inout [(String, JSONValue)]
    ) async throws {
        guard let address = SMTPAddress("smtp://\(server)?tls=none") else {
            throw Failure(.misused, "--smtp takes HOST:PORT, not \(Secrets.quoted(server))")
        }
        var configuration = address.configuration
        configuration.mostConnections = 8
        configuration.limits.total = .seconds(300)
        let transport: MailTransport
        do throws(TransferError) {
            transport = try MailTransport(configuration)
        } catch {
            throw Failure(.misused, error.sentence)
        }
        let world = try await MailWorld(
            invocation, [SMTPProvider(transport, blobs: ProviderLoad.blobs)], rate: nil,
            renderer: { TemplateWords(store: TemplateStore(pool: $0, defaultLocale: "en")) })
        let connection = try await world.connect()
        try await Self.publish(on: connection)
        let meter = try await ServerMeter(on: connection)
        let (took, server, own) = try await world.working { () -> (Double, ServerMeter.Reading, Double) in
            await world.worker.hasStarted()
            let (before, ownBefore) = (try await meter.read(), Self.ownProcessor)
            let began = ContinuousClock.now
            for first in stride(from: 1, through: messages, by: 250) {
                try await connection.execute(
                    """
                    select millrace.mail_send(array['w' || n || '@example.org'], template => 'load',
                                              data => jsonb_build_object('name', 'Reader ' || n, 'number', n::text))::text
                      from generate_series($1::int, $2::int) n
                    """, [.int4(Int32(first)), .int4(Int32(min(first + 249, messages)))], deadline: .seconds(120)
                )
            }
            let isDone = try await Patience.waited(.seconds(600), every: .milliseconds(200)) {
                try await connection.int("select count(*) from millrace.mail_messages where status = 'accepted'")
                    == messages
            }
            guard isDone else { throw Failure("not all messages were taken within ten minutes") }
            let took = (ContinuousClock.now - began) / .seconds(1)
            return (took, try await meter.read() - before, Self.ownProcessor - ownBefore)
        }
        await connection.close()
        await world.close()
        let each = 1e6 / Double(messages)
        let shares = [
            "this process \(Humane.decimal(own * each, places: 0)) µs",
            server.processor.map { "Postgres \(Humane.decimal($0 * each, places: 0)) µs" },
            "\(Humane.decimal(server.wal / Double(messages), places: 0)) B of WAL",
        ].compactMap(\.self)
        bars.append(
            .atLeast(
                "from mail_send to 250, rendered and written down (\(shares.joined(separator: ", ")) a message)",
                500,
                measured: Double(messages) / took, unit: "/s"))
        figures += [
            ("way_messages", .int(messages)), ("way_seconds", .double(took)),
            ("way_process_us", .double(own * each)),
            ("way_postgres_us", .double((server.processor ?? .nan) * each)),
            ("way_wal_bytes", .double(server.wal / Double(messages))),
        ]
    }

    /// A template that makes messages of about 10 KB.
    private static func publish(on connection: Connection) async throws(PostgresError) {
        let line = "Dear {{name}}, this is line after line of what the message has to say to you.\n"
        let plain = "Number {{number}}\n" + String(repeating: line, count: 64)
        let html =
            "<html lang=\"en\"><body><p>Number {{number}}</p>" + String(repeating: "<p>\(line)</p>", count: 56)
            + "</body></html>"
        let variables = #"{"name": {"type": "text", "required": true}, "number": {"type": "number"}}"#
        try await connection.execute(
            "select millrace.template_publish('load', 'Number {{number}}', $1, $2, $3)",
            [.text(html), .text(plain), .json(Array(variables.utf8))]
        )
    }

    private static var ownProcessor: Double {
        var used = rusage()
        getrusage(RUSAGE_SELF.rawValue, &used)
        return [used.ru_utime, used.ru_stime].reduce(0) { $0 + Double($1.tv_sec) + Double($1.tv_usec) / 1e6 }
    }
}
