import MillraceProgram
import Shelf

/// The program `millrace` with one room more.
@main
enum Main {
    static func main() async { await MillraceProgram.run(rooms: [.shelf]) }
}
