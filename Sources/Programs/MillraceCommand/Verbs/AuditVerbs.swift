import MillraceJobs
import MillraceQueues
import Postgres

extension Command {
    static let auditList = Command(
        ["audit", "list"],
        summary: "List what operators did, newest first",
        discussion: """
            Every action on jobs, queues, schedules, limits, providers, mail, webhooks, flags and rights, from wherever \
            it came. Who: the role and the login that Postgres has verified, and who the program said it was, which nobody \
            has verified. Rows are never changed. --jsonl is an export, a line for each.
            """,
        flags: [
            .single("since", "TIME", .past, environment: .none, help: "Only since then; 2h is two hours ago."),
            .single("until", "TIME", .past, environment: .none, help: "Only before then."),
            .single("action", "ACTION", .text, environment: .none, help: "Only this action, such as job.cancel."),
            .single(
                "who", "NAME", .text, environment: .none,
                help: "Only actions of this role or login, or of somebody who claimed this name."),
            .single(
                "object", "NAME", .text, environment: .none, help: "Only about this job, queue, schedule or other."),
            .single("limit", "N", .integer(1...1_000_000), fallback: "50", help: "Show at most this many."),
            .single("after", "ID", .jobID, environment: .none, help: "Only rows older than this one."),
        ],
        examples: [
            Example("millrace audit list --since 1d", "what was done since yesterday"),
            Example("millrace audit list --action operation.start --who ada@desk", "what she has started"),
            Example("millrace audit list --limit 1000000 --jsonl > audit.jsonl", "an export"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let limit = parsed.integer("limit") ?? 50
        let since = try parsed.string("since").map(Invocation.moment)
        let until = try parsed.string("until").map(Invocation.moment)
        let first = parsed.integer("after").map { Int64($0) }
        let entries = try await invocation.withSchema { connection in
            var entries: [AuditEntry] = []
            while entries.count < limit {
                let page = try await Queue.audit(
                    since: since, until: until, action: parsed.string("action"), who: parsed.string("who"),
                    object: parsed.string("object"), after: entries.last?.id ?? first, limit: limit - entries.count,
                    on: connection)
                entries += page
                if page.isEmpty { break }
            }
            return entries
        }
        invocation.console.list("entries", entries.map(\.json), table: AuditEntry.table(entries))
        if entries.count == limit, invocation.console.format == .human, let last = entries.last {
            invocation.console.note("more may follow: --after \(last.id)")
        }
        return .done
    }

    static let auditKeep = Command(
        ["audit", "keep"],
        summary: "Show or set how long the audit is kept",
        discussion: "400 days unless set. Nobody can delete a row before its time has passed.",
        arguments: [
            Argument(
                "days", .optional, .integer(30...36_500),
                help: "for how many days; without it, the current number is printed")
        ],
        examples: [
            Example("millrace audit keep", "how long is it?"), Example("millrace audit keep 730", "two years"),
        ]
    ) { invocation in
        let days = invocation.parsed.integer("days")
        let kept = try await invocation.withSchema { connection in
            try await Queue.keepAudit(days: days, on: connection)
        }
        invocation.console.show(["days": .int(kept)]) {
            invocation.console.print("the audit is kept for \(Humane.count(kept, "day"))")
        }
        return .done
    }
}
