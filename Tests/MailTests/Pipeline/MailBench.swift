import Faults
import FoundationEssentials
import Mail
import Postgres
import Supervision
import Synchronization
import Telemetry
import TestSupport

/// A mail room without a worker around it: its jobs are run when the test says so.
struct MailBench {
    let database: TestDatabase
    let connection: Connection
    let pool: Pool

    struct Words: Rendering {
        func render(_ template: String, locale: String?, data: [UInt8]) async throws(Fault) -> Rendered {
            guard template != "missing" else { throw Fault(.notFound, "there is no template missing") }
            return Rendered(
                subject: "About \(template)", text: String(decoding: data, as: UTF8.self), html: nil, version: 3,
                locale: locale ?? "en")
        }
    }

    func supervisor(retryShare: Double = 1) -> Supervisor {
        var supervision = Supervisor.Options()
        supervision.retryShare = retryShare
        return Supervisor(supervision, log: .silent)
    }

    func service(
        _ providers: [any MailProvider], supervisor given: Supervisor? = nil, retryShare: Double = 1,
        _ change: (inout MailOptions) -> Void = { _ in }
    ) -> MailService {
        var options = MailOptions()
        options.from = Mailbox(name: "Shop", address: "shop@example.net")
        options.routes = Routes(chosen: providers[0].name, fallbacks: providers.dropFirst().map(\.name))
        options.sendRules.delay = .milliseconds(1)
        change(&options)
        return MailService(
            pool: pool, options: options, providers: providers, renderer: Words(),
            supervisor: given ?? supervisor(retryShare: retryShare), log: .silent)
    }

    /// Errands of all messages that have not ended.
    func jobs(session: Int64 = 7, isLast: Bool = false) async throws -> [MailJob] {
        try await connection.query(
            """
            select j.id, m.kind, j.args::text from millrace.mail m join millrace.job j on j.id = m.job
             where m.status in ('scheduled', 'queued', 'sending', 'unknown') order by j.id
            """
        ) { row throws(PostgresError) in
            MailJob(
                job: try row.int(0), kind: try row.string(1), args: Array(try row.string(2).utf8), session: session,
                isLast: isLast)
        }
    }

    @discardableResult
    func send(_ more: String = "", to address: String = "ada@example.org", subject: String = "Hello") async throws
        -> String
    {
        try await connection.value(
            "select millrace.mail_send(array['\(address)'], '\(subject)', 'text'\(more.isEmpty ? "" : ", \(more)"))")
            ?? ""
    }

    func status(_ id: String) async throws -> String? {
        try await connection.value("select status from millrace.mail_messages where id = '\(id)'")
    }

    func outcomes(_ id: String) async throws -> [String] {
        try await connection.column(
            "select provider || ' ' || outcome from millrace.mail_attempts where message = '\(id)' order by n")
    }
}

func withMail<Value>(
    _ template: Template = .migrated, _ body: (MailBench) async throws -> Value
) async throws -> Value {
    try await withDatabase(template) { database in
        let connection = try await database.connect()
        let pool = Pool(database.options, size: 4)
        let value = try await body(MailBench(database: database, connection: connection, pool: pool))
        await pool.close()
        await connection.close()
        return value
    }
}
