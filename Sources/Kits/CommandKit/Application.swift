import CLinux
import Glibc
import Threads

/// From a command line to an exit code: parse, configure, check, run, and say what went wrong.
package enum Application {
    package static func run(
        arguments: [String], surroundings: Surroundings, console: Console, tree: CommandTree
    ) async -> ExitCode {
        let environment = surroundings.environment
        var console = console
        console.movesCursor = environment["TERM"] != "dumb"
        console.allowsColors = console.movesCursor && (environment["NO_COLOR"] ?? "").isEmpty
        let code: ExitCode
        switch Parser(tree: tree, environment: environment).parse(arguments) {
        case .help(let path):
            console.output.write(HelpPage(tree: tree, columns: console.output.columns).text(for: path))
            code = .done
        case .misuse(let misuse) where misuse.isEmptyLine:
            console.errors.write(HelpPage(tree: tree, columns: console.errors.columns).text(for: []))
            code = .misused
        case .misuse(let misuse):
            if Self.wantsJSON(arguments, environment) {
                console.format = .json
                for problem in misuse.problems { console.failure(problem) }
                console.plainError("usage: \(misuse.usage)")
                console.plainError("see \(misuse.help) --help")
            } else {
                for line in misuse.lines { console.plainError(line) }
            }
            code = .misused
        case .version(let parsed), .run(let parsed):
            configure(&console, by: parsed)
            code = await run(parsed, surroundings, console, tree)
        }
        let settled = settled(code, console)
        console.writeReport(code: settled)
        return settled
    }

    /// For a line that could not be parsed: whether its author is a program.
    private static func wantsJSON(_ arguments: [String], _ environment: [String: String]) -> Bool {
        let flags = arguments.prefix { $0 != "--" }
        if flags.contains("--json") || flags.contains("--jsonl") { return true }
        return ["MILLRACE_JSON", "MILLRACE_JSONL"].contains { name in
            environment[name].map { (try? ValueKind.boolean.read($0)) == .boolean(true) } ?? false
        }
    }

    private static func configure(_ console: inout Console, by parsed: Parsed) {
        if parsed.origin("no-color") != nil { console.allowsColors = console.movesCursor && !parsed.isOn("no-color") }
        if parsed.isOn("json") { console.format = .json }
        if parsed.isOn("jsonl") { console.format = .jsonLines }
        if parsed.isOn("verbose") { console.verbosity = .verbose }
        if parsed.isOn("quiet") { console.verbosity = .quiet }
    }

    private static func run(
        _ parsed: Parsed, _ surroundings: Surroundings, _ console: Console, _ tree: CommandTree
    ) async -> ExitCode {
        var settings = Settings()
        if parsed.command.settings != .unused {
            settings = .load(
                parsed: parsed, surroundings: surroundings, known: tree.environmentNames, table: tree.settings)
            surroundings.forget(
                SecretVariables.names(in: surroundings.environment, settings: settings.entries.map(\.setting)),
                settings.entries.compactMap { $0.isSecretFlag ? $0.text : nil })
            for warning in settings.warnings { console.warning(warning) }
            settings.choose(parsed.string("database"))
        }
        if parsed.command.settings == .checked, !settings.problems.isEmpty {
            for problem in settings.problems { console.failure(problem) }
            console.plainError("see millrace config")
            return .misused
        }
        let invocation = Invocation(
            parsed: parsed, settings: settings, console: console, surroundings: surroundings, tree: tree)
        do {
            return try await parsed.command.run(invocation)
        } catch let failure as any CommandFailure {
            console.failure(failure.sentence)
            if let hint = failure.hint { console.plainError(hint) }
            return failure.exitCode
        } catch is CancellationError {
            console.failure("interrupted")
            return .failed
        } catch {
            console.failure(sentence(for: error))
            return .failed
        }
    }

    /// An error without its own description would be printed with all its contents, payloads included.
    private static func sentence(for error: any Error) -> String {
        if let described = error as? any CustomStringConvertible { return described.description }
        return "\(type(of: error))"
    }

    /// A command whose results could not be written has failed, for instance on a full disk.
    private static func settled(_ code: ExitCode, _ console: Console) -> ExitCode {
        guard let failure = console.output.failure else { return code }
        // A reader that closed its pipe has seen enough, and needs no error.
        if failure != Descriptor.sentence(EPIPE) { console.failure("the results could not be written: \(failure)") }
        return code == .done ? .failed : code
    }
}
