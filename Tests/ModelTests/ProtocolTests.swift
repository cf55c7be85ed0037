import Testing

@Suite struct `The protocol of claim, finish and rescue` {
    @Test(arguments: Scope.all) func `keeps its promises in every order of events`(_ scope: Scope) {
        let began = ContinuousClock.now
        let finding = Explorer(model: Model(scope)).explore()
        print("model, \(scope.name): \(finding.states) states, \(finding.ends) ends, \(began.duration(to: .now))")
        if let failure = finding.failure {
            Issue.record("\(failure.what)\n  \(failure.trace.joined(separator: "\n  "))")
        }
        #expect(finding.ends > 0)
    }

    @Test(arguments: Scope.breaking) func `a broken build is found, by the shortest way`(
        _ broken: Broken, _ scope: Scope, _ what: String
    ) throws {
        let failure = try #require(Explorer(model: Model(scope, broken)).explore().failure)
        #expect(failure.what.contains(what))
        print("model, \(broken): \(failure.what), after: \(failure.trace.joined(separator: "; "))")
    }
}
