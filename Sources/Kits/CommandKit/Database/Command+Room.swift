import Postgres
import Queues

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
                let installed = try? await invocation.withConnection { try await Queue.installedRooms(on: $0) }
                guard let installed, installed[room] == nil else { throw failure }
                throw Failure(
                    .schemaMismatch, "the room \(room) is not installed in this database",
                    hint: "run: millrace rooms add \(room)")
            }
        }
    }
}
