import Testing

@testable import MillraceCommand
@testable import MillraceLoad

@Suite struct LoadProgramTests {
    @Test(arguments: [
        ["load"], ["load", "drain", "--rounds", "5"], ["--json", "load", "drain"], ["help", "load"],
        ["--database-url", "postgres:///x", "load", "latency"], ["load", "--help"], ["-q", "help", "load", "drain"],
    ]) func `a line of the load program is known by its words`(line: [String]) {
        #expect(LoadProgram.isMeant(by: line))
    }

    @Test(arguments: [
        [], ["status"], ["help"], ["help", "jobs"], ["--database-url", "load", "status"], ["queues", "pause", "load"],
        ["--", "load"],
    ]) func `other lines are not`(line: [String]) {
        #expect(!LoadProgram.isMeant(by: line))
    }

    @Test(arguments: [
        ([String](), ["load"]), (["--help"], ["load", "--help"]), (["drain"], ["load", "drain"]),
        (["help"], ["help", "load"]),
        (["--json", "drain", "--rounds", "5"], ["load", "--json", "drain", "--rounds", "5"]),
        (["help", "drain"], ["help", "load", "drain"]), (["queues"], ["load", "queues"]),
        (["drian"], ["load", "drian"]),
    ]) func `the load program takes a scenario without the word load`(typed: [String], meant: [String]) {
        #expect(LoadProgram.line(typed, tree: LoadVerbs.tree) == meant)
    }

    @Test(arguments: [
        ["load", "drain"], ["help", "load", "drain"], ["help", "status"], ["queues", "list"], ["migrate"],
        ["--version"],
        ["enqueue", "practice.nothing"], ["console", "--listen", "127.0.0.1:0"], ["worker", "--practice"],
    ]) func `the load program takes its other lines as they are`(line: [String]) {
        #expect(LoadProgram.line(line, tree: LoadVerbs.tree) == line)
    }

    @Test
    func `the load program has a verb for each scenario, and no page of other commands when it is asked for help`() {
        let output = LoadVerbs.tree.words(after: ["load"])
        let page = HelpPage(tree: LoadVerbs.tree, columns: nil).text(for: ["load"])
        #expect(output.count > 25 && output.allSatisfy { page.contains("\n  \($0) ") })
        guard
            case .help(let path) = Parser(tree: LoadVerbs.tree, environment: [:])
                .parse(LoadProgram.line(["--help"], tree: LoadVerbs.tree))
        else {
            Issue.record("--help is no help")
            return
        }
        #expect(path == ["load"])
    }

    @Test func `both programs have the same verbs, but for the scenarios and the safeguards that only they take away`()
    {
        let own = Set(Verbs.tree.commands.map(\.path)).subtracting([["load"]])
        let load = LoadVerbs.tree.commands.filter { $0.path[0] != "load" }
        #expect(Set(load.map(\.path)) == own)
        #expect(LoadVerbs.tree.commands.count { $0.path[0] == "load" } > 25)
        #expect(LoadVerbs.tree.commands.filter { $0.path.first == "load" }.allSatisfy { $0.path.count > 1 })
        let flags = Verbs.tree.command(at: ["worker"])?.flags.map(\.name) ?? []
        #expect(!flags.contains("break") && !flags.contains("ledger") && flags.contains("slots"))
    }

    /// Else the other verbs would call it unknown.
    @Test func `no flag of a scenario has a variable of its own`() {
        #expect(Set(LoadVerbs.tree.environmentNames).subtracting(Verbs.tree.environmentNames) == [])
    }
}
