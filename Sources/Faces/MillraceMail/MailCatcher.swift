import Blobs
import Faults
public import FoundationEssentials
import Mail
public import Millrace
import Postgres
import Signatures
import Supervision
import Synchronization
import Telemetry
import Templates

/// For tests of code that sends mail: replaces the provider, and keeps the messages. Everything before that is real: addresses are checked,
/// templates are rendered, and suppressed addresses get nothing.
///
/// ```swift
/// let mails = try MailCatcher(database: database)
/// mails.attach(to: worker)
/// let bench = try TestBench(worker: worker, database: database)
/// try await bench.prepare(for: mails)
/// try await signUp("ada@example.org")                               // the code under test calls mail_welcome
/// try await bench.drain()
/// let mail = try mails.only(to: "ada@example.org")
/// #expect(mail.subject == "Welcome to Shop!")
/// #expect(mail.links == ["https://shop.example/start"])
/// ```
public final class MailCatcher: Sendable {
    private let pool: Pool
    private let service: MailService
    private let provider: CatchingProvider

    /// - Parameters:
    ///   - database: That of the test bench.
    ///   - appName: What templates call the app.
    ///   - resetURL: Where the link of a password reset leads, with `{token}` in it.
    ///   - verifyURL: Where the link of an account verification leads, with `{token}` in it.
    public init(
        database: Database, from address: String = "tests@example.org", appName: String = "Tests",
        resetURL: String = "https://app.example/reset?token={token}",
        verifyURL: String = "https://app.example/verify?token={token}"
    ) throws(QueueError) {
        pool = try database.pool(size: 2)
        var options = MailOptions()
        options.from = Mailbox(address: address)
        options.appName = appName
        options.resetURL = resetURL
        options.verifyURL = verifyURL
        options.routes = Routes(chosen: "outbox")
        options.links = Links(publicURL: "https://app.example", secrets: ["of no worth in tests"])
        provider = CatchingProvider(blobs: BlobSource(PostgresStore(pool: pool)))
        let supervisor = Supervisor(Supervisor.Options(), log: .silent)
        let templates = TemplateStore(pool: pool) { key, load in try await supervisor.read(key, load) }
        service = MailService(
            pool: pool, options: options, providers: [provider], renderer: TemplateWords(store: templates),
            supervisor: supervisor, log: .silent)
    }

    /// The worker handles the mail kinds from now on, and its messages are caught.
    public func attach(to worker: Worker) {
        worker.handle(MailHandlers.of(service, slots: 2))
    }

    /// All that was caught, in the order in which it was sent.
    public var all: [CapturedMail] { provider.caught }

    /// Those that went to an address, also as a copy.
    public func mails(to address: String) -> [CapturedMail] { all.filter { $0.isAddressed(to: address) } }

    /// The one message that went to an address; throws, and says what there was, when there is none or more than one.
    public func only(to address: String, subject: String? = nil) throws(WrongMail) -> CapturedMail {
        let found = mails(to: address).filter { subject == nil || $0.subject == subject }
        guard found.count == 1 else {
            let wish = "one message to \(address)" + (subject.map { " with the subject “\($0)”" } ?? "")
            throw WrongMail("expected \(wish), and there are \(found.count). \(inventory)")
        }
        return found[0]
    }

    /// Throws, and says what there was, when anything went to an address.
    public func none(to address: String) throws(WrongMail) {
        let found = mails(to: address)
        guard found.isEmpty else {
            throw WrongMail("expected nothing to \(address), and there are \(found.count). \(inventory)")
        }
    }

    /// Why a message was not sent, as `millrace mail show` has it; nil when nothing went wrong.
    public func error(of id: UUID) async throws -> String? {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.query(
                "select error from millrace.mail_messages where id = $1::text::uuid", [.text(id.uuidString)]
            ) { row throws(PostgresError) in row.optionalString(0) }
        }.first ?? nil
    }

    /// The next messages are not caught: the provider fails in this way, one after the other.
    public func failNext(_ times: Int = 1, _ failure: Failure) { provider.failNext(times, failure) }

    /// No message is caught from now on, until `recover`.
    public func failAlways(_ failure: Failure) { provider.failAlways(failure) }

    /// Messages are caught again.
    public func recover() { provider.recover() }

    /// How often a message was handed to the provider, also where it failed.
    public var attempts: Int { provider.attempts }

    /// How the provider fails.
    public enum Failure: Sendable, CaseIterable {
        /// It cannot be reached: the message is tried again, after a pause.
        case unavailable
        /// It takes nothing for a while: as above, and no attempt is used.
        case throttled
        /// It does not take this message, now or later.
        case refused
        /// The answer was lost, so nobody knows whether it took it.
        case unknown
    }

    /// Forgets what was caught; the database keeps its rows.
    public func clear() { provider.clear() }

    /// Closes the catcher's connections.
    public func close() async { await pool.close() }

    private var inventory: String {
        guard !all.isEmpty else { return "Nothing was sent: was the queue drained?" }
        return "Sent: " + all.map { "“\($0.subject)” to \($0.to.joined(separator: ", "))" }.joined(separator: "; ")
    }
}

/// The messages are not what a test expects.
public struct WrongMail: Error, CustomStringConvertible {
    /// What was expected, and what there was.
    public let description: String

    init(_ description: String) { self.description = description }
}

/// Takes everything that a provider would take.
private final class CatchingProvider: MailProvider {
    let name = "outbox"
    let capabilities: Capabilities
    private let blobs: BlobSource
    private let state = Mutex(State())

    private struct State: Sendable {
        var order: [UUID] = []
        var mails: [UUID: CapturedMail] = [:]
        var next: [MailCatcher.Failure] = []
        var always: MailCatcher.Failure?
        var attempts = 0

        mutating func failure() -> MailCatcher.Failure? {
            attempts += 1
            return next.isEmpty ? always : next.removeFirst()
        }
    }

    init(blobs: BlobSource) {
        self.blobs = blobs
        var capabilities = Capabilities()
        capabilities.keyHolds = .seconds(86_400)
        self.capabilities = capabilities
    }

    var caught: [CapturedMail] { state.withLock { state in state.order.compactMap { state.mails[$0] } } }
    var attempts: Int { state.withLock { $0.attempts } }
    func clear() { state.withLock { ($0.order, $0.mails) = ([], [:]) } }
    func failNext(_ times: Int, _ failure: MailCatcher.Failure) {
        state.withLock { $0.next += Array(repeating: failure, count: max(0, times)) }
    }
    func failAlways(_ failure: MailCatcher.Failure) { state.withLock { $0.always = failure } }
    func recover() { state.withLock { ($0.next, $0.always) = ([], nil) } }

    func objection(to letter: Letter) -> String? {
        do { try letter.check() } catch { return error.description }
        return nil
    }

    func send(_ letters: [Letter], key: String, call: Call) async -> [SendOutcome] {
        var answers: [SendOutcome] = []
        for letter in letters {
            if let failure = state.withLock({ $0.failure() }) {
                answers.append(failure.outcome)
                continue
            }
            do {
                var attachments: [CapturedMail.Attachment] = []
                for one in letter.attachments {
                    attachments.append(
                        CapturedMail.Attachment(
                            filename: one.filename, contentType: one.contentType, bytes: try await blobs.whole(one.blob)
                        ))
                }
                let mail = CapturedMail(letter, attachments: attachments)
                state.withLock { state in
                    if state.mails.updateValue(mail, forKey: mail.id) == nil { state.order.append(mail.id) }
                }
                answers.append(.accepted(id: letter.id.uuidString))
            } catch {
                answers.append(.refused(Fault(.internal, "an attachment could not be read: \(error)")))
            }
        }
        return answers
    }

    func status(of id: String, call: Call) async throws(Fault) -> String? { nil }
}

extension MailCatcher.Failure {
    fileprivate var outcome: SendOutcome {
        switch self {
        case .unavailable: .refused(Fault(.unavailable, "the test says that the provider cannot be reached"))
        case .throttled: .throttled(Fault(.throttled, "the test says that the provider takes nothing now"))
        case .refused: .refused(Fault(.invalid, "the test says that the provider refuses this message"))
        case .unknown: .unknown(Fault(.unknown, "the test says that the answer was lost"))
        }
    }
}
