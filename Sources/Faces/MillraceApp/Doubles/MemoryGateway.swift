public import Foundation

/// A gateway in memory, for tests and previews of an app. Several people may use one, each by a client of its own.
///
/// It keeps the rules that an app can see: what happens once, who may do what, which points and changes follow. It reads no documents and
/// decodes no pictures; a document's text is its bytes, and so are the files of a picture.
public actor MemoryGateway {
    private var state: MemoryState
    private var trouble = MemoryTrouble()
    private var answers: [String: MemoryAnswer] = [:]
    private var waiting: [(id: UUID, isUrgent: Bool, body: @Sendable (inout MemoryState) throws -> Void)] = []
    private var watchers: [UUID: Watcher] = [:]

    private struct Watcher {
        let person: String
        let topics: Set<String>
        let consumer: AsyncThrowingStream<FeedEvent, any Error>.Continuation
    }

    /// - Parameters:
    ///   - now: the clock; give one that a test moves.
    ///   - makeID: gives ids; a test that compares whole values gives its own.
    public init(
        now: @escaping @Sendable () -> Date = { Date() }, makeID: @escaping @Sendable () -> UUID = { UUID() }
    ) {
        state = MemoryState(now: now, makeID: makeID)
    }

    /// A client of this person.
    /// - Parameter clock: of the person's device; give one that is wrong to see what an app makes of it. nil: that of the gateway.
    public nonisolated func client(for person: String, clock: (@Sendable () -> Date)? = nil) -> AppClient {
        let memory = MemoryContext(gateway: self, person: person, clock: clock)
        return AppClient(
            person: person, documents: MemoryDocuments(memory: memory), pictures: MemoryPictures(memory: memory),
            moods: MemoryMoods(memory: memory),
            hobbies: MemoryHobbies(memory: memory), quests: MemoryQuests(memory: memory),
            chat: MemoryChat(memory: memory), lessons: MemoryLessons(memory: memory),
            families: MemoryFamilies(memory: memory), checkIns: MemoryCheckIns(memory: memory),
            emergency: MemoryEmergency(memory: memory), notifications: MemoryNotifications(memory: memory),
            user: MemoryUser(memory: memory), mail: MemoryMail(memory: memory), feed: MemoryFeed(memory: memory),
            doors: MemoryDoors(memory: memory), queue: nil)
    }

    // MARK: for tests

    /// From now on nothing is reached: calls fail as unavailable, and what can wait is queued.
    public func goOffline() { trouble.isOffline = true }

    /// Does what was queued, check-ins first.
    public func comeBack() {
        trouble.isOffline = false
        let queued = waiting.filter(\.isUrgent) + waiting.filter { !$0.isUrgent }
        waiting = []
        for one in queued { _ = try? change(one.body) }
    }

    /// The next calls fail with this error, one after the other; of a function, only its calls.
    public func failNext(_ times: Int = 1, with error: AppError, of door: String? = nil) {
        trouble.next += Array(repeating: (door, error), count: max(0, times))
    }

    /// From now on calls fail with this error, until `recover`; of a function, only its calls.
    public func failAlways(with error: AppError, of door: String? = nil) { trouble.always.append((door, error)) }

    /// No call fails or is slow any more. What was counted stays.
    public func recover() { (trouble.next, trouble.always, trouble.pause) = ([], [], nil) }

    /// From now on each call takes this long. A test gives a `sleep` of its own and so waits for nothing.
    public func beSlow(
        by pause: Duration,
        sleep: @escaping @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }
    ) {
        trouble.pause = { try await sleep(pause) }
    }

    /// How often a function was called, also where the call failed; without a name, how often any was. What was queued counts when it is queued.
    public func calls(of door: String? = nil) -> Int {
        door.map { trouble.counts[$0, default: 0] } ?? trouble.counts.values.reduce(0, +)
    }

    /// The functions that were called, by name.
    public var calledDoors: [String] { trouble.counts.keys.sorted() }

    /// Counts from 0 again.
    public func forgetCalls() { trouble.counts = [:] }

    /// What a function answers, of which this double knows no rules, or others than the test wants.
    public func answer(
        _ door: String,
        _ answer: @escaping @Sendable (_ person: String, _ arguments: [String: AppValue]) throws -> AppValue
    ) {
        answers[door] = answer
    }

    /// Whether registered documents are read at once; true at first.
    public func readDocuments(_ atOnce: Bool) { state.readsDocuments = atOnce }

    /// A document has been read, or could not be: nil.
    public func finish(document id: UUID, text: String?) throws {
        try change { try $0.finish(id, text: text) }
    }

    /// Whether the files of pictures are made at once; true at first.
    public func makePictures(_ atOnce: Bool) { state.makesPictures = atOnce }

    /// The files of a picture have been made; with a reason: they could not be.
    public func finish(picture id: UUID, reason: String? = nil) throws {
        try change { try $0.finish(picture: id, reason: reason) }
    }

    /// What a model made of a document.
    public func put(_ analysis: DocumentAnalysis) { state.analyses[analysis.document] = analysis }

    /// Whether a flag is on; off at first.
    public func setFlag(_ flag: String, _ isOn: Bool) {
        if isOn { state.flags.insert(flag) } else { state.flags.remove(flag) }
    }

    /// What a model asks on the cards of a fact.
    public func put(question: String, onCard card: UUID) { state.cards[card]?.question = question }

    /// A contact has followed the link that it got.
    public func agree(_ contact: String, of person: String) {
        state.contacts[person]?[contact]?.consent = "given"
    }

    /// The place that an alarm of this person would show.
    public func place(of person: String) -> CheckInPlace? { state.whereabouts[person] }

    /// A mail that the app's server sent for this person.
    public func put(_ mail: MailProgress, of person: String) {
        try? change {
            $0.mails[mail.id] = (person, mail)
            $0.changed(.mail, mail.id.uuidString.lowercased(), mail.status, for: [person])
        }
    }

    // MARK: calls

    func ask<Value>(_ door: String, _ body: @Sendable (MemoryState) throws -> Value) async throws -> Value {
        try await reach(door)
        return try body(state)
    }

    func act<Value>(_ door: String, _ body: @Sendable (inout MemoryState) throws -> Value) async throws -> Value {
        try await reach(door)
        return try change(body)
    }

    func submit<Value: Sendable>(
        _ door: String, _ body: @escaping @Sendable (inout MemoryState) throws -> Value
    ) async throws -> Submission<Value> {
        if trouble.isOffline {
            trouble.counts[door, default: 0] += 1
            let id = state.makeID()
            waiting.append((id, door.hasPrefix("check_in"), { _ = try body(&$0) }))
            return .queued(id)
        }
        return .done(try await act(door, body))
    }

    /// By the test's own answer, or the rules of this double.
    func call(_ door: String, _ arguments: [String: AppValue], by person: String) async throws -> AppValue {
        try await reach(door)
        if let answer = answers[door] { return try answer(person, arguments) }
        return try change { try $0.answer(door, arguments, by: person) }
    }

    func submit(
        _ door: String, _ arguments: [String: AppValue], id: UUID, by person: String
    ) async throws -> Submission<AppValue> {
        if trouble.isOffline {
            trouble.counts[door, default: 0] += 1
            let answer = answers[door]
            let isUrgent = door.hasPrefix("check_in")
            waiting.append(
                (
                    id, isUrgent,
                    { _ = try answer?(person, arguments) ?? $0.answer(door, arguments, by: person) }
                ))
            return .queued(id)
        }
        return .done(try await call(door, arguments, by: person))
    }

    private func reach(_ door: String) async throws {
        trouble.counts[door, default: 0] += 1
        if let pause = trouble.pause { try await pause() }
        try trouble.fail(door)
    }

    /// All of it, or nothing.
    @discardableResult
    private func change<Value>(_ body: (inout MemoryState) throws -> Value) throws -> Value {
        var changed = state
        let value = try body(&changed)
        let new = changed.feed.dropFirst(state.feed.count)
        state = changed
        for (person, change) in new {
            for watcher in watchers.values where watcher.person == person {
                if watcher.topics.isEmpty || watcher.topics.contains(change.topic) {
                    watcher.consumer.yield(.change(change))
                }
            }
        }
        return value
    }

    // MARK: streams

    nonisolated func changes(
        for person: String, _ topics: Set<FeedTopic>, since position: Int64?
    ) -> AsyncThrowingStream<FeedEvent, any Error> {
        AsyncThrowingStream { consumer in
            let id = UUID()
            consumer.onTermination = { _ in Task { await self.forget(id) } }
            Task { await self.watch(id, person, Set(topics.map(\.rawValue)), since: position, consumer) }
        }
    }

    private func watch(
        _ id: UUID, _ person: String, _ topics: Set<String>, since position: Int64?,
        _ consumer: AsyncThrowingStream<FeedEvent, any Error>.Continuation
    ) {
        consumer.yield(.ready(position: position ?? Int64(state.feed.count)))
        if let position {
            for (owner, change) in state.feed where owner == person && change.seq > position {
                if topics.isEmpty || topics.contains(change.topic) { consumer.yield(.change(change)) }
            }
        }
        watchers[id] = Watcher(person: person, topics: topics, consumer: consumer)
    }

    private func forget(_ id: UUID) { watchers[id] = nil }
}

/// What the doubles of one person share.
struct MemoryContext: Sendable {
    let gateway: MemoryGateway
    let person: String
    /// Of the person's device; nil: the gateway's.
    var clock: DeviceClock?
}

typealias MemoryAnswer = @Sendable (String, [String: AppValue]) throws -> AppValue

/// What a test has said goes wrong, and what was called.
struct MemoryTrouble {
    var isOffline = false
    /// Of which function, or of any.
    var next: [(door: String?, error: AppError)] = []
    var always: [(door: String?, error: AppError)] = []
    var pause: (@Sendable () async throws -> Void)?
    var counts: [String: Int] = [:]

    mutating func fail(_ door: String) throws {
        if let index = next.firstIndex(where: { $0.door == nil || $0.door == door }) {
            throw next.remove(at: index).error
        }
        if let found = always.first(where: { $0.door == nil || $0.door == door }) { throw found.error }
        if isOffline { throw AppError(.unavailable, "the gateway cannot be reached") }
    }
}

typealias DeviceClock = @Sendable () -> Date

struct MemoryFeed: FeedClient {
    let memory: MemoryContext

    func changes(_ topics: Set<FeedTopic>, since position: Int64?) -> AsyncThrowingStream<FeedEvent, any Error> {
        memory.gateway.changes(for: memory.person, topics, since: position)
    }

    func pull(since position: Int64) async throws -> FeedPage {
        try await memory.gateway.ask("sync_pull") { state in
            let all = state.feed.filter { $0.person == memory.person && $0.change.seq > position }.map(\.change)
            let page = Array(all.prefix(500))
            let hasMore = all.count > page.count
            return FeedPage(
                events: page, position: hasMore ? page.last?.seq ?? position : Int64(state.feed.count), more: hasMore)
        }
    }
}
