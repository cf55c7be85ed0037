/// Who knows which sessions are over: the database of a console, or all of several, which share their sessions.
struct SessionEnds: Sendable {
    /// Those that are asked.
    var asked: [EndedSessions]
    /// Those that are told.
    var told: [EndedSessions]
    /// One that does not answer is passed over: what is shown then is of the others.
    var passesOver = false

    private static let limit = Duration.seconds(1)

    func isOver(
        _ session: ConsoleSession, of visitor: Visitor, within patience: Duration = EndedSessions.patience
    ) async throws -> Bool {
        guard passesOver || asked.count != 1 else {
            return try await asked[0].isOver(session, of: visitor, within: patience)
        }
        return await withTaskGroup(of: Bool.self) { group in
            for one in asked {
                group.addTask {
                    if await one.hasEnded(session) { return true }
                    return await TimedAnswer.of(within: Self.limit) {
                        (try? await one.isOver(session, of: visitor, within: patience)) ?? false
                    } ?? false
                }
            }
            for await isOver in group where isOver { return true }
            return false
        }
    }

    /// It opens nothing here from now on. Each database is told for the other consoles; one that is away is told nothing.
    func end(_ session: ConsoleSession, of visitor: Visitor, at now: Int) async {
        for one in told { await one.forget(session, at: now) }
        await withTaskGroup(of: Void.self) { group in
            for one in told {
                group.addTask {
                    let isAlone = told.count == 1
                    guard !isAlone else { return await one.tell(session, of: visitor) }
                    _ = await TimedAnswer.of(within: Self.limit) { await one.tell(session, of: visitor) }
                }
            }
        }
    }
}
