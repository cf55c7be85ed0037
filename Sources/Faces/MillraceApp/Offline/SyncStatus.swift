public import Foundation

/// How far a queue is, for a line such as “3 wait to be sent”.
public struct SyncStatus: Sendable, Hashable {
    /// Operations and files that wait.
    public var waiting = 0
    /// Those of them that are check-ins and alarms.
    public var urgent = 0
    /// Those of them that are files.
    public var uploads = 0
    /// The gateway is being told, or a file is on its way.
    public var isTelling = false
    /// When all that waited was last told.
    public var lastTold: Date?
    /// Why the last attempt left something; nil after one that did not.
    public var trouble: AppError?

    /// For previews.
    public init(
        waiting: Int = 0, urgent: Int = 0, uploads: Int = 0, isTelling: Bool = false, lastTold: Date? = nil,
        trouble: AppError? = nil
    ) {
        (self.waiting, self.urgent, self.uploads) = (waiting, urgent, uploads)
        (self.isTelling, self.lastTold, self.trouble) = (isTelling, lastTold, trouble)
    }

    /// What waits goes on when the person signs in again.
    public var needsSignIn: Bool { trouble?.kind == .unauthenticated }
}

extension OfflineQueue {
    /// How far the queue is: now, and whenever that changes. Who reads slowly misses what was in between.
    public func statuses() -> AsyncStream<SyncStatus> {
        let id = UUID()
        let (stream, continuation) = AsyncStream<SyncStatus>.makeStream(bufferingPolicy: .bufferingNewest(1))
        watchers[id] = continuation
        continuation.onTermination = { [weak self] _ in Task { await self?.forgetWatcher(id) } }
        continuation.yield(status)
        return stream
    }

    private func forgetWatcher(_ id: UUID) { watchers[id] = nil }
}

#if canImport(Observation)
    public import Observation

    /// A queue's status for views, which are drawn again when it changes. Follow it in a task of the view that owns it:
    /// `.task { await state.follow(queue) }`.
    @available(iOS 17, macOS 14, *)
    @MainActor @Observable public final class SyncState {
        /// As last told.
        public private(set) var status: SyncStatus

        /// Begins with this status.
        public init(_ status: SyncStatus = SyncStatus()) { self.status = status }

        /// Until it is cancelled, or the queue is closed.
        public func follow(_ queue: OfflineQueue) async {
            for await status in await queue.statuses() { self.status = status }
        }
    }
#endif
