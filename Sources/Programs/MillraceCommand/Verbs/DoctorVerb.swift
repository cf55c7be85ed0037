import MillraceQueues
import Postgres

extension Command {
    static func doctor(of rooms: [Room]) -> Command {
        Command(
            ["doctor"],
            summary: "Check the database and the connection to it, and say what to do",
            discussion: """
                Checks the connection, the server and its settings, the schema, the roles, notifications, clocks, and \
                transactions that keep old rows alive. Changes nothing. Exit 0 when all is well, 10 with warnings, 11 with \
                a problem.
                """,
            flags: [Setting.directURL.flag, Setting.clientRole.flag, Setting.workerRole.flag, Setting.adminRole.flag],
            examples: [
                Example("millrace doctor", "one check a line"),
                Example("millrace doctor --quiet --json", "for a monitor"),
            ]
        ) { invocation in
            let console = invocation.console
            return try await invocation.withConnection { connection in
                let checks = await Doctor(invocation, connection, rooms: rooms).examine()
                let severity = checks.map(\.result.severity).max() ?? .ok
                switch console.format {
                case .human:
                    for check in checks {
                        let word = check.result.severity.style.paint(check.result.word, on: console.colorsOutput)
                        let space = String(repeating: " ", count: max(1, 9 - check.result.word.count))
                        console.output.write(
                            "\(word)\(space)\(check.subject): \(DisplayWidth.harmless(check.result.sentence))\n")
                        if let advice = check.result.advice {
                            console.output.write("         → \(DisplayWidth.harmless(advice))\n")
                        }
                    }
                case .json:
                    console.show([
                        "verdict": .string(severity.word.lowercased()), "checks": .array(checks.map(\.json)),
                    ]) {}
                case .jsonLines: console.list("checks", checks.map(\.json), table: Table([]))
                }
                return severity.exitCode
            }
        }
    }
}
