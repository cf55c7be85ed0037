import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// Reads one path of the feed for as long as somebody wants it.
struct FeedReader: Sendable {
    let calls: AppCalls
    let path: String
    var topics: [String] = []
    /// Polls from the beginning, as where streams do not come through.
    var polls = false

    private static let pollSeconds = 30
    private static let waiting = 256
    private static let refusalBytes = 65_536

    /// The reader keeps at most 256 events that nobody has taken, and reads on when there is room.
    func events(since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error> {
        AsyncThrowingStream(keeping: .bufferingOldest(Self.waiting)) { try await run(position, $0) }
    }

    private typealias Consumer = AsyncThrowingStream<FeedEvent, any Error>.Continuation

    private func run(_ position: Int64?, _ consumer: Consumer) async throws {
        var machine = FeedMachine(position: position, rules: calls.configuration.retry, polls: polls)
        var token = ""
        while true {
            try Task.checkCancellation()
            switch machine.next() {
            case .end(nil): return
            case .end(let error?): throw error
            case .pause(let pause): try await calls.pauses.sleep(pause)
            case .renewSignIn:
                await attempt(&machine) { _ in token = try await calls.tokens.token(insteadOf: token) }
            case .findPosition:
                await attempt(&machine) { machine in
                    let found = try await calls.ask("feed_position", as: OneRow<FeedPosition>.self)
                    machine.found(found.row.newest)
                }
            case .poll(let after):
                await attempt(&machine) { machine in try await poll(after, &machine, consumer) }
            case .stream(let after):
                await attempt(&machine) { machine in
                    token = try await calls.tokens.token()
                    let ending = try await stream(after, token, &machine, consumer)
                    machine.ended(ending, random: calls.pauses.random())
                }
            }
        }
    }

    /// What goes wrong is for the machine to judge.
    private func attempt(_ machine: inout FeedMachine, _ body: (inout FeedMachine) async throws -> Void) async {
        do {
            try await body(&machine)
        } catch {
            let error = AppError.from(error) as? AppError ?? AppError(.unknown, "\(error)")
            machine.ended(.failed(error), random: calls.pauses.random())
        }
    }

    // MARK: streaming

    private func stream(
        _ after: Int64?, _ token: String, _ machine: inout FeedMachine, _ consumer: Consumer
    ) async throws -> FeedMachine.Ending {
        var request = AppCalls.Request(name: path, url: calls.address(path, topicQuery))
        request.headers["Accept"] = "text/event-stream"
        if let after { request.headers["Last-Event-ID"] = String(after) }
        request.patience = calls.configuration.heartbeatPatience
        let id = UUID().uuidString.lowercased()
        let connection = StreamConnection(calls.made(request, token: token, id: id))
        defer { connection.close() }
        var parser = ServerEventParser()
        var isReady = false
        var refusal: HTTPAnswer?
        do {
            for try await part in connection.parts {
                switch part {
                case .answered(let answer) where !answer.isSuccess: refusal = answer
                case .bytes(let bytes) where refusal != nil:
                    refusal = refusal?.adding(bytes, upTo: Self.refusalBytes)
                case .answered(let answer):
                    guard answer.header("content-type")?.hasPrefix("text/event-stream") == true else { return .mute }
                case .bytes(let bytes):
                    for event in try parser.read(bytes) {
                        if event.name == "end" { return try Self.ending(event) }
                        guard let read = try Self.read(event) else { continue }
                        if !isReady { calls.breaker.end(.urgent, .answered) }
                        isReady = true
                        machine.told(parser.retry)
                        if let wanted = machine.received(read) { try await give(wanted, consumer) }
                    }
                }
            }
        } catch let error as URLError where error.code == .timedOut && !isReady && refusal == nil {
            return .mute
        } catch {
            try Task.checkCancellation()
            guard isReady || refusal != nil else { throw AppError.from(error, requestID: id) }
        }
        try Task.checkCancellation()
        if let refusal { throw AppError(refusal, requestID: id) }
        return isReady ? .cut : .mute
    }

    private var topicQuery: [URLQueryItem] {
        topics.isEmpty ? [] : [URLQueryItem(name: "topics", value: topics.joined(separator: ","))]
    }

    static func read(_ event: ServerEvent) throws -> FeedEvent? {
        let data = Data(event.data.utf8)
        switch event.name {
        case "change": return .change(try AppJSON.decode(FeedChange.self, from: data))
        case "ready": return .ready(position: try AppJSON.decode(Place.self, from: data).position)
        case "reset": return .reset(position: try AppJSON.decode(Place.self, from: data).position)
        case "job": return try Self.read(job: event, data)
        default: return nil
        }
    }

    /// How a job stands, as a change.
    private static func read(job event: ServerEvent, _ data: Data) throws -> FeedEvent? {
        guard let seq = event.id.flatMap({ Int64($0) }) else { return nil }
        let told = try AppJSON.decode(AppValue.self, from: data)
        return .change(
            FeedChange(
                seq: seq, at: Date(timeIntervalSince1970: Double(seq) / 1e6), topic: "jobs",
                ref: told["id"]?.int.map { String($0) } ?? "", change: told["state"]?.string ?? "", data: told))
    }

    static func ending(_ event: ServerEvent) throws -> FeedMachine.Ending {
        switch try AppJSON.decode(Reason.self, from: Data(event.data.utf8)).reason {
        case "expired": .expired
        case "ended", "finished", "done": .finished
        default: .cut
        }
    }

    /// Waits while the consumer has no room.
    private func give(_ event: FeedEvent, _ consumer: Consumer) async throws {
        while case .dropped = consumer.yield(event) { try await Task.sleep(for: .milliseconds(50)) }
    }

    // MARK: polling

    private func poll(_ after: Int64, _ machine: inout FeedMachine, _ consumer: Consumer) async throws {
        var request = AppCalls.Request(
            name: path,
            url: calls.address(
                path,
                topicQuery + [
                    URLQueryItem(name: "since", value: String(after)),
                    URLQueryItem(name: "wait", value: String(Self.pollSeconds)),
                ]))
        request.patience = calls.configuration.patience + .seconds(Self.pollSeconds)
        request.retry = RetryRules.none
        if machine.beginsPolling() { try await give(.ready(position: after), consumer) }
        let polled: Polled = try AppCalls.decoded(try await calls.send(request))
        if polled.reset == true, let event = machine.received(.reset(position: after)) {
            try await give(event, consumer)
        }
        for change in polled.events {
            if let event = machine.received(.change(change)) { try await give(event, consumer) }
        }
        machine.polled(polled.position)
    }

    private struct Place: Decodable {
        let position: Int64
    }
    private struct Reason: Decodable {
        let reason: String?
    }
    private struct Polled: Decodable {
        let events: [FeedChange]
        let position: Int64
        let reset: Bool?
    }
}

/// Between which numbers the feed holds changes.
struct FeedPosition: Sendable, Decodable {
    let newest: Int64
    let oldest: Int64
}
