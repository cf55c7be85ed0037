import Faults
package import Postgres
import Signatures
package import Supervision
package import Telemetry

/// The mail service of a worker: it takes messages, freezes them, sends them through providers, and records the results.
///
/// The actor keeps the notes that its runs share. A run itself is not isolated, so that many go on at the same time.
package actor MailService {
    let table: MailStore
    let options: MailOptions
    let providers: [String: any MailProvider]
    let renderer: any Rendering
    let supervisor: Supervisor
    let log: Log
    let turns: [String: AsyncTurn]
    /// For each provider: opens the requests of single messages together.
    let opening: [String: StatementBatcher<Claim, MailStore.Opened>]
    let recording: StatementBatcher<MailStore.Outcome, Void>
    /// For metrics.
    package private(set) var tally = MailTally()
    private var route = RouteNote()
    private var loaded: Set<String> = []
    private var rollout = RolloutNote()
    private var warned: Set<String> = []

    private struct RolloutNote: Sendable {
        var flag: Flag?
        var read: ContinuousClock.Instant?
    }

    /// A request of one message that is to be opened.
    struct Claim: Sendable {
        var id: String
        var holder: Int64
    }

    private struct RouteNote: Sendable {
        var current: String?
        var looked: ContinuousClock.Instant?
    }

    package init(
        pool: Pool, options: MailOptions, providers: [any MailProvider], renderer: any Rendering,
        supervisor: Supervisor,
        log: Log
    ) {
        let table = MailStore(pool: pool)
        self.table = table
        self.options = options
        self.providers = Dictionary(providers.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        self.renderer = renderer
        self.supervisor = supervisor
        self.log = log
        turns = self.providers.mapValues { _ in AsyncTurn() }
        opening = Dictionary(
            uniqueKeysWithValues: self.providers.keys.map { name in
                let gathering = StatementBatcher<Claim, MailStore.Opened>(
                    most: 32, lanes: 2, clash: { $0.id == $1.id || $0.holder != $1.holder }
                ) { claims in
                    try await table.open(
                        claims.map(\.id), alone: true, by: name, holder: claims[0].holder, options)
                }
                return (name, gathering)
            })
        recording = StatementBatcher(most: 32, lanes: 2, clash: { $0.clashes(with: $1) }) { outcomes in
            try await table.record(outcomes)
            return outcomes.map { _ in }
        }
    }

    package static let kinds = [
        "mail.send", "mail.password_reset", "mail.welcome", "mail.account_verification", "mail.account_notification",
    ]

    /// Runs the jobs, and returns one ending per job, in the same order.
    package nonisolated func run(_ jobs: [MailJob]) async throws -> [MailJobEnd] {
        guard let session = jobs.first?.session else { return [] }
        let run = SendRun(service: self, session: session, began: .now, routes: try await routesNow())
        let taken = try await table.take(jobs, options)
        for (index, one) in taken.enumerated() {
            let job = jobs[index]
            run.note(one.id, index: index, job)
            switch one.what {
            case .done: run.end(index, .done)
            case .discard: run.end(index, .dead(one.reason))
            case .wait: run.end(index, .later(.seconds(max(0.1, one.seconds))))
            case .render, .send, .batch: break
            }
        }
        let frozen = try await freeze(taken.filter { $0.what == .render }, run)
        let ready = taken.filter { $0.what == .send }.map(\.id) + frozen
        let messages = try await table.messages(ready)
        let batches = Set(taken.filter { $0.what == .batch }.map(\.batch))
        try await withThrowingTaskGroup(of: Void.self) { group in
            for batch in batches { group.addTask { try await run.resume(batch) } }
            group.addTask { try await run.dispatch(messages.filter(\.isUrgent), isUrgent: true) }
            group.addTask { try await run.dispatch(messages.filter { !$0.isUrgent }, isUrgent: false) }
            try await group.waitForAll()
        }
        return jobs.indices.map { run.ending($0) }
    }

    /// The routes with the roll-out of the database's flag. The flag is read again when it is a second old.
    func routesNow() async throws -> Routes {
        if let read = rollout.read, ContinuousClock.now - read < .seconds(1) {
            return options.routes.rolledOut(by: rollout.flag)
        }
        let asked = ContinuousClock.now
        let name = options.routes.rollout.name
        let flag = try await supervisor.read("flag:\(name)") { [table] in try await table.flag(name) }
        rollout = RolloutNote(flag: flag, read: asked)
        if let flag, flag.percent < 100, options.routes.fallbacks.isEmpty {
            warn(
                once: "rollout", "the roll-out of mail is partial, and there is no fallback: all mail goes one way",
                [("mail.provider", options.routes.chosen), ("percent", "\(flag.percent)")])
        }
        return options.routes.rolledOut(by: flag)
    }

    func warnOfSpare(_ provider: String, _ objections: [String]) {
        warn(
            once: "spare",
            "mail outside the roll-out goes through the chosen service, since no fallback can carry it",
            [("mail.provider", provider), ("reason", objections.joined(separator: "; "))])
    }

    /// Logs once per process: the statement holds until somebody changes the configuration.
    private func warn(once key: String, _ message: StaticString, _ data: [(String, String)]) {
        guard warned.insert(key).inserted else { return }
        log.warning(message, data)
    }

    /// Freezes the messages, and returns those that are frozen now.
    private nonisolated func freeze(_ taken: [MailStore.Taken], _ run: SendRun) async throws -> [String] {
        var frozen: [(id: String, rendered: Rendered, link: String?)] = []
        for one in taken {
            do throws(Fault) {
                let link = one.unsubscribe.flatMap { options.links?.unsubscribe($0) }
                if one.unsubscribe != nil, link == nil {
                    throw Fault(
                        .unsupported,
                        "marketing mail needs a way to unsubscribe: MILLRACE_PUBLIC_URL (https) and MILLRACE_SECRET")
                }
                frozen.append((one.id, try await rendered(one), link))
            } catch {
                switch error.kind.retry {
                case .never:
                    try await table.fail(one.id, error)
                    run.end(one.id, .dead(error.what))
                case .after, .sameKey, .elsewhere: run.end(one.id, .retry(error.what))
                }
            }
        }
        try await table.freeze(frozen, from: options.from)
        return frozen.map(\.id)
    }

    private nonisolated func rendered(_ one: MailStore.Taken) async throws(Fault) -> Rendered {
        guard let template = one.template else {
            return Rendered(subject: one.subject ?? "", text: one.text, html: one.html)
        }
        var found = try await renderer.render(template, locale: one.locale, data: one.data)
        if let subject = one.subject { found.subject = subject }
        guard !found.subject.utf8.contains(where: { $0 < 0x20 || $0 == 0x7f }) else {
            throw Fault(.invalid, "the subject that the template made has line breaks or control characters")
        }
        if await isFirst("\(template) \(found.version ?? 0) \(found.locale ?? "")") {
            try? await table.told("templateLoaded", template: template)
        }  // a figure for people, and no more
        return found
    }

    private func isFirst(_ load: String) -> Bool { loaded.insert(load).inserted }

    func count(_ resolutions: [SendMachine.Resolution], by provider: String) {
        for resolution in resolutions { tally.count(resolution, by: provider) }
    }

    /// Notes that this provider sent mail. The worker that notices a switch logs it once.
    func went(by provider: String, insteadOf reason: Fault?) async {
        let chosen = options.routes.chosen
        guard provider == chosen || reason != nil else { return }
        let now = ContinuousClock.now
        let isOld = route.looked.map { now - $0 > .seconds(10) } ?? true
        guard route.current != provider || isOld else { return }
        route = RouteNote(current: provider, looked: now)
        do {
            if try await table.route(chosen: chosen, current: provider, reason: reason?.description) {
                log.warning(
                    "mail goes through another service now",
                    [("mail.provider", provider), ("reason", reason?.description ?? "it is back")])
            }
        } catch {
            route = RouteNote()
            log.warning("cannot record a switch of the mail service", [("error", "\(error)")])
        }
    }
}
