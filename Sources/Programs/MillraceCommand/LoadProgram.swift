import Composition
import Glibc

/// The program `millrace-load`, which measures and proves. `millrace load` becomes it, so that a production worker carries nothing of it.
package enum LoadProgram {
    package static let name = "millrace-load"

    /// The words that are its own: `load …`, and `help load …`. The shells complete them as well, where it is installed.
    package static func isMeant(by arguments: [String]) -> Bool {
        let words = positional(arguments)
        switch words.first {
        case "load": return true
        case "help": return words.dropFirst().first == "load"
        case "completions": return path != nil
        default: return false
        }
    }

    /// The words that are neither flags nor values of the flags that every command has.
    private static func positional(_ arguments: [String]) -> [String] {
        var words: [String] = []
        var rest = arguments[...]
        while let word = rest.popFirst() {
            guard word != "--" else { break }
            guard word.hasPrefix("-") else {
                words.append(word)
                continue
            }
            let flag = CommandFlag.global.first { "--\($0.name)" == word }
            if let flag, case .single = flag.arity { rest = rest.dropFirst() }
        }
        return words
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
