import FoundationEssentials
import MillraceQueues
import Postgres

extension Client {
    /// Tells a job that waits for this name and key in ``Context/event(_:key:as:timeout:step:)``. If none waits yet, the signal is kept for 30
    /// days, or as long as `keep` says.
    ///
    /// - Parameters:
    ///   - name: What has happened, such as payment-received.
    ///   - key: Which one, such as an order's number.
    ///   - payload: What there is to say of it.
    ///   - id: The same id again is the same signal, which is sent once.
    ///   - toAll: For every job that waits for it, and not for one of them.
    /// - Returns: False if its id was known already.
    @discardableResult
    public func signal(
        _ name: String, key: String = "", payload: some Encodable & Sendable, id: String? = nil, toAll: Bool = false,
        keep: Duration? = nil
    ) async throws(QueueError) -> Bool {
        let bytes: [UInt8]
        do {
            bytes = Array(try JSONEncoder().encode(payload))
        } catch {
            throw QueueError(.invalid, "The payload of the signal cannot be written as JSON.")
        }
        return try await using { connection throws(PostgresError) in
            try await Queue.signal(
                name, key: key, payload: bytes, id: id, toAll: toAll, keep: keep, on: connection)
        }
    }

    /// A signal that says nothing but that it came.
    @discardableResult
    public func signal(_ name: String, key: String = "", id: String? = nil, toAll: Bool = false)
        async throws(QueueError)
        -> Bool
    {
        try await signal(name, key: key, payload: true, id: id, toAll: toAll)
    }
}
