import Foundation

/// Decides what a reader of the feed does next: stream, poll, pause, or end.
struct FeedMachine: Sendable {
    enum Step: Sendable, Equatable {
        case stream(after: Int64?)
        /// One long poll, where streams do not come through.
        case poll(after: Int64)
        /// A poll needs a place to begin.
        case findPosition
        case pause(Duration)
        /// The token is over.
        case renewSignIn
        case end(AppError?)
    }

    /// How a connection ended.
    enum Ending: Sendable {
        /// After it had said that it was ready.
        case cut
        /// The server answered, but no event came, or none could be read.
        case mute
        case failed(AppError)
        case expired
        case finished
    }

    /// After this number of mute streams in a row the reader polls.
    static let muteStreams = 2
    /// After this number of polls a stream is tried again.
    static let pollsBetweenStreams = 20

    private(set) var position: Int64?
    private var mutes = 0
    private var polls = 0
    private var failures = 0
    private var wasRefused = false
    private(set) var wasReady = false
    private var steps: [Step] = []
    private var rules: RetryRules

    init(position: Int64?, rules: RetryRules, polls: Bool = false) {
        self.position = position
        self.rules = rules
        if polls { mutes = Self.muteStreams }
    }

    mutating func next() -> Step {
        if !steps.isEmpty { return steps.removeFirst() }
        guard mutes >= Self.muteStreams else { return .stream(after: position) }
        guard let position else { return .findPosition }
        guard polls < Self.pollsBetweenStreams else {
            (polls, mutes) = (0, Self.muteStreams - 1)
            return .stream(after: position)
        }
        return .poll(after: position)
    }

    mutating func found(_ newest: Int64) { position = newest }

    /// The server says how long its clients should wait at first.
    mutating func told(_ retry: Duration?) {
        if let retry { rules.firstPause = retry }
    }

    /// Polling begins: for the consumer, that is a stream that is open. False: it knows already.
    mutating func beginsPolling() -> Bool {
        defer { wasReady = true }
        return !wasReady
    }

    /// What the consumer gets of this event; nil: nothing.
    mutating func received(_ event: FeedEvent) -> FeedEvent? {
        (failures, wasRefused) = (0, false)
        switch event {
        case .ready(let at):
            (mutes, wasReady) = (0, true)
            position = position ?? at
            return event
        case .change(let change):
            if let position, change.seq <= position { return nil }  // given before
            position = change.seq
            return event
        case .reset(let at):
            position = at
            return event
        }
    }

    /// A poll came back; with nothing new its position is the one that it began at.
    mutating func polled(_ at: Int64) {
        (failures, wasRefused) = (0, false)
        polls += 1
        position = max(position ?? at, at)
    }

    mutating func ended(_ ending: Ending, random: Double) {
        switch ending {
        case .finished: steps = [.end(nil)]
        case .expired: steps = [.renewSignIn]
        case .cut: pause(nil, random)
        case .mute:
            mutes += 1
            if mutes < Self.muteStreams { pause(nil, random) }
        case .failed(let error):
            switch error.kind {
            case .unauthenticated where !wasRefused:
                wasRefused = true
                steps = [.renewSignIn]
            case .unauthenticated, .permissionDenied, .notFound, .invalidInput: steps = [.end(error)]
            case .resourceExhausted, .alreadyExists, .deadlineExceeded, .unavailable, .unknown:
                pause(error.retryAfter, random)
            }
        }
    }

    /// For ever, if need be: a phone can be without a network for days.
    private mutating func pause(_ asked: Duration?, _ random: Double) {
        failures += 1
        steps = [.pause(max(asked ?? .zero, rules.spread(failures, random: random)))]
    }
}
