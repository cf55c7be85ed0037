package import MillraceJobs
import Synchronization
import Traces

/// Brings the runs of a chunk kind together: each comes in its own task, one call works for all, each leaves with its verdict.
///
/// So everything a run has stays its own: token, slot, attempt, timeout, cancel, middleware.
package protocol ChunkRunning: Sendable {
    /// Returns when the call that this run was part of has returned.
    func run(_ args: [UInt8], _ context: Context) async throws -> Verdict
    /// Runs that wait for company go back to the queue.
    func drain()
}

final class ChunkRunner<Work: Job>: ChunkRunning {
    typealias Body = @Sendable ([ChunkItem<Work>]) async throws -> [Verdict]

    private struct Member {
        let item: ChunkItem<Work>
        let continuation: CheckedContinuation<Verdict, any Error>
    }

    private struct State {
        var assembler: ChunkAssembler
        var members: [Int: Member] = [:]
        var calls: [Int: Task<Void, Never>] = [:]
    }

    private let decode: @Sendable ([UInt8]) throws -> Work
    private let waiting: Duration
    private let body: Body
    private let state: Mutex<State>

    init(size: Int, waiting: Duration, decode: @escaping @Sendable ([UInt8]) throws -> Work, body: @escaping Body) {
        self.decode = decode
        self.waiting = waiting
        self.body = body
        state = Mutex(State(assembler: ChunkAssembler(size: size)))
    }

    func run(_ args: [UInt8], _ context: Context) async throws -> Verdict {
        let item = ChunkItem(job: try decode(args), context: context)
        let ticket = state.withLock { $0.assembler.ticket() }
        defer { state.withLock { $0.assembler.forget(ticket) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                join(ticket, Member(item: item, continuation: continuation))
            }
        } onCancel: {
            cancel(ticket)
        }
    }

    private func join(_ ticket: Int, _ member: Member) {
        let welcome = state.withLock { state in
            let welcome = state.assembler.join(ticket)
            if welcome != .refused { state.members[ticket] = member }
            return welcome
        }
        switch welcome {
        case .first(let round):
            // Its sleep belongs to the round and not to the run that opened it, which may leave.
            Task {
                try? await Task.sleep(for: waiting)
                if let chunk = state.withLock({ $0.assembler.close(round: round) }) { start(chunk) }
            }
        case .joined: break
        case .full(let chunk): start(chunk)
        case .refused: Self.sendBack(member)
        }
    }

    private func start(_ chunk: ChunkAssembler.Chunk) {
        // A task of its own: a run's own task ends with its cancel, and the others' work must not.
        let call = Task { await perform(chunk) }
        let late = state.withLock { state in
            guard state.members[chunk.tickets[0]] != nil else { return false }
            state.calls[chunk.id] = call
            return !state.assembler.isWanted(chunk.id)
        }
        if late { call.cancel() }
    }

    private func perform(_ chunk: ChunkAssembler.Chunk) async {
        let items = state.withLock { state in chunk.tickets.compactMap { state.members[$0]?.item } }
        let said: Result<[Verdict], any Error>
        // This task was started by one of the runs, and what it does for several traces belongs to none of them.
        let places = items.map(\.context.trace)
        let isOneTrace = places.allSatisfy { $0?.trace == places[0]?.trace }
        let place: TraceContext? = isOneTrace ? places.first.flatMap { $0 } : nil
        do {
            said = .success(
                try await TraceContext.$current.withValue(place) { try await ChunkOptions.verdicts(items, body) })
        } catch {
            said = .failure(error)
        }
        let members = state.withLock { state in
            state.assembler.ended(chunk.id)
            state.calls[chunk.id] = nil
            return chunk.tickets.compactMap { state.members.removeValue(forKey: $0) }
        }
        for (index, member) in members.enumerated() {
            member.continuation.resume(with: said.map { $0[index] })
        }
    }

    private func cancel(_ ticket: Int) {
        let (member, call) = state.withLock { state -> (Member?, Task<Void, Never>?) in
            switch state.assembler.cancel(ticket) {
            case .left: return (state.members.removeValue(forKey: ticket), nil)
            case .chunkAlone(let chunk): return (nil, state.calls[chunk])
            case .othersRemain, .absent: return (nil, nil)
            }
        }
        member?.continuation.resume(throwing: CancellationError())
        call?.cancel()
    }

    func drain() {
        let members = state.withLock { state in
            state.assembler.drain().compactMap { state.members.removeValue(forKey: $0) }
        }
        for member in members { Self.sendBack(member) }
    }

    private static func sendBack(_ member: Member) {
        _ = member.item.context.cancel(.stopping)  // unless it has another reason already
        member.continuation.resume(throwing: CancellationError())
    }
}
