import FoundationEssentials
public import Jobs
import Synchronization

/// What runs on a ``TestBench`` record without a database: steps, progress, lines of log, what they publish, a result.
///
/// ```swift
/// let notes = RunNotes()
/// await #expect(throws: Declined.self) { try await bench.run(Order(id: 7), notes: notes) }
/// #expect(notes.steps == ["reserve"])
/// #expect(try await bench.run(Order(id: 7), attempt: 2, notes: notes) == .done)        // "reserve" is skipped
/// #expect(try notes.result(as: Receipt.self)?.total == 12)
/// ```
public final class RunNotes: Sendable {
    private struct State {
        var order: [String] = []
        var values: [String: [UInt8]] = [:]
        var progress: [JobProgress] = []
        var lines: [LogLine] = []
        var result: [UInt8]?
        var spawned: [(kind: String, args: [UInt8])] = []
        var earlier: [EarlierJob] = []
        var published: [(key: String?, value: [UInt8])] = []
        var output: [UInt8]?
    }

    private let state = Mutex(State())

    /// Nothing yet.
    public init() {}

    /// The names of the recorded steps, in the order in which they were recorded.
    public var steps: [String] { state.withLock { $0.order } }

    /// Everything that was reported, in order.
    public var progress: [JobProgress] { state.withLock { $0.progress } }

    /// Every line, in order.
    public var lines: [LogLine] { state.withLock { $0.lines } }

    /// The value on record for a step; nil when there is none.
    public func step<Value: Decodable>(_ name: String, as type: Value.Type) throws -> Value? {
        try state.withLock { $0.values[name] }.map { try JSONDecoder().decode(type, from: Data($0)) }
    }

    /// The result of the last run; nil when it gave none.
    public func result<Value: Decodable>(as type: Value.Type) throws -> Value? {
        try state.withLock { $0.result }.map { try JSONDecoder().decode(type, from: Data($0)) }
    }

    /// The jobs of a kind that runs have spawned, in order.
    public func spawned<Work: Job>(_ type: Work.Type) throws -> [Work] {
        try state.withLock { $0.spawned }.filter { $0.kind == Work.kind }.map {
            try JSONDecoder().decode(type, from: Data($0.args))
        }
    }

    /// What runs have published, in order.
    public func published<Value: Decodable>(as type: Value.Type) throws -> [Value] {
        try state.withLock { $0.published }.map { try JSONDecoder().decode(type, from: Data($0.value)) }
    }

    /// The last state that a run has given; nil when there is none.
    public func state<Value: Decodable>(as type: Value.Type) throws -> Value? {
        try state.withLock { $0.output }.map { try JSONDecoder().decode(type, from: Data($0)) }
    }

    /// Sets the results of the jobs that the run waited for, in their order.
    public func follow(_ results: [some Encodable]) throws {
        let texts = try results.map { Array(try JSONEncoder().encode($0)) }
        state.withLock { state in
            state.earlier = texts.enumerated().map {
                EarlierJob(id: Int64($0.offset + 1), succeeded: true, result: $0.element)
            }
        }
    }

    func keep(result: [UInt8]?) {
        state.withLock { $0.result = result }
    }

    var abilities: Abilities {
        Abilities(
            steps: { _ in self.state.withLock { $0.values } },
            record: { _, name, value in
                self.state.withLock { state in
                    if let earlier = state.values[name] { return earlier }
                    state.order.append(name)
                    state.values[name] = value
                    return value
                }
            },
            progress: { _, progress in self.state.withLock { $0.progress.append(progress) } },
            line: { _, line in self.state.withLock { $0.lines.append(line) } },
            spawn: { _, spawned in
                self.state.withLock { state in
                    for args in spawned.args { state.spawned.append((spawned.kind, args)) }
                    return Int64(state.spawned.count)
                }
            },
            recordUndoable: { _, name, value in
                self.state.withLock { state in
                    if let earlier = state.values[name] { return earlier }
                    state.order.append(name)
                    state.values[name] = value
                    return value
                }
            },
            undone: { _ in },
            wait: { _, request in
                self.state.withLock { state in
                    if let value = state.values[request.step] { return value }
                    // In a test no time passes; nobody signals, answers or works.
                    guard request.what == .time else { return nil }
                    state.order.append(request.step)
                    state.values[request.step] = Array("null".utf8)
                    return Array("null".utf8)
                }
            },
            publish: { _, value, key, _ in
                self.state.withLock { state in
                    if let key, state.published.contains(where: { $0.key == key }) { return }
                    state.published.append((key, value))
                }
            },
            putState: { _, value in self.state.withLock { $0.output = value } },
            earlier: { _, after in after > 0 ? [] : self.state.withLock { $0.earlier } },
            changed: { context, step, _ in
                self.state.withLock { state in
                    // A later attempt began with earlier code.
                    let answer = context.attempt == 1
                    state.order.append(step)
                    state.values[step] = Array((answer ? "true" : "false").utf8)
                    return answer
                }
            })
    }
}
