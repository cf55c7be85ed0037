package import RoomKit

extension SubscriptionAdmin.State {
    /// - Parameters:
    ///   - hears: the stores whose messages a worker with these settings can check.
    ///   - lacksAppID: Apple's messages of production are believed by their bundle alone.
    package func judged(hears: [String], lacksAppID: Bool = false) -> Check.Result {
        if let store = stores.first(where: { !hears.contains($0) }) {
            return .warning(
                "plans have products of \(store), and its messages cannot be checked here", advice: Self.setUp(store))
        }
        if let store = told.first(where: { !hears.contains($0) }) {
            return .warning("\(store) sends messages, and they cannot be checked here", advice: Self.setUp(store))
        }
        if let refusal = refusal(hears: hears) { return refusal }
        if late > 0 {
            return .warning(
                "\(late) should have changed by now, the oldest \(Humane.duration(.seconds(oldest))) ago",
                advice: "let a worker serve the queue subscriptions")
        }
        if unplanned > 0 {
            return .warning(
                "\(unplanned) are of products that no plan has",
                advice: "see millrace subscriptions list --state active; millrace subscriptions plans set … --product")
        }
        if unowned > 0 {
            return .warning(
                "nobody knows whose \(unowned) are",
                advice: "see millrace subscriptions list; millrace subscriptions link")
        }
        if let plan = bare.first {
            return .warning(
                "the plan \(plan) has no quotas, so it limits nothing",
                advice: "run: millrace subscriptions plans set \(plan) --quota …")
        }
        if lacksAppID {
            return .warning(
                "the App Store's messages are told apart by the bundle alone",
                advice: "set MILLRACE_APP_STORE_APP_ID to the app's number in App Store Connect")
        }
        return .ok(stores.isEmpty ? "no store" : "of \(stores.joined(separator: " and "))")
    }

    /// What was refused within a day. Anybody can send a message without a signature, so nothing old is told.
    private func refusal(hears: [String]) -> Check.Result? {
        guard let newest = refused.filter({ $0.ago < 86_400 }).min(by: { $0.ago < $1.ago }) else { return nil }
        let last = Humane.duration(.seconds(newest.ago))
        let said =
            newest.messages == 1
            ? "a message of \(newest.store) was not taken \(last) ago: \(newest.why)"
            : "\(newest.messages) messages of \(newest.store) were not taken, the last \(last) ago: \(newest.why)"
        guard hears.contains(newest.store) else { return .warning(said, advice: Self.setUp(newest.store)) }
        return .warning(
            said,
            advice: newest.store == "apple"
                ? "compare MILLRACE_APP_STORE_BUNDLE, _APP_ID, _ENVIRONMENTS and _ROOT_FILES with the app's; see the worker's log"
                : "compare STRIPE_WEBHOOK_SECRET with the secret of the endpoint at Stripe; see the worker's log")
    }

    private static func setUp(_ store: String) -> String {
        store == "apple"
            ? "set MILLRACE_APP_STORE_BUNDLE and MILLRACE_APP_STORE_ROOT_FILES for the worker that listens"
            : "set STRIPE_WEBHOOK_SECRET for the worker that listens"
    }
}
