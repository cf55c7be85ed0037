public import FoundationEssentials

extension Context {
    /// The metadata object given at enqueue, as a value; nil when there is none. Throws what `JSONDecoder` does when it does not fit.
    public func metadata<Value: Decodable>(as type: Value.Type) throws -> Value? {
        guard let metadata else { return nil }
        return try JSONDecoder().decode(type, from: Data(metadata))
    }

    /// The name of the schedule that has enqueued the job; nil when none has.
    public var schedule: String? { fire?.schedule }

    /// The time of its schedule that the job stands for, which is not when it runs: that may be later. nil when no schedule has
    /// enqueued it.
    public var fireAt: Date? {
        guard let fire, fire.schedule != nil, let text = fire.fire_at else { return nil }
        return try? Date(text, strategy: .iso8601)
    }

    private var fire: Fire? { try? metadata(as: Fire.self) }

    /// As SQL writes it: millrace.schedule_advance and its like.
    private struct Fire: Decodable {
        var schedule: String?
        var fire_at: String?
    }
}
