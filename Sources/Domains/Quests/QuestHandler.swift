import JSON
import MillraceJobs
import Postgres
import RoomKit
import Telemetry
import Workers

extension RoomContext {
    /// The handler of `quests.rollover`.
    func questHandler() -> Handler {
        let (pool, log) = (pool, log)
        return Handler(
            kind: QuestService.kind, queue: QuestService.queue,
            retries: RetryPolicy(attempts: 10, base: .seconds(1), cap: .seconds(60))
        ) { _, _ in
            let tally = try await QuestService(pool: pool).run()
            if tally.failed > 0 {
                log.warning(
                    "some families could not be rolled over midnight; each has its reason, and is tried again",
                    [("families", "\(tally.failed)")])
            }
            if tally.moved > 0 {
                log.warning(
                    "the time-zone database has changed; some days end at other times", [("families", "\(tally.moved)")]
                )
            }
            log.debug(
                "rolled families over midnight",
                [("families", "\(tally.families)"), ("days", "\(tally.days)")])
            return .done
        }
    }

    /// Stores this process's settings in the database, where all callers see them. The catalogue is read before anything starts.
    func applyQuestRules() async throws {
        var catalogue: JSONValue?
        if let path = settings.text(.questCatalogue) {
            do throws(FileProblem) {
                let bytes = try surroundings.read(path, 1_048_576)
                guard let text = String(validating: bytes, as: UTF8.self), let value = try? JSONValue.read(text) else {
                    throw FileProblem(complaint: "is no JSON")
                }
                catalogue = value
            } catch {
                throw Failure(
                    .misused, "MILLRACE_QUEST_CATALOGUE names a file that cannot be used: \(path): \(error.complaint)")
            }
        }
        guard let rules = settings.questRules(catalogue: catalogue) else { return }
        let json = rules.compact
        _ = try await withSchema { connection in try await QuestAdmin.setRules(json, on: connection) }
    }
}
