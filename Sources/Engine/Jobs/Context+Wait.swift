public import FoundationEssentials

/// The run has ended, and its job waits. Thrown by what waits in a handler: let it pass, and do no more work. When the thing has come, a next
/// run begins at the top, gets the recorded value of each step, and goes on behind the wait.
public struct RunHasEnded: Error, CustomStringConvertible {
    /// The step that waits.
    public let step: String

    package init(step: String) {
        self.step = step
    }

    /// Which step waits.
    public var description: String { "the run has ended: its step \(step) waits" }
}

/// What somebody has said to a question.
public struct Approval: Codable, Sendable, Equatable {
    /// Yes or no.
    public let approved: Bool
    /// Who it was.
    public let by: String?
    /// Why.
    public let comment: String?

    /// An answer, for tests.
    public init(approved: Bool, by: String? = nil, comment: String? = nil) {
        (self.approved, self.by, self.comment) = (approved, by, comment)
    }
}

/// Whom to ask next if nobody has answered.
public struct Escalation: Sendable, Equatable {
    let after: Duration
    let people: [String]

    /// - Parameters:
    ///   - after: How long after the question.
    ///   - people: Ids of people, or addresses for mail.
    public init(after: Duration, to people: [String]) {
        (self.after, self.people) = (after, people)
    }
}

/// What a run is about to wait for.
package struct WaitRequest: Sendable {
    package enum What: String, Sendable {
        case time, signal, jobs, approval
    }

    /// A job that the run makes and waits for.
    package struct Child: Sendable {
        package var kind: String
        package var args: [UInt8]
        package var encrypted: Bool
        package var queue: String?
        /// Of the arguments; 0: none.
        package var version = 0
    }

    package var step: String
    package var what: What
    /// A JSON object.
    package var options: [UInt8]
    package var children: [Child] = []
}

/// What a job is told that waits for a signal or an answer.
private struct Told<Value: Decodable>: Decodable {
    /// Nil: the time was over.
    var value: Value?
    var timeout: Bool?

    init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        timeout = try values.decodeIfPresent(Bool.self, forKey: .timeout)
        value = timeout == true ? nil : try values.decode(Value.self, forKey: .value)
    }

    enum CodingKeys: String, CodingKey {
        case value, timeout
    }
}

extension Context {
    /// Shorter ones keep their slot: ending a run and beginning another costs the worker and the database more.
    package static let shortestWait = Duration.seconds(1)

    /// Waits for so long, without a slot, a lease or a process: the run ends, and the job goes on in another run, perhaps elsewhere. A repeated
    /// run waits for the rest of the time.
    ///
    /// ```swift
    /// try await context.sleep("cool-off", for: .seconds(3 * 86_400))
    /// ```
    nonisolated(nonsending) public func sleep(_ step: String, for duration: Duration) async throws {
        guard duration >= Self.shortestWait else {
            return try await self.step(step) { try await Task.sleep(for: max(.zero, duration)) }
        }
        _ = try await waited(step, .time, WaitOptions(seconds: duration / .seconds(1)))
    }

    /// Waits until a time. A time that has passed is no wait.
    nonisolated(nonsending) public func until(_ step: String, _ time: Date) async throws {
        let text = time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
        _ = try await waited(step, .time, WaitOptions(at: text))
    }

    /// Waits until the clocks of a zone show a time.
    ///
    /// ```swift
    /// try await context.until("first-of-month", local: "2027-02-01 09:00", zone: "Europe/Berlin")
    /// ```
    nonisolated(nonsending) public func until(_ step: String, local: String, zone: String) async throws {
        _ = try await waited(step, .time, WaitOptions(local: local, zone: zone))
    }

    /// Waits for a signal of a name and a key: `millrace.signal('payment-received', 'order-7', '{"amount": 12}')`. One that came before counts,
    /// as long as it is kept. Each signal is taken by one job, unless its sender meant all.
    ///
    /// - Parameters:
    ///   - name: What is signalled.
    ///   - key: Which one of them, such as an order's number.
    ///   - type: What its payload is.
    ///   - timeout: After this long it returns nil; without it, it waits for as long as it takes.
    ///   - step: The step's name, if a run waits for the same name and key more than once.
    nonisolated(nonsending) public func event<Value: Decodable & Sendable>(
        _ name: String, key: String = "", as type: Value.Type, timeout: Duration? = nil, step: String? = nil
    ) async throws -> Value? {
        let step = step ?? (key.isEmpty ? name : "\(name) \(key)")
        let told = try await waited(
            step, .signal, WaitOptions(name: name, key: key, seconds: timeout.map { max(.zero, $0) / .seconds(1) }))
        return try decoded(Told<Value>.self, told, step).value
    }

    /// Asks a person, and waits for the answer: `millrace approvals list` shows the question, `millrace approvals answer` answers it, and those
    /// who are notified get a link to a page that does. Nil: nobody answered in time.
    ///
    /// ```swift
    /// let answer = try await context.approval(
    ///     "refund", of: order, timeout: .seconds(7 * 86_400), notify: ["ada"], remind: .seconds(86_400),
    ///     escalate: Escalation(after: .seconds(2 * 86_400), to: ["eve"]))
    /// ```
    ///
    /// - Parameters:
    ///   - step: The step's name. People read it as the question.
    ///   - request: What they are asked about.
    ///   - timeout: After this long it returns nil; without it, it waits for as long as it takes.
    ///   - notify: Who is told at once: ids of people, or addresses for mail.
    ///   - remind: How often those who were told are reminded, a minute at least.
    ///   - escalate: Who is told if nobody has answered by then.
    nonisolated(nonsending) public func approval(
        _ step: String, of request: some Encodable & Sendable, timeout: Duration? = nil, notify: [String] = [],
        remind: Duration? = nil, escalate: Escalation? = nil
    ) async throws -> Approval? {
        let told = try await waited(
            step, .approval,
            Question(
                request: request, seconds: timeout.map { max(.zero, $0) / .seconds(1) },
                notify: notify.isEmpty ? nil : notify, remindSeconds: remind.map { $0 / .seconds(1) },
                escalateSeconds: escalate.map { $0.after / .seconds(1) }, escalateTo: escalate?.people))
        return try decoded(Told<Approval>.self, told, step).value
    }

    /// Enqueues a job and waits for its end. It is enqueued once, however often the run is repeated.
    nonisolated(nonsending) public func child<Work: Job, Value: Decodable & Sendable>(
        _ job: Work, as type: Value.Type, queue: String? = nil, step: String? = nil
    ) async throws -> Earlier<Value> {
        try await children([job], as: type, queue: queue, step: step ?? "child \(Work.kind)")[0]
    }

    /// Enqueues up to a thousand jobs and waits until all of them have ended. In their order.
    nonisolated(nonsending) public func children<Work: Job, Value: Decodable & Sendable>(
        _ jobs: [Work], as type: Value.Type, queue: String? = nil, step: String? = nil
    ) async throws -> [Earlier<Value>] {
        guard !jobs.isEmpty else { return [] }
        let step = step ?? "children \(Work.kind)"
        let children = try jobs.map {
            WaitRequest.Child(
                kind: Work.kind, args: Array(try JSONEncoder().encode($0)), encrypted: Work.encrypted, queue: queue,
                version: Work.version)
        }
        let told = try await waited(step, .jobs, WaitOptions(), children)
        return try decoded(Children<Value>.self, told, step).jobs.map {
            Earlier(id: $0.id, succeeded: $0.succeeded, result: $0.result)
        }
    }

    nonisolated(nonsending) private func waited(
        _ step: String, _ what: WaitRequest.What, _ options: some Encodable, _ children: [WaitRequest.Child] = []
    ) async throws -> [UInt8] {
        guard (1...128).contains(step.unicodeScalars.count), !step.unicodeScalars.contains("\0") else {
            throw StepError.malformedName(step)
        }
        func request() throws -> WaitRequest {
            WaitRequest(
                step: step, what: what, options: Array(try JSONEncoder().encode(options)), children: children)
        }
        if let rehearsing = backend.rehearsing {
            return try await rehearsing.ask(self, RehearsedAsk(step: step, wait: try request()))
        }
        try Task.checkCancellation()
        switch try await turn(step) {
        case .recorded(let value): return value
        case .overlaps: throw StepError.overlapping(name: step)
        case .full: throw StepError.tooMany(name: step)
        case .read, .begin: break
        }
        do {
            if let undo { throw UndoNotReached(step: undo.step, why: "step \(step) before it is not on record") }
            guard let value = try await backend.wait(self, try request()) else {
                markWaiting(at: step)
                throw RunHasEnded(step: step)
            }
            withSteps { $0.settle(step, value) }
            return value
        } catch {
            withSteps { $0.leave(step) }
            throw error
        }
    }

    private func decoded<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8], _ step: String) throws -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(bytes))
        } catch {
            throw undecodable(step, "what has arrived is not of the expected type")
        }
    }
}

private struct Children<Value: Decodable>: Decodable {
    struct One: Decodable {
        var id: Int64
        var succeeded: Bool
        var result: Value?
    }

    var jobs: [One]
}

/// The options of a wait, as the database reads them.
private struct WaitOptions: Encodable {
    var name: String?
    var key: String?
    var seconds: Double?
    var at: String?
    var local: String?
    var zone: String?
}

private struct Question<Request: Encodable>: Encodable {
    var request: Request
    var seconds: Double?
    var notify: [String]?
    var remindSeconds: Double?
    var escalateSeconds: Double?
    var escalateTo: [String]?

    enum CodingKeys: String, CodingKey {
        case request, seconds, notify
        case remindSeconds = "remind_seconds"
        case escalateSeconds = "escalate_seconds"
        case escalateTo = "escalate_to"
    }
}
