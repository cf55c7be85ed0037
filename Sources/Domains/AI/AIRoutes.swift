/// Whom to ask, one after the other. Pure.
struct AIRoutes: Sendable {
    struct Route: Sendable, Equatable {
        /// The place among the providers.
        var provider: Int
        var model: String
    }

    let routes: [Route]

    /// - Parameter wanted: A model, or provider:model; the others follow with their usual models.
    init(_ providers: [(name: String, model: String)], wanted: String?) {
        var first: Route?
        if let wanted, !providers.isEmpty {
            let named = providers.firstIndex { wanted.hasPrefix($0.name + ":") }
            first = Route(
                provider: named ?? 0,
                model: named.map { String(wanted.dropFirst(providers[$0].name.count + 1)) } ?? wanted)
        }
        let usual = providers.indices.map { Route(provider: $0, model: providers[$0].model) }
        // A provider's usual model also stands in for the wanted one, if that is another.
        routes = (first.map { [$0] } ?? []) + usual.filter { $0 != first }
    }
}
