/// How long a connection may take for its present step. No I/O: OpenConnections reads `deadline` and cuts the connection.
struct ConnectionDeadline: Sendable {
    package struct Limits: Sendable {
        /// Between connecting, or the last answer, and the end of the next headers.
        var head = Duration.seconds(15)
        /// For each 16 KiB of a body in either direction; a body of known length gets all of its time at once.
        var stall = Duration.seconds(20)
        static let step = 16_384
    }

    enum State: Sendable {
        /// → receiving, busy
        case waiting(until: ContinuousClock.Instant)
        /// → receiving, busy
        case receiving(bytes: Int, until: ContinuousClock.Instant)
        /// A handler is working. → receiving, sending, waiting
        case busy
        /// → busy, sending, waiting
        case sending(until: ContinuousClock.Instant)
    }

    let limits: Limits
    private(set) var state: State

    init(_ limits: Limits, at now: ContinuousClock.Instant) {
        self.limits = limits
        state = .waiting(until: now + limits.head)
    }

    var deadline: ContinuousClock.Instant? {
        switch state {
        case .waiting(let until), .receiving(_, let until), .sending(let until): until
        case .busy: nil
        }
    }

    /// May make room for another.
    var isWaiting: Bool {
        switch state {
        case .waiting: true
        case .receiving, .busy, .sending: false
        }
    }

    mutating func received(_ bytes: Int, at now: ContinuousClock.Instant) {
        switch state {
        case .receiving(let before, let until):
            let all = before + bytes
            state =
                all >= Limits.step
                ? .receiving(bytes: 0, until: now + limits.stall) : .receiving(bytes: all, until: until)
        case .waiting, .busy, .sending: state = .receiving(bytes: bytes, until: now + limits.stall)
        }
    }

    mutating func handedOver() { state = .busy }

    /// nil: the next piece of an answer of unknown length.
    mutating func sends(_ bytes: Int?, at now: ContinuousClock.Instant) {
        let steps = bytes.map { min($0 / Limits.step, 1_000_000) + 1 } ?? 1
        state = .sending(until: now + limits.stall * steps)
    }

    mutating func completed(at now: ContinuousClock.Instant) {
        state = .waiting(until: now + limits.head)
    }
}
