import FoundationEssentials
public import MillraceJobs
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
///
/// What a run waits for is given beforehand: a signal, an answer, the results of the jobs that it makes.
///
/// ```swift
/// try notes.signal("paid", key: "order-7", payload: Payment(cents: 1200))
/// try notes.answer("large-order", Approval(approved: true, by: "ada"))
/// try notes.end(Pack.self, with: [Parcel(code: "P-81")])
/// ```
public final class RunNotes: Sendable {
    fileprivate struct State {
        var order: [String] = []
        var values: [String: [UInt8]] = [:]
        var progress: [JobProgress] = []
        var lines: [LogLine] = []
        var result: [UInt8]?
        var spawned: [(kind: String, args: [UInt8])] = []
        var earlier: [EarlierJob] = []
        var published: [(key: String?, value: [UInt8])] = []
        var output: [UInt8]?
        var signals: [SentSignal] = []
        var answers: [String: [UInt8]] = [:]
        var overdue: Set<String> = []
        /// Of the jobs that runs make and wait for, by kind; without a result: it did not succeed.
        var ends: [String: [(succeeded: Bool, result: [UInt8]?)]] = [:]
        /// The steps that have made their jobs.
        var made: Set<String> = []
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

    /// Sends a signal. One run takes it, where it waits for this name and key; a signal to the job alone has no key.
    public func signal(_ name: String, key: String = "", payload: some Encodable) throws {
        let payload = Array(try JSONEncoder().encode(payload))
        state.withLock { $0.signals.append(SentSignal(name: name, key: key, payload: payload)) }
    }

    /// Sends a signal whose payload is `true`.
    public func signal(_ name: String, key: String = "") {
        state.withLock { $0.signals.append(SentSignal(name: name, key: key, payload: Array("true".utf8))) }
    }

    /// Answers the question that a step asks.
    public func answer(_ step: String, _ answer: Approval) throws {
        let value = Array(try JSONEncoder().encode(answer))
        state.withLock { $0.answers[step] = value }
    }

    /// The step waits for its signal or its answer until its time is over.
    public func timeOut(_ step: String) {
        state.withLock { _ = $0.overdue.insert(step) }
    }

    /// The next jobs of a kind that a run makes and waits for succeed, with these results, in their order. The run goes on when all
    /// of its jobs have an end; ``spawned(_:)`` returns them.
    public func end<Work: Job>(_ type: Work.Type, with results: [some Encodable]) throws {
        let texts = try results.map { Array(try JSONEncoder().encode($0)) }
        state.withLock { state in state.ends[Work.kind, default: []] += texts.map { (true, $0) } }
    }

    /// The next job of a kind that a run makes and waits for does not succeed.
    public func fail<Work: Job>(_ type: Work.Type) {
        state.withLock { $0.ends[Work.kind, default: []].append((false, nil)) }
    }

    func keep(result: [UInt8]?) {
        state.withLock { $0.result = result }
    }

    var backend: RunBackend {
        RunBackend(
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
                let asked = try JSONDecoder().decode(AwaitedSignal.self, from: Data(request.options))
                return self.state.withLock { state in
                    if let value = state.values[request.step] { return value }
                    guard let value = state.arrived(request, asked) else { return nil }
                    state.order.append(request.step)
                    state.values[request.step] = value
                    return value
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

/// What a test has signalled.
private struct SentSignal {
    var name: String
    var key: String
    var payload: [UInt8]

    func fits(_ asked: AwaitedSignal) -> Bool {
        // The key of a signal to a job alone names the job, which has no number on the bench.
        name == asked.name && (key == asked.key ?? "" || key.isEmpty && asked.key?.hasPrefix("millrace.job.") == true)
    }
}

/// The options of a wait for a signal; other waits have neither.
private struct AwaitedSignal: Decodable {
    var name: String?
    var key: String?
}

extension RunNotes.State {
    /// What has come for a wait, as the database would record it; nil: nothing yet.
    fileprivate mutating func arrived(_ request: WaitRequest, _ asked: AwaitedSignal) -> [UInt8]? {
        switch request.what {
        case .time: return Array("null".utf8)  // in a test no time passes
        case .jobs: return jobs(request)
        case .signal:
            if let index = signals.firstIndex(where: { $0.fits(asked) }) {
                return Self.told(signals.remove(at: index).payload)
            }
        case .approval:
            if let answer = answers.removeValue(forKey: request.step) { return Self.told(answer) }
        }
        return overdue.remove(request.step).map { _ in Array(#"{"timeout": true}"#.utf8) }
    }

    /// The jobs are made once, and have ended when each has an end.
    private mutating func jobs(_ request: WaitRequest) -> [UInt8]? {
        if made.insert(request.step).inserted { spawned += request.children.map { ($0.kind, $0.args) } }
        var left = ends
        var texts: [String] = []
        for (place, child) in request.children.enumerated() {
            guard var known = left[child.kind], !known.isEmpty else { return nil }
            let end = known.removeFirst()
            left[child.kind] = known
            let result = String(decoding: end.result ?? Array("null".utf8), as: UTF8.self)
            texts.append(#"{"id": \#(place + 1), "succeeded": \#(end.succeeded), "result": \#(result)}"#)
        }
        ends = left
        return Array(#"{"jobs": [\#(texts.joined(separator: ", "))]}"#.utf8)
    }

    private static func told(_ value: [UInt8]) -> [UInt8] {
        Array(#"{"value": "#.utf8) + value + Array("}".utf8)
    }
}
