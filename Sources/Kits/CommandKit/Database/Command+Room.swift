import MillraceQueues
import Postgres

extension Command {
    /// The same command, which says so where its room is not installed.
    package func ofRoom(_ room: String) -> Command {
        Command(
            path, summary: summary, discussion: discussion, arguments: arguments, flags: flags, examples: examples,
            settings: settings
        ) { invocation in
            do {
                return try await run(invocation)
            } catch let failure as DatabaseFailure where failure.exitCode == .schemaMismatch {
                try await invocation.refuseWithout(room)
                throw failure
            }
        }
    }
}

extension Invocation {
    /// Fails if the database says that it has not got the room; one that cannot be asked is left to what follows.
    package func refuseWithout(_ room: String) async throws {
        let installed = try? await withConnection { try await Queue.installedRooms(on: $0) }
        guard let installed, installed[room] == nil else { return }
        throw Failure(
            .schemaMismatch, "the room \(room) is not installed in this database",
            hint: "run: millrace rooms add \(room)")
    }
}
