import JSON
import Listeners

/// The paths of streams.
package struct StreamRoutes: Sendable {
    package let feed: FeedStreams
    package let jobs: JobStreams

    package init(feed: FeedStreams, jobs: JobStreams) {
        self.feed = feed
        self.jobs = jobs
    }

    /// As the gateway's table has them.
    package var table: [GatewayRoute] {
        func parameter(_ name: String, _ about: String, _ schema: JSONValue) -> GatewayRoute.Parameter {
            GatewayRoute.Parameter(name, .query, about, schema: schema)
        }
        let query = [
            GatewayRoute.Parameter("Last-Event-ID", .header, "The id of the last event that was processed."),
            parameter("since", "The same, where no header can be set.", ["type": "integer", "minimum": 0]),
            parameter(
                "wait", "Long polling: waits for an event for this number of seconds, and answers with JSON.",
                ["type": "integer", "minimum": 1, "maximum": 60]),
        ]
        let answers = [GatewayRoute.Answer(200, "Server-sent events.", type: "text/event-stream")]
        func route(
            _ path: String, _ summary: String, _ more: [GatewayRoute.Parameter],
            _ handle: @escaping @Sendable (Request, GatewayCaller) async throws -> Response
        ) -> GatewayRoute {
            GatewayRoute(.get, path, summary, parameters: more + query, answers: answers, limit: 0) { call in
                try await handle(call.request, call.caller)
            }
        }
        func id(_ about: String) -> GatewayRoute.Parameter { GatewayRoute.Parameter("id", .path, about) }
        return [
            route(
                "/v1/me/events", "Streams what changes for the caller",
                [parameter("topics", "Some topics, separated by commas.", ["type": "string"])], feed.mine),
            route(
                "/v1/documents/{id}/events", "Streams what changes in a document", [id("The document.")], feed.document),
            route("/v1/lessons/{id}/events", "Streams what changes in a lesson", [id("The lesson.")], feed.lesson),
            route("/v1/jobs/{id}/events", "Streams how a job of the caller goes on", [id("The job.")], jobs.job),
        ]
    }
}
