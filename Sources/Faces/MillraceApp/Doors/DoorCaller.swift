public import Foundation

/// Calls the functions that apps may call. `AppClient.call` and the services below it stand on this; an app's own double needs these five.
public protocol DoorCaller: Sendable {
    /// Who is signed in.
    var person: String { get }
    /// The function's answer. `once`: it changes something, and the gateway does it once however often the request arrives.
    func answer(_ door: String, _ arguments: [String: AppValue], once: Bool) async throws -> AppValue
    /// The same for what can wait for the network: by the queue where there is one, else at once.
    /// - Parameters:
    ///   - at: when it happened, for a function that takes it.
    ///   - id: the operation's: the same thing said again is the same operation.
    func submit(
        _ door: String, _ arguments: [String: AppValue], at: Date?, id: UUID
    ) async throws -> Submission<AppValue>
    /// What changes for the person.
    func changes(_ topics: Set<FeedTopic>, since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error>
    /// How a job of the person's goes on, until it has ended.
    func changes(ofJob id: Int64) -> AsyncThrowingStream<FeedEvent, any Error>
}

extension AppClient {
    /// Calls any function that apps may call, by its name and those of its parameters. `/v1/openapi.json` of a gateway lists all that there are.
    ///
    /// It is done once, however often the request has to be made. What is read may be read with `once: false`, which costs the gateway less.
    public func call<Answer: Decodable>(
        _ door: String, arguments: [String: AppValue] = [:], as type: Answer.Type = Answer.self, once: Bool = true
    ) async throws -> Answer {
        try AppJSON.answer(of: door, try await doors.answer(door, arguments, once: once))
    }

    /// The same for what can wait for the network. Only some functions can: the guide *Working offline* lists them.
    public func submit<Answer: Decodable & Sendable>(
        _ door: String, arguments: [String: AppValue] = [:], at: Date? = nil, id: UUID = UUID(),
        as type: Answer.Type = Answer.self
    ) async throws -> Submission<Answer> {
        try await doors.later(door, arguments, at: at, id: id)
    }
}

/// For the services: parameters that are null are left out, so that the function's own values stand.
extension DoorCaller {
    var me: AppValue { .string(person) }

    func ask<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue] = [:], as type: Value.Type = Value.self
    ) async throws -> Value {
        try AppJSON.answer(of: door, try await answer(door, arguments.filter { $0.value != .null }, once: false))
    }

    func act<Value: Decodable>(
        _ door: String, _ arguments: [String: AppValue] = [:], as type: Value.Type = Value.self
    ) async throws -> Value {
        try AppJSON.answer(of: door, try await answer(door, arguments.filter { $0.value != .null }, once: true))
    }

    func later<Value: Decodable & Sendable>(
        _ door: String, _ arguments: [String: AppValue], at: Date? = nil, id: UUID = UUID(),
        as type: Value.Type = Value.self
    ) async throws -> Submission<Value> {
        try await submit(door, arguments.filter { $0.value != .null }, at: at, id: id).map {
            try AppJSON.answer(of: door, $0)
        }
    }

    /// A state, now and after each change of its topic that concerns it.
    func following<Value: Sendable & Equatable>(
        _ topic: FeedTopic, concerns: @escaping @Sendable (FeedChange) -> Bool = { _ in true },
        isLast: @escaping @Sendable (Value) -> Bool = { _ in false },
        read: @escaping @Sendable () async throws -> Value
    ) -> AsyncThrowingStream<Value, any Error> {
        changes([topic], since: nil).following(concerns: concerns, read: read, isLast: isLast).withoutRepeats
    }
}

extension AppJSON {
    static func answer<Value: Decodable>(of door: String, _ value: AppValue) throws -> Value {
        if let value = value as? Value { return value }
        do {
            return try decode(Value.self, from: value)
        } catch {
            throw AppError(.unknown, "the answer of \(door) is not what was expected: \(error)")
        }
    }
}

extension Submission {
    /// The same, with another value.
    public func map<Other: Sendable>(_ change: (Value) throws -> Other) rethrows -> Submission<Other> {
        switch self {
        case .done(let value): .done(try change(value))
        case .queued(let id): .queued(id)
        case .superseded: .superseded
        }
    }
}

extension LiveContext: DoorCaller {
    func answer(_ door: String, _ arguments: [String: AppValue], once: Bool) async throws -> AppValue {
        try AppCalls.decoded(try await calls.call(door, arguments, once: once))
    }

    func submit(
        _ door: String, _ arguments: [String: AppValue], at: Date?, id: UUID
    ) async throws -> Submission<AppValue> {
        try await submit(door, arguments, at: at, id: id, as: AppValue.self)
    }

    func changes(_ topics: Set<FeedTopic>, since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error> {
        LiveFeed(calls: calls).changes(topics, since: position)
    }

    func changes(ofJob id: Int64) -> AsyncThrowingStream<FeedEvent, any Error> {
        FeedReader(calls: calls, path: "v1/jobs/\(id)/events").events(since: nil)
    }
}
