import Composition
import Glibc

/// The program `millrace-load`, which measures and proves. `millrace load` becomes it, so that a production worker carries nothing of it.
package enum LoadProgram {
    package static let name = "millrace-load"

    /// The words that are its own: `load …`, and `help load …`. The shells complete them as well, where it is installed.
    package static func isMeant(by arguments: [String]) -> Bool {
        let words = positional(arguments).map { arguments[$0] }
        switch words.first {
        case "load": return true
        case "help": return words.dropFirst().first == "load"
        case "completions": return path != nil
        default: return false
        }
    }

    /// The line as this program's own parser takes it: here `drain` alone means `load drain`, and a line without a command `load`. The verbs of
    /// `millrace` keep their meaning, because scenarios start them.
    package static func line(_ arguments: [String], tree: CommandTree) -> [String] {
        let places = positional(arguments)
        guard let first = places.first.map({ arguments[$0] }) else {
            return arguments.contains("--version") ? arguments : ["load"] + arguments
        }
        let second = places.dropFirst().first.map { arguments[$0] }
        if first == "help" {
            guard second.map({ isScenario($0, before: nil, tree) }) ?? true else { return arguments }
            var line = arguments
            line.insert("load", at: places[0] + 1)
            return line
        }
        return isScenario(first, before: second, tree) ? ["load"] + arguments : arguments
    }

    /// - Parameter next: the word that follows. `queues` alone is the scenario, and `queues list` is not.
    private static func isScenario(_ word: String, before next: String?, _ tree: CommandTree) -> Bool {
        if tree.command(at: [word]) != nil { return false }
        if tree.command(at: ["load", word]) == nil { return !tree.leadsSomewhere([word]) }
        return next.map { !tree.leadsSomewhere([word, $0]) } ?? true
    }

    /// Where the words stand that are neither flags nor values of the flags that every command has.
    private static func positional(_ arguments: [String]) -> [Int] {
        var places: [Int] = []
        var index = 0
        while index < arguments.count, arguments[index] != "--" {
            let word = arguments[index]
            if word.hasPrefix("-") {
                let flag = CommandFlag.global.first { "--\($0.name)" == word }
                if let flag, case .single = flag.arity { index += 1 }
            } else {
                places.append(index)
            }
            index += 1
        }
        return places
    }

    /// Beside this program, or nowhere.
    package static var path: String? {
        let own = Composer.ownPath
        let path = own.split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/\(name)"
        return access(path, X_OK) == 0 ? path : nil
    }

    /// Returns only if it cannot be started.
    package static func become(_ arguments: [String]) -> Int32 {
        var console = Console.standard()
        if arguments.contains("--json") || arguments.contains("--jsonl") { console.format = .json }
        guard let path else {
            console.failure("\(name) is not installed beside this program, and `load` needs it")
            console.plainError("swift build -c release --product \(name) makes it")
            console.writeReport(code: .failed)
            return ExitCode.failed.rawValue
        }
        var words = ([path] + arguments).map { strdup($0) } + [nil]
        execv(path, &words)
        console.failure("\(path) cannot be started: \(String(cString: strerror(errno)))")
        console.writeReport(code: .failed)
        return ExitCode.failed.rawValue
    }
}

extension Command {
    /// Stands in the lists of commands; `LoadProgram` takes the line before it is parsed.
    static let load = Command(
        ["load"], summary: "Measure, and compare with what was promised",
        discussion: "The program millrace-load has the scenarios: see millrace load --help.", settings: .unused
    ) { _ in .failed }
}
