import Glibc
import MillraceCommand

/// The program `millrace-load`.
@main
enum Main {
    static func main() async {
        CommandProcess.prepare()
        exit(await CommandProcess.run(Array(CommandLine.arguments.dropFirst()), tree: LoadVerbs.tree))
    }
}
