import Testing
import Threads

/// One after the other, and on their own thread: they compute for long, and other tests wait for the pool.
@Suite(.serialized) struct `The protocol of claim, finish and rescue` {
    @Test(arguments: Scope.all) func `keeps its promises in every order of events`(_ scope: Scope) async {
        let began = ContinuousClock.now
        let finding = await explored(Model(scope))
        print("model, \(scope.name): \(finding.states) states, \(finding.ends) ends, \(began.duration(to: .now))")
        if let failure = finding.failure {
            Issue.record("\(failure.what)\n  \(failure.trace.joined(separator: "\n  "))")
        }
        #expect(finding.ends > 0)
    }

    @Test(arguments: Scope.breaking) func `a broken build is found, by the shortest way`(
        _ broken: Broken, _ scope: Scope, _ what: String
    ) async throws {
        let failure = try #require(await explored(Model(scope, broken)).failure)
        #expect(failure.what.contains(what))
        print("model, \(broken): \(failure.what), after: \(failure.trace.joined(separator: "; "))")
    }

    private func explored(_ model: Model) async -> Finding {
        await Thread.run(name: "model") { Explorer(model: model).explore() }
    }
}
