import Queues

/// The result of a redrive of dead jobs.
public struct Redriven: Sendable, Equatable {
    /// Jobs that wait again.
    public private(set) var retried = 0
    /// Jobs that were left dead, for another job holds their unique key.
    public private(set) var refused = 0
    /// Jobs that cannot run again, for their arguments are no longer kept.
    public private(set) var withoutArguments = 0

    init() {}

    mutating func add(_ outcome: DeedResult.Outcome) {
        switch outcome {
        case .done: retried += 1
        case .refused: refused += 1
        case .dropped: withoutArguments += 1
        case .nothing, .notFound: break
        }
    }
}
