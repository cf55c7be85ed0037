import Templates

/// How far a bulk action is.
struct OperationProgress: Sendable {
    /// It runs, is paused, or is being undone.
    let isOpen: Bool
    let label: String
    /// From 0 to 1. An action that was counted as "at least" may reach more than that: its bar waits before the end.
    let share: Double
    let says: String

    init(_ operation: TemplateValue) {
        let state = operation.text("state") ?? ""
        func count(_ name: String) -> Int { operation.int(name) ?? 0 }
        isOpen = ["running", "undoing", "paused"].contains(state)
        if operation.isTrue("is_undoing") {
            let (gone, all) = (count("undone") + count("past"), count("done"))
            label = "Undone"
            share = all == 0 ? 1 : min(1, Double(gone) / Double(all))
            says = "\(Figures.count(gone)) of \(Figures.count(all))"
        } else {
            let (come, all) = (count("done") + count("nothing") + count("refused"), count("jobs"))
            let isExact = operation.isTrue("is_exact")
            label = "Done"
            share = isOpen ? (all == 0 ? 0 : min(isExact ? 1 : 0.95, Double(come) / Double(all))) : 1
            says = "\(Figures.count(come)) of \(isExact ? "" : "at least ")\(Figures.count(max(all, come)))"
        }
    }
}
