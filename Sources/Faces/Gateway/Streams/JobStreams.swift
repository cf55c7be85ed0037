package import Listeners
import Threads

/// Answers `/v1/jobs/{id}/events`.
package struct JobStreams: Sendable {
    let hub: JobHub
    let store: FeedStore
    let limits: EventStream.Limits

    package init(hub: JobHub, database: GatewayDatabase) {
        self.hub = hub
        store = FeedStore(database: database)
        limits = EventStream.Limits()
    }

    /// The job's state now, then each change, until it has ended.
    package func job(_ request: Request, as caller: GatewayCaller) async throws -> Response {
        let query = try StreamQuery(request)
        let seat = try hub.seats.streamSeat(of: caller.subject, "streams of jobs")
        guard let id = Int64(request.parameter("id")), try await store.sees(job: id, as: caller) else {
            throw ErrorAnswer(.notFound, "there is no such job", field: "id")
        }
        if request.isHead { return .head(of: query) }
        let since = query.since ?? 0
        guard let wait = query.wait else {
            return Response(
                headers: EventStream.headers,
                body: .stream { writer in
                    defer { seat.leave() }
                    try await writer.write(StreamFrame.ready(at: since))
                    let stream = EventStream(writer, limits)
                    let number = await hub.follow(id, stream, from: since, caller)
                    await stream.wait()
                    await hub.leave(number)
                })
        }
        defer { seat.leave() }
        let poll = LongPoll(request, most: 1)
        let number = await hub.follow(id, poll, from: since, caller, until: .now + wait)
        await poll.wait()
        await hub.leave(number)
        return LongPoll.answer(poll.pieces, poll.pieces.last?.id ?? since, isReset: false)
    }
}
