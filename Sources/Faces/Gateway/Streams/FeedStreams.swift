import FoundationEssentials
import JSON
package import Listeners
import Threads

/// Answers the paths of streams: as server-sent events, or as a long poll.
package struct FeedStreams: Sendable {
    let hub: FeedHub
    let limits: EventStream.Limits

    package init(hub: FeedHub) {
        self.init(hub: hub, limits: EventStream.Limits())
    }

    init(hub: FeedHub, limits: EventStream.Limits) {
        self.hub = hub
        self.limits = limits
    }

    /// Everything that concerns the caller: `/v1/me/events`.
    package func mine(_ request: Request, as caller: GatewayCaller) async throws -> Response {
        let query = try StreamQuery(request)
        let seat = try hub.seats.streamSeat(of: caller.subject, "streams")
        return try await answer(request, query, try filter(caller, topics: query.topics), caller, seat)
    }

    /// `/v1/documents/{id}/events`
    package func document(_ request: Request, as caller: GatewayCaller) async throws -> Response {
        let id = request.parameter("id").lowercased()
        let query = try StreamQuery(request)
        let seat = try hub.seats.streamSeat(of: caller.subject, "streams")
        guard UUID(uuidString: id) != nil, try await hub.store.sees(document: id, as: caller) else {
            throw ErrorAnswer(.notFound, "there is no such document", field: "id")
        }
        return try await answer(request, query, try filter(caller, topics: ["documents"], ref: id), caller, seat)
    }

    /// `/v1/lessons/{id}/events`
    package func lesson(_ request: Request, as caller: GatewayCaller) async throws -> Response {
        let id = request.parameter("id")
        guard (1...128).contains(id.unicodeScalars.count) else {
            throw ErrorAnswer(.notFound, "there is no such lesson", field: "id")
        }
        let query = try StreamQuery(request)
        let seat = try hub.seats.streamSeat(of: caller.subject, "streams")
        return try await answer(request, query, try filter(caller, topics: query.topics, lesson: id), caller, seat)
    }

    /// The tenant is found as `millrace.caller_tenant` finds it.
    private func filter(
        _ caller: GatewayCaller, topics: [String]?, ref: String? = nil, lesson: String? = nil
    ) throws -> FeedFilter {
        let claimed = try JSONValue.read(caller.claims)["tenant"] ?? .null
        guard claimed == .null || claimed.text != nil else {
            throw ErrorAnswer(.permission, "the token's claim tenant is not text", field: "Authorization")
        }
        let tenant = claimed.text.flatMap { $0.isEmpty ? nil : $0 } ?? "person:\(caller.subject)"
        return FeedFilter(person: caller.subject, tenant: tenant, topics: topics, ref: ref, lesson: lesson)
    }

    private func answer(
        _ request: Request, _ query: StreamQuery, _ filter: FeedFilter, _ caller: GatewayCaller, _ seat: Seat
    ) async throws -> Response {
        let opening = try await opening(query, filter, caller)
        if request.isHead { return .head(of: query) }
        if let wait = query.wait {
            defer { seat.leave() }
            return try await poll(request, opening, filter, caller, wait)
        }
        return Response(
            headers: EventStream.headers,
            body: .stream { writer in
                defer { seat.leave() }
                try await stream(opening, filter, caller, writer)
            })
    }
}

extension FeedStreams {
    /// Where a reader begins, found before it is answered, so that what the database refuses is an error and no broken stream.
    private struct Opening: Sendable {
        /// It has everything up to here, when it has taken these.
        var position: Int64
        var entries: [FeedEntry] = []
        /// Where the stream began.
        var start: Int64
        var isReset = false
    }

    private func opening(
        _ query: StreamQuery, _ filter: FeedFilter, _ caller: GatewayCaller
    ) async throws -> Opening {
        let now = try await hub.now()
        if let topics = filter.topics, await !hub.knows(topics) {
            _ = try await hub.store.mine(after: now, topics: topics, as: caller)
            await hub.learn(topics)
        }
        guard let since = query.since else { return Opening(position: now, start: now) }
        // What the last entries hold needs no question to the database: after a restart of the proxy all clients come at once.
        if since <= now, await hub.reachesBack(to: since) { return Opening(position: since, start: since) }
        let page = try await page(after: since, filter, caller)
        let bounds = page.bounds
        // 0 is the beginning, wherever that is by now.
        if since != 0, since < bounds.oldest || since > max(bounds.newest, now) {
            let position = since < bounds.oldest ? bounds.oldest : now
            return Opening(position: position, start: position, isReset: true)
        }
        return Opening(position: page.position, entries: page.entries, start: since)
    }

    /// The caller's entries after a position, as the database sees its rights, and up to where they are complete.
    private func page(
        after position: Int64, _ filter: FeedFilter, _ caller: GatewayCaller
    ) async throws -> (entries: [FeedEntry], position: Int64, bounds: FeedStore.Bounds) {
        // Read before: what was read there was committed, so the page cannot lack it. The last number given out says less.
        let read = await hub.position ?? 0
        let (entries, bounds) = try await hub.store.mine(after: position, topics: filter.topics, as: caller)
        let last = entries.last?.seq ?? position
        return (
            entries.filter(filter.takes), entries.count < FeedStore.page ? max(last, read) : last, bounds
        )
    }

    private func stream(
        _ opening: Opening, _ filter: FeedFilter, _ caller: GatewayCaller, _ writer: BodyWriter
    ) async throws {
        try await writer.write(StreamFrame.ready(at: opening.start))
        if opening.isReset { try await writer.write(StreamFrame.reset(to: opening.start)) }
        for entry in opening.entries { try await writer.write(entry.piece.frame) }
        let stream = EventStream(writer, limits)
        var position = opening.position
        while true {
            switch await hub.join(stream, filter, from: position, expires: caller.expires) {
            case .joined(let number):
                await stream.wait()
                await hub.leave(number)
                return
            case .behind(let entries, let next):
                for entry in entries { try await writer.write(entry.piece.frame) }
                position = next
            case .farBehind:
                let page = try await page(after: position, filter, caller)
                for entry in page.entries { try await writer.write(entry.piece.frame) }
                position = page.position
            }
        }
    }

    private func poll(
        _ request: Request, _ opening: Opening, _ filter: FeedFilter, _ caller: GatewayCaller, _ wait: Duration
    ) async throws -> Response {
        var (pieces, position) = (opening.entries.map(\.piece), opening.position)
        let until = ContinuousClock.now + wait
        while pieces.isEmpty, !opening.isReset, !Task.isCancelled {
            let poll = LongPoll(request, most: FeedStore.page)
            switch await hub.join(poll, filter, from: position, expires: caller.expires, until: until) {
            case .joined(let number):
                await poll.wait()
                let complete = await hub.leave(number)
                pieces = poll.pieces
                return LongPoll.answer(pieces, complete ?? pieces.last?.id ?? position, isReset: false)
            case .behind(let found, let next):
                pieces = found.prefix(FeedStore.page).map(\.piece)
                position = pieces.count < found.count ? pieces.last?.id ?? position : next
            case .farBehind:
                let page = try await page(after: position, filter, caller)
                (pieces, position) = (page.entries.map(\.piece), page.position)
            }
        }
        return LongPoll.answer(pieces, position, isReset: opening.isReset)
    }
}
