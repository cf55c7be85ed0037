import Faults
import FoundationEssentials
import Postgres
import Supervision
import Telemetry

extension MailService {
    package struct Reconciled: Sendable, Equatable {
        package var asked = 0
        package var told = 0
        package var unanswered = 0
        /// A provider was not called for some of them: after what time they may be asked about.
        package var wait: Duration?
    }

    /// Asks the providers about messages that they took and that have been silent for longer than `age`. Those of a provider that is not
    /// called now keep their place.
    package func reconcile(olderThan age: Duration, page: Int = 100) async throws -> Reconciled {
        let silent = try await table.ask(
            "select message::text, service, provider_message_id from millrace.mail_silent($1, $2)",
            [.float8(age / .seconds(1)), .int4(Int32(clamping: page))]
        ) { row throws(PostgresError) in
            (id: try row.string(0), service: row.optionalString(1) ?? "", name: try row.string(2))
        }
        var sum = Reconciled()
        var seen: [String] = []
        var notCalled: Set<String> = []
        for one in silent where !notCalled.contains(one.service) {
            guard let provider = providers[one.service], provider.capabilities.answersLater else {
                seen.append(one.id)
                continue
            }
            let known: String?
            do {
                known = try await supervisor.read("status:\(provider.name):\(one.name)") { [supervisor, options] in
                    try await supervisor.call(provider.name, deadline: options.timeout) { call in
                        try await provider.status(of: one.name, call: call)
                    }
                }
            } catch let refusal as CallRefusal {
                notCalled.insert(one.service)
                sum.wait = min(sum.wait ?? refusal.wait, refusal.wait)
                continue
            } catch {
                seen.append(one.id)
                sum.asked += 1
                sum.unanswered += 1
                continue
            }
            seen.append(one.id)
            sum.asked += 1
            guard let known else { continue }
            let isNew = try await table.pool.withConnection { connection throws(PostgresError) in
                try await MailAdmin.event(
                    provider: one.service, id: "asked:\(one.name):\(known)", type: known, at: nil, recipient: nil,
                    data: Array(#"{"email_id": "\#(one.name)"}"#.utf8), on: connection)
            }
            if isNew { sum.told += 1 }
        }
        _ = try await table.run("select millrace.mail_asked($1)", [.texts(seen)])
        return sum
    }

    /// Ends messages whose jobs ended without recording it, and deletes the contents of messages that ended long ago.
    package func tidy() async throws {
        let forsaken = try await table.ask("select millrace.mail_forsaken()", []) { row throws(PostgresError) in
            try row.int(0)
        }
        if let count = forsaken.first, count > 0 {
            log.warning("ended messages whose jobs had ended without recording it", [("messages", "\(count)")])
        }
        guard let keep = options.keep else { return }
        var isMore = true
        while isMore, !Task.isCancelled {
            isMore =
                try await table.ask("select millrace.mail_retire($1)", [.float8(keep / .seconds(1))]) {
                    row throws(PostgresError) in try row.bool(0)
                }.first ?? false
        }
    }

    /// Until cancelled: looks from time to time at messages that have long been silent, and at messages whose jobs are gone.
    package func run(every pause: Duration = .seconds(300), olderThan age: Duration = .seconds(3600)) async {
        do {
            try await table.tellDefaults(options)
        } catch  where Task.isCancelled {
            return  // the worker itself reports why it did not start
        } catch {
            log.warning("cannot store the templates' default data in the database", [("error", "\(error)")])
        }
        var next = pause
        while !Task.isCancelled {
            do { try await Task.sleep(for: next) } catch { return }
            next = pause
            do {
                try await tidy()
                let sum = try await reconcile(olderThan: age)
                next = min(pause, max(sum.wait ?? pause, .seconds(1)))
                if sum.asked > 0 {
                    log.info(
                        "asked providers about silent messages", [("asked", "\(sum.asked)"), ("told", "\(sum.told)")])
                }
            } catch {
                log.warning("cannot ask providers about silent messages", [("error", "\(error)")])
            }
        }
    }
}
