import EngineLoad
import LoadKit
import MillraceCommand
import Postgres
import Workers

extension Command {
    /// A worker with the jobs of the ledger, and with a safeguard less where the proof must fail.
    static let breakableWorker = Command(
        worker.path, summary: worker.summary, discussion: worker.discussion,
        flags: worker.flags + [
            .single("ledger", "URL", environment: .none, hidden: true, help: "Run the jobs of `load ledger`."),
            .single("break", "NAME", environment: .none, hidden: true, help: "Run without this safeguard."),
        ], examples: worker.examples
    ) { invocation in
        let broken = invocation.parsed.string("break").flatMap { LedgerBreak(rawValue: $0) }
        let ledger = invocation.parsed.string("ledger").map { url in
            LedgerHandlers(pool: Pool(invocation.options(at: url), size: 8), broken: broken).all
        }
        return try await invocation.work(more: ledger ?? []) { options in
            if broken == .earlyRescue {
                // So that some look more often than others beat.
                options.beat = .milliseconds(Int.random(in: 300...4000))
                options.watch.silent = .milliseconds(600)
                options.watch.lockFree = .milliseconds(600)
                options.watch.lockNeverHeld = .milliseconds(600)
            }
            // So that a minute sees enough of them come back.
            if broken == .noTokenCheck { options.watch.silent = .seconds(5) }
        }
    }
}
