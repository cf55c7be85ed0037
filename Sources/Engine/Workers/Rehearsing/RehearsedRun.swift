import FoundationEssentials
import JSON
import MillraceJobs
import Synchronization

/// One run of a handler on what its job has on record. Nothing is recorded, and no step's work is done.
package final class RehearsedRun: Sendable {
    fileprivate struct State {
        var script: RehearsalScript
        var asked: [String: RehearsalAsked] = [:]
        var waits: [RehearsalAsked] = []
        var misfits: [RehearsalAnswer.Misfit] = []
        var held: [(name: String, goes: CheckedContinuation<Bool, Never>)] = []
        var moves = 0
        var isStopped = false
    }

    private let request: RehearsalRequest
    private let values: [String: [UInt8]]
    private let state: Mutex<State>

    package init(_ request: RehearsalRequest) {
        self.request = request
        values = Dictionary(
            request.steps.map { ($0.name, Array($0.value.utf8)) }, uniquingKeysWith: { first, _ in first })
        state = Mutex(
            State(
                script: RehearsalScript(
                    recorded: request.steps.map(\.name).filter { !$0.hasPrefix(Context.changePrefix) },
                    awaited: request.awaited)))
    }

    /// Runs the handler once, without the middleware around it, which may do something outside.
    package func run(_ handler: Handler) async -> RehearsalAnswer {
        let context = context(handler)
        let args = Array(request.args.utf8)
        let (end, why) = await withTaskGroup(of: Void.self) { group in
            group.addTask { await self.settleWhenQuiet() }
            let ended = await Self.perform(handler, args, context)
            group.cancelAll()
            return ended
        }
        return state.withLock { state in
            var answer = RehearsalAnswer()
            answer.answered = state.script.answered
            answer.instead = state.script.instead.map { state.asked[$0] ?? RehearsalAsked(step: $0) }
            answer.then = state.script.then.map { state.asked[$0] ?? RehearsalAsked(step: $0) }
            answer.waits = state.waits
            answer.misfits = state.misfits
            answer.end = end == .threw && state.isStopped ? .stopped : end
            answer.why = why
            return answer
        }
    }

    private static func perform(
        _ handler: Handler, _ args: [UInt8], _ context: Context
    ) async -> (RehearsalAnswer.End, String?) {
        do {
            _ = try await handler.body(args, context)
            return (.finished, nil)
        } catch let error as UndecodableArguments {
            return (.undecodable, error.reason)
        } catch {
            return (.threw, String("\(error)".prefix(400)))
        }
    }

    private func context(_ handler: Handler) -> Context {
        let earlier = request.earlier.map {
            EarlierJob(id: $0.id, succeeded: $0.succeeded, result: $0.result.map { Array($0.utf8) })
        }
        return Context(
            id: request.id, kind: request.kind, queue: request.queue, attempt: request.attempt,
            maxAttempts: handler.retries.attempts, crashes: request.crashes,
            enqueuedAt: Date(timeIntervalSince1970: request.enqueuedAt), claimedAt: Date(), session: 0, number: 0,
            tenant: request.tenant, tags: request.tags, metadata: request.metadata.map { Array($0.utf8) },
            backend: RunBackend(
                steps: { _ in self.values }, record: { _, _, value in value }, progress: { _, _ in },
                line: { _, _ in }, spawn: { _, _ in 1 }, recordUndoable: { _, _, value in value }, undone: { _ in },
                wait: { _, _ in nil }, publish: { _, _, _, _ in }, putState: { _, _ in },
                earlier: { _, after in Array(earlier.lazy.filter { $0.id > after }.prefix(1000)) },
                changed: { _, step, _ in self.values[step] == Array("true".utf8) },
                rehearsing: Rehearsing(
                    ask: { _, ask in try await self.ask(ask) },
                    misfit: { _, step, why in
                        self.state.withLock { $0.misfits.append(.init(step: step, why: why)) }
                    })))
    }

    private func ask(_ ask: RehearsedAsk) async throws -> [UInt8] {
        let goes = await withCheckedContinuation { (goes: CheckedContinuation<Bool, Never>) in
            let released = state.withLock { state -> [(CheckedContinuation<Bool, Never>, Bool)] in
                let asked = RehearsalAsked(ask)
                state.asked[ask.step] = asked
                state.moves += 1
                switch state.script.ask(ask.step) {
                case .hold:
                    state.held.append((ask.step, goes))
                    return []
                case .stop:
                    state.isStopped = true
                    return [(goes, false)] + state.release(state.script.released())
                case .answer:
                    if asked.what != nil { state.waits.append(asked) }
                    return [(goes, true)] + state.release(state.script.released())
                }
            }
            for (goes, isAnswered) in released { goes.resume(returning: isAnswered) }
        }
        guard goes, let value = values[ask.step] else { throw RunHasEnded(step: ask.step) }
        return value
    }

    /// Looks again and again whether something is held and nothing moves.
    private func settleWhenQuiet() async {
        var last = -1
        while !Task.isCancelled {
            do { try await Task.sleep(for: .milliseconds(request.patience)) } catch { return }
            let released = state.withLock { state -> [(CheckedContinuation<Bool, Never>, Bool)] in
                defer { last = state.moves }
                guard !state.held.isEmpty, state.moves == last else { return [] }
                return state.release(state.script.settle()) + state.release(state.script.released())
            }
            for (goes, isAnswered) in released { goes.resume(returning: isAnswered) }
        }
    }
}

extension RehearsedRun.State {
    fileprivate mutating func release(
        _ turns: [(name: String, turn: RehearsalScript.Turn)]
    ) -> [(CheckedContinuation<Bool, Never>, Bool)] {
        turns.compactMap { name, turn in
            guard let index = held.firstIndex(where: { $0.name == name }) else { return nil }
            moves += 1
            if turn == .answer, let asked = asked[name], asked.what != nil { waits.append(asked) }
            if turn == .stop { isStopped = true }
            return (held.remove(at: index).goes, turn == .answer)
        }
    }
}

extension RehearsalAsked {
    init(_ ask: RehearsedAsk) {
        self.init(step: ask.step)
        guard let wait = ask.wait else { return }
        what = wait.what.rawValue
        if wait.what == .signal, let options = try? JSONValue.read(wait.options) {
            name = options["name"]?.text
            key = options["key"]?.text ?? ""
        }
        if wait.what == .jobs {
            children = wait.children.map { Child(kind: $0.kind, args: String(decoding: $0.args, as: UTF8.self)) }
        }
    }
}
