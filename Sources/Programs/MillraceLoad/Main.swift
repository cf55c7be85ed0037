import FoundationEssentials
import Glibc
import MillraceCommand

/// The program `millrace-load`.
@main
enum Main {
    static func main() async throws {
        if let path = ProcessInfo.processInfo.environment[DescribedWorker.variable] {
            return try await DescribedWorker.run(from: path)
        }
        CommandProcess.prepare()
        let line = LoadProgram.line(Array(CommandLine.arguments.dropFirst()), tree: LoadVerbs.tree)
        exit(await CommandProcess.run(line, tree: LoadVerbs.tree))
    }
}
