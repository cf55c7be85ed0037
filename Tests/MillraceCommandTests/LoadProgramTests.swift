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
