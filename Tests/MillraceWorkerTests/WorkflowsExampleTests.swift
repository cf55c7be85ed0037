import Foundation
import TestSupport
import Testing

/// deploy/examples/workflows, run as its README says.
@Suite struct WorkflowsExampleTests {
    @Test func `the four workflows end, and print what happened`() async throws {
        try await withDatabase(.movableClock) { database in
            var environment = ProcessInfo.processInfo.environment
            environment["DATABASE_URL"] = database.url
            let outcome = try await Program.run(
                exampleProgram("WorkflowsExample"), errors: true, environment: environment)
            #expect(outcome.status == 0, "\(outcome.text)")
            let bill = "  ada is billed once more"
            #expect(
                outcome.lines.filter { !$0.hasPrefix("  ") } == [
                    "order", "order 7 is in parcel-81", "order 8 is dead",
                    "approval", "expense-ada: paid", "expense-bob: paid", "expense-eve: expired",
                    "billing", "ada paid 5700 cents in three months",
                    "fan-out", "the book has 14 words",
                ])
            #expect(outcome.lines.count { $0 == bill } == 3)
            let undone = outcome.lines.filter { $0.contains("order 8:") }
            #expect(
                undone == [
                    "  order 8: the card is charged", "  order 8: unicorn is back on its shelf",
                    "  order 8: payment-8 is paid back",
                ])
        }
    }
}
