public import FoundationEssentials

extension Context {
    /// The metadata object given at enqueue, as a value; nil when there is none. Throws the error of `JSONDecoder` when it does not fit.
    public func metadata<Value: Decodable>(as type: Value.Type) throws -> Value? {
        guard let metadata else { return nil }
        return try JSONDecoder().decode(type, from: Data(metadata))
    }

    /// The name of the schedule that enqueued the job; nil when none did.
    public var schedule: String? { fire?.schedule }

    /// The time of its schedule that the job stands for. The job may run later than that. nil when no schedule enqueued it.
    public var fireAt: Date? {
        guard let fire, fire.schedule != nil, let text = fire.fire_at else { return nil }
        return try? Date(text, strategy: .iso8601)
    }

    private var fire: Fire? { try? metadata(as: Fire.self) }

    /// As millrace.schedule_advance and similar functions write it.
    private struct Fire: Decodable {
        var schedule: String?
        var fire_at: String?
    }
}
