import Subscriptions

extension Doctor {
    /// - Parameter hears: the stores whose messages a worker with these settings can check.
    static func judge(_ state: SubscriptionAdmin.State, hears: [String]) -> Check.Result {
        let deaf = state.stores.filter { !hears.contains($0) }
        if let store = deaf.first {
            let advice =
                store == "apple"
                ? "set MILLRACE_APP_STORE_BUNDLE and MILLRACE_APP_STORE_ROOT_FILES for the worker that listens"
                : "set STRIPE_WEBHOOK_SECRET for the worker that listens"
            return .warning("plans have products of \(store), and its messages cannot be checked here", advice: advice)
        }
        if state.late > 0 {
            return .warning(
                "\(state.late) should have changed by now", advice: "let a worker serve the queue subscriptions")
        }
        if state.unplanned > 0 {
            return .warning(
                "\(state.unplanned) are of products that no plan has",
                advice: "see millrace subscriptions list --state active; millrace subscriptions plans set … --product")
        }
        if state.unowned > 0 {
            return .warning(
                "nobody knows whose \(state.unowned) are",
                advice: "see millrace subscriptions list; millrace subscriptions link")
        }
        return .ok(state.stores.isEmpty ? "no store" : "of \(state.stores.joined(separator: " and "))")
    }
}
