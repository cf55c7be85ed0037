import Postgres
import Synchronization

/// Joins calls that come while other statements are on their way into one statement: the busier it is, the more go together. A single call
/// does not wait.
final class StatementBatcher<Item: Sendable, Answer: Sendable>: Sendable {
    typealias Perform = @Sendable ([Item]) async throws -> [Answer]

    private struct Waiting {
        let item: Item
        let continuation: CheckedContinuation<Answer, any Error>
    }

    private struct State {
        var waiting: [Waiting] = []
        var running = 0
    }

    private let most: Int
    private let lanes: Int
    private let clash: @Sendable (Item, Item) -> Bool
    private let perform: Perform
    private let state = Mutex(State())

    /// - Parameters:
    ///   - most: How many go together at most.
    ///   - lanes: How many statements are on their way at once.
    ///   - clash: Whether two items must not go together.
    ///   - perform: Returns as many answers as items, in the same order.
    init(
        most: Int, lanes: Int, clash: @escaping @Sendable (Item, Item) -> Bool = { _, _ in false },
        perform: @escaping Perform
    ) {
        self.most = most
        self.lanes = lanes
        self.clash = clash
        self.perform = perform
    }

    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// A statement that has begun continues when a caller is cancelled, because other callers are in it.
    func callAsFunction(_ item: Item) async throws -> Answer {
        try await withCheckedThrowingContinuation { continuation in
            let starts = state.withLock { state in
                state.waiting.append(Waiting(item: item, continuation: continuation))
                guard state.running < lanes else { return false }
                state.running += 1
                return true
            }
            if starts { Task { await run() } }  // ends when nobody waits; each caller awaits its answer
        }
    }

    private func run() async {
        while let group = next() {
            do {
                let answers = try await perform(group.map(\.item))
                for (one, answer) in zip(group, answers) { one.continuation.resume(returning: answer) }
            } catch {
                await fail(group, with: error)
            }
        }
    }

    /// The server's refusal may concern only one of them, so each is tried alone.
    private func fail(_ group: [Waiting], with error: any Error) async {
        let isRefused = (error as? PostgresError).map { !$0.isOutage && !$0.outcomeUnknown } ?? false
        guard group.count > 1, isRefused else {
            for one in group { one.continuation.resume(throwing: error) }
            return
        }
        for one in group {
            do {
                let answers = try await perform([one.item])
                one.continuation.resume(returning: answers[0])
            } catch {
                one.continuation.resume(throwing: error)
            }
        }
    }

    /// nil: nobody waits, and this lane ends.
    private func next() -> [Waiting]? {
        state.withLock { state in
            var group: [Waiting] = []
            var rest: [Waiting] = []
            for one in state.waiting {
                if group.count < most, !group.contains(where: { clash($0.item, one.item) }) {
                    group.append(one)
                } else {
                    rest.append(one)
                }
            }
            state.waiting = rest
            if group.isEmpty { state.running -= 1 }
            return group.isEmpty ? nil : group
        }
    }
}
