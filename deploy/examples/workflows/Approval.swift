import Millrace

/// Large expenses wait for a person, for a week at most, without a slot or a process.
struct PayExpense: Workflow {
    static let kind = "expense.pay"
    enum Result: String, Codable {
        case paid, refused, expired
    }
    var who: String
    var cents: Int
}

func handleExpenses(_ worker: Worker) {
    worker.handle(workflow: PayExpense.self) { expense, context in
        if expense.cents > 10_000 {
            let answer = try await context.approval("manager", of: expense, timeout: .seconds(7 * 86_400))
            guard let answer else { return .expired }
            guard answer.approved else { return .refused }
        }
        try await context.step("pay") { print("  \(expense.who) gets \(expense.cents) cents") }
        return .paid
    }
}

func approval(_ place: Workplace) async throws {
    let expenses = [("ada", 900), ("bob", 50_000), ("eve", 70_000)]
    var handles: [WorkflowHandle<PayExpense>] = []
    for (who, cents) in expenses {
        handles.append(try await place.millrace.start(PayExpense(who: who, cents: cents), id: "expense-\(who)"))
    }
    _ = try await place.bench.drain()
    // As `millrace approvals answer` does, or a page of your own. Nobody answers eve.
    for question in try await place.millrace.approvals() {
        guard try question.request(as: PayExpense.self).who == "bob" else { continue }
        try await place.millrace.answer(question.id, approved: true, by: "carol")
    }
    try await place.finish(handles.map(\.job), step: .seconds(4 * 86_400))
    for handle in handles { print("\(handle.id): \(try await handle.result().rawValue)") }
}
