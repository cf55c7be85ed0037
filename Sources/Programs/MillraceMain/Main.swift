import Glibc
import MillraceCommand

/// The program `millrace`.
@main
enum Main {
    static func main() async {
        CommandProcess.prepare()
        let arguments = Array(CommandLine.arguments.dropFirst())
        if LoadProgram.isMeant(by: arguments) { exit(LoadProgram.become(arguments)) }
        exit(await CommandProcess.run(arguments, tree: Verbs.tree))
    }
}
