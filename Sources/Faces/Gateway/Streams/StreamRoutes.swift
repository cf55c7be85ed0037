package import Listeners

/// The paths of streams.
package struct StreamRoutes: Sendable {
    package let feed: FeedStreams
    package let jobs: JobStreams

    package init(feed: FeedStreams, jobs: JobStreams) {
        self.feed = feed
        self.jobs = jobs
    }

    /// - Parameter access: who calls; throws what the request is to be answered with.
    package func routes(_ access: @escaping @Sendable (Request) async throws -> GatewayCaller) -> [Route] {
        func route(
            _ path: String, _ handle: @escaping @Sendable (Request, GatewayCaller) async throws -> Response
        ) -> Route {
            Route(.get, path, access: .verified, limit: 0) { try await handle($0, try await access($0)) }
        }
        return [
            route("/v1/me/events", feed.mine), route("/v1/documents/{id}/events", feed.document),
            route("/v1/lessons/{id}/events", feed.lesson), route("/v1/jobs/{id}/events", jobs.job),
        ]
    }
}
