import Postgres
package import RoomKit
import RoomSchemas

extension Room {
    /// What customers have bought.
    package static let subscriptions = Room(
        RoomSchemas.subscriptions, settings: Setting.subscriptions,
        nouns: [
            "subscriptions": "See what customers have bought, and make the plans",
            "subscriptions plans": "List the plans, make and change them, and remove those that nobody has",
        ],
        verbs: [
            .subscriptionsList, .subscriptionsShow, .subscriptionsSet, .subscriptionsLink,
            .subscriptionsPlansList, .subscriptionsPlansSet, .subscriptionsPlansRemove,
        ],
        checks: [
            RoomCheck("subscriptions") { (invocation, connection) async throws(PostgresError) in
                try await SubscriptionAdmin.state(on: connection, deadline: .seconds(5)).judged(
                    hears: invocation.settings.storesHeard, lacksAppID: invocation.settings.appStoreLacksAppID)
            }
        ]
    ) { context in
        let routes = try context.subscriptionRoutes()
        return RoomParts(
            handlers: [context.subscriptionHandler()], routes: routes.all, gauges: { routes.tally.gauges })
    }
}
