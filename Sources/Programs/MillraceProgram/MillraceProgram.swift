import Glibc
import MillraceCommand
/// A room is written with this module.
@_exported public import MillraceWorker

/// The program `millrace` with rooms of your own: every command, such as `migrate`, `rooms add`, `worker`, `console` and `doctor`, knows them.
///
/// ```swift
/// @main enum Main {
///     static func main() async { await MillraceProgram.run(rooms: [.shelf]) }
/// }
/// ```
public enum MillraceProgram {
    /// Does what the command line says, and ends the process with its exit code.
    public static func run(rooms: Set<Room>) async -> Never {
        CommandProcess.prepare()
        let arguments = Array(CommandLine.arguments.dropFirst())
        let known: [Room]
        do throws(Failure) {
            known = try Rooms.with(Array(rooms))
        } catch {
            let console = Console.standard()
            console.failure(error.sentence)
            if let hint = error.hint { console.plainError(hint) }
            exit(error.exitCode.rawValue)
        }
        exit(await CommandProcess.run(arguments, tree: Verbs.tree(of: known)))
    }
}
