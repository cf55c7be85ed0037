import JSON
import Listeners
import Telemetry
import Threads

extension ConsoleService {
    /// Server-sent events: what has changed since the last look that this page has seen. Its id is epoch and number of the look; a page
    /// that comes back with an old one gets everything.
    func liveStream(_ request: Request) async -> Response {
        guard case .visitor(let visitor) = decide(request), await !isOver(visitor) else {
            return ErrorAnswer(.authentication, "please sign in").response
        }
        let seat: Seat
        do throws(Seats.Refusal) {
            seat = try liveSeats.take(visitor.holder)
        } catch {
            return ErrorAnswer(
                .throttled, "too many live pages are open", hint: "close some", headers: [Header("Retry-After", "30")]
            ).response
        }
        let live = live
        let given = request.headers["Last-Event-ID"] ?? request.query("after") ?? ""
        let epoch = await live.epoch
        let parts = given.split(separator: "-").compactMap { Int($0) }
        let after = parts.count == 2 && parts[0] == epoch ? parts[1] : 0
        // fleet, or job:42:running or operation:7:running, which say the state that the page shows.
        let topic = (request.query("topic") ?? "fleet").split(separator: ":").map(String.init)
        let number = topic.count > 1 ? Int64(topic[1]) : nil
        let job = topic.first == "job" ? number : nil
        let operation = topic.first == "operation" ? number : nil
        let page = job.map { "job.\($0)." } ?? operation.map { "operation.\($0)." }
        let shown = topic.count > 2 ? topic[2] : nil
        let log = log
        return Response(
            headers: [Header("Content-Type", "text/event-stream"), Header("X-Accel-Buffering", "no")] + layout.headers,
            body: .stream { writer in
                defer { seat.leave() }
                await live.joined(watching: job)
                do {
                    try await writer.write(Array("retry: 3000\n\n".utf8))
                    try await Self.follow(live, from: after, epoch, page: page, shown: shown, writer) {
                        await isOver(visitor)
                    }
                } catch {
                    if !(error is CancellationError) {
                        log.info("a live page was cut off", [("error", "\(error)")])
                    }
                }
                await live.left(watching: job)
            })
    }

    /// Without the database nothing is shown that would have to be kept from somebody, and pages wait for it to come back.
    private func isOver(_ visitor: Visitor) async -> Bool {
        guard let session = visitor.session else { return false }
        do {
            return try await sessions.isOver(session, of: visitor, within: EndedSessions.livePatience)
        } catch {
            return false
        }
    }

    private static let longest = Duration.seconds(600)

    private static func follow(
        _ live: LiveLook, from start: Int, _ epoch: Int, page: String?, shown state: String?, _ writer: BodyWriter,
        isOver: () async -> Bool
    ) async throws {
        var number = start
        var shown: [String: String] = [:]
        if let page, let state { shown[page + "state"] = state }
        // Then the page comes again, and is admitted again: a session may have ended.
        let opened = ContinuousClock.now
        let end = opened + longest
        while !Task.isCancelled, ContinuousClock.now < end {
            let next = await live.look(after: number, for: .seconds(15))
            if await isOver() { return }
            guard let look = next else {
                try await writer.write(Array(": alive\n\n".utf8))
                continue
            }
            // A page of one job or operation may be newer than a look that began before it was loaded: it must not come again for that.
            if page != nil, look.began < opened {
                number = look.number
                continue
            }
            let isNext = number > 0 && look.number == number + 1 && shown.count > 1
            number = look.number
            if page == nil, isNext, let change = look.change {
                if !change.isEmpty { try await writer.write(change) }
                shown = look.texts
                continue
            }
            guard !look.isLost else {
                shown["verdict"] = "UNKNOWN"
                try await writer.write(Array("event: lost\ndata: {\"verdict\":\"UNKNOWN\"}\n\n".utf8))
                continue
            }
            // A page of a job or an operation shows that one; others show no job.
            let texts = look.texts.filter { name, _ in
                name == "verdict" || (page.map { name.hasPrefix($0) } ?? !name.hasPrefix("job."))
            }
            if let page, let old = shown[page + "state"], let new = texts[page + "state"], old != new {
                // Its page has other parts now.
                try await writer.write(Array("event: reload\ndata: \(new)\n\n".utf8))
                return
            }
            let changed = texts.filter { shown[$0.key] != $0.value }
            let isFirst = shown.count < 2
            shown = texts
            // The first one says that the page is live, even if nothing has changed.
            guard !changed.isEmpty || isFirst else { continue }
            try await writer.write(LiveEvent.bytes(changed, id: "\(epoch)-\(number)"))
        }
    }
}

enum LiveEvent {
    static func bytes(_ texts: [String: String], id: String) -> [UInt8] {
        Array("id: \(id)\nevent: look\ndata: \(JSONLine.object(texts))\n\n".utf8)
    }
}

/// A flat JSON object of texts on one line.
enum JSONLine {
    static func object(_ texts: [String: String]) -> String {
        "{"
            + texts.sorted { $0.key < $1.key }.map { "\(JSONText.quoted($0.key)):\(JSONText.quoted($0.value))" }.joined(
                separator: ",")
            + "}"
    }
}
