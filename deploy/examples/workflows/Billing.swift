import Foundation
import Millrace

/// Bills a customer on the first of each month, by the clocks of Berlin. Each month's steps carry its name, so a run that comes back finds
/// its place. A job has at most 1,000 steps: one that never ends bills a year, and then spawns the job of the next year.
struct BillMonths: Workflow {
    static let kind = "billing.months"
    typealias Result = Int
    var customer: String
    var year: Int
    var month: Int
    var months: Int
}

func handleBilling(_ worker: Worker) {
    worker.handle(workflow: BillMonths.self) { billing, context in
        var total = 0
        for n in billing.month..<billing.month + billing.months {
            let month = "\(billing.year + n / 12)-\(n % 12 + 1)"
            try await context.until("first of \(month)", local: "\(month)-1 06:00", zone: "Europe/Berlin")
            total += try await context.step("bill \(month)") {
                print("  \(billing.customer) is billed once more")
                return 1900
            }
            try await context.state(total)
        }
        return total
    }
}

func billing(_ place: Workplace) async throws {
    let today = Calendar(identifier: .gregorian).dateComponents([.year, .month], from: Date())
    let months = BillMonths(customer: "ada", year: today.year ?? 2030, month: today.month ?? 1, months: 3)
    let bills = try await place.millrace.start(months, id: "billing-ada")
    try await place.finish([bills.job], step: .seconds(31 * 86_400))
    print("ada paid \(try await bills.result()) cents in three months")
}
