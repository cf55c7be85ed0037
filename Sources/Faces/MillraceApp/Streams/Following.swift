import Foundation

extension AsyncThrowingStream where Failure == any Error, Element: Sendable {
    /// A stream that a task of its own feeds, until the task ends or nobody wants more.
    init(
        keeping policy: Continuation.BufferingPolicy = .unbounded,
        fed: @escaping @Sendable (Continuation) async throws -> Void
    ) {
        self.init(bufferingPolicy: policy) { continuation in
            let feeding = Task {
                do {
                    try await fed(continuation)
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in feeding.cancel() }
        }
    }
}

extension AsyncThrowingStream where Element == FeedEvent, Failure == any Error {
    /// Reads a state when the stream is open and whenever something has changed, until it is the last one.
    func following<Value: Sendable>(
        concerns: @escaping @Sendable (FeedChange) -> Bool = { _ in true },
        read: @escaping @Sendable () async throws -> Value, isLast: @escaping @Sendable (Value) -> Bool = { _ in false }
    ) -> AsyncThrowingStream<Value, any Error> {
        AsyncThrowingStream<Value, any Error>(keeping: .bufferingNewest(16)) { consumer in
            for try await event in self {
                if case .change(let change) = event, !concerns(change) { continue }
                let value = try await read()
                consumer.yield(value)
                if isLast(value) { return }
            }
        }
    }

    /// A document, from how it is now to its end. A change says how far it is; its files and times are read at the end.
    func following(
        document id: UUID, read: @escaping @Sendable (UUID) async throws -> Document
    ) -> AsyncThrowingStream<Document, any Error> {
        AsyncThrowingStream<Document, any Error>(keeping: .bufferingNewest(64)) { consumer in
            var known: Document?
            for try await event in self {
                var now: Document
                switch event {
                case .ready, .reset: now = try await read(id)
                case .change(let change):
                    guard change.ref.lowercased() == id.uuidString.lowercased(), var last = known else { continue }
                    last.apply(change.data ?? .null)
                    if change.change == "deleted" { last.status = .deleted }
                    now = last.status == .completed || last.status == .failed ? try await read(id) : last
                }
                if now != known { consumer.yield(now) }
                known = now
                if now.hasEnded { return }
            }
        }
    }

    /// The changes alone.
    var changes: AsyncThrowingStream<FeedChange, any Error> {
        AsyncThrowingStream<FeedChange, any Error> { consumer in
            for try await event in self {
                if case .change(let change) = event { consumer.yield(change) }
            }
        }
    }
}
