import CPostgres
import Threads

/// A message another session sent.
package struct Notification: Sendable, Equatable {
    package var channel: String
    package var payload: String
}

extension Connection {
    package func listen(_ channel: String) async throws(PostgresError) {
        try await execute("listen %I", naming: channel)
    }

    /// Waits for notifications, at most until `deadline`; returns early, and empty, when another call waits for the connection.
    package func notifications(until deadline: ContinuousClock.Instant) async throws(PostgresError) -> [Notification] {
        try await cancellable { connection throws(PostgresError) in
            let handle = try connection.live()
            var found = Self.pending(handle)
            while found.isEmpty {
                switch handle.wait(until: deadline, interrupt: connection.interrupt, yieldingTo: connection.executor) {
                case .deadline, .workWaiting: return []
                case .interrupted: throw .cancelled
                case .ready:
                    if PQconsumeInput(handle.pointer) == 0 { throw .lost(reason: handle.complaint) }
                }
                found = Self.pending(handle)
            }
            return found
        }
    }

    private static func pending(_ handle: Handle) -> [Notification] {
        var found: [Notification] = []
        while let notice = PQnotifies(handle.pointer) {
            found.append(
                Notification(
                    channel: String(cString: notice.pointee.relname), payload: String(cString: notice.pointee.extra)))
            PQfreemem(notice)
        }
        return found
    }
}
