public import Foundation

/// Something the person did, to be told to the gateway once it can be reached. Its id makes it happen once.
public struct QueuedOperation: Sendable, Hashable, Codable, Identifiable {
    /// Names it for ever: what is done twice by one id is done once.
    public let id: UUID
    /// The door, such as `check_in`.
    public let op: String
    /// When it happened, by the phone's clock.
    public let at: Date
    /// The door's parameters by their names.
    public let args: [String: AppValue]

    /// Parameters that are null are left out.
    public init(_ op: String, _ args: [String: AppValue], at: Date = Date(), id: UUID = UUID()) {
        // To the microsecond, as it is written: what is read again is the same.
        (self.id, self.op, self.args) = (id, op, args.filter { $0.value != .null })
        self.at = InstantCoding.date(InstantCoding.text(at)) ?? at
    }

    /// Somebody may be in danger: goes before all else.
    public var isUrgent: Bool { Self.isUrgent(op) }

    /// Whether this function is one of check-ins and alarms. Such a call is made first, and whatever the breaker says.
    static func isUrgent(_ op: String) -> Bool { op.hasPrefix("check_in") }
}

/// What became of an operation.
public struct OperationOutcome: Sendable, Hashable {
    /// How an operation ended.
    public enum Word: String, Sendable {
        /// It is done.
        case applied
        /// It was done before, by this id.
        case same
        /// This id was used for something else, or the thing has changed meanwhile.
        case conflict
        /// The rules of the domain do not allow it.
        case refused
    }

    /// What it was.
    public let operation: QueuedOperation
    /// How it ended.
    public let word: Word
    /// Why, when it was not done.
    public let error: AppError?
    /// What the door returned.
    public let result: AppValue?

    /// Parameters that are null are left out.
    public init(_ operation: QueuedOperation, _ word: Word, error: AppError? = nil, result: AppValue? = nil) {
        (self.operation, self.word, self.error, self.result) = (operation, word, error, result)
    }
}

extension OperationOutcome {
    /// Something newer on the same thing is in force; nothing has changed.
    public var isSuperseded: Bool { result?["superseded"] == .bool(true) }
}

/// What became of a call that can be made without a network.
public enum Submission<Value: Sendable>: Sendable {
    /// The gateway has it, and this is its answer.
    case done(Value)
    /// It is on disk, and will be told when the gateway can be reached. The queue's outcomes say then what became of this operation.
    case queued(UUID)
    /// It was told after something newer on the same thing, which stays in force.
    case superseded

    /// nil while it waits, and when something newer is in force.
    public var value: Value? { if case .done(let value) = self { value } else { nil } }
    /// Whether it waits.
    public var isQueued: Bool { if case .queued = self { true } else { false } }
}

extension Submission: Equatable where Value: Equatable {}
