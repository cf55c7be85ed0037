import Postgres
package import Telemetry

/// Sweeps once an hour, if it is this worker's turn.
package struct BlobSweeper: Sendable {
    private let store: any BlobStore
    private let log: Log
    private let every: Duration

    package init(_ store: any BlobStore, every: Duration = .seconds(3600), log: Log) {
        self.store = store
        self.every = every
        self.log = log
    }

    /// Until cancelled.
    package func run() async {
        while !Task.isCancelled {
            // Apart from others that started with us; and a turn that was missed is taken soon.
            try? await Task.sleep(for: every / 10 * Double.random(in: 0.5...1.5))
            guard !Task.isCancelled else { return }
            do {
                try await turn()
            } catch {
                log.warning("cannot sweep blobs", [("error", "\(error)")])
            }
        }
    }

    /// nil: it was not our turn.
    @discardableResult
    package func turn() async throws -> (blobs: Int, bytes: Int, remains: Int)? {
        let seconds = every / .seconds(1)
        let isOurs = try await store.pool.withConnection { connection throws(PostgresError) in
            try await connection.truth(
                "select millrace.blob_sweep_turn(make_interval(secs => $1))", [.float8(seconds)]
            )
        }
        guard isOurs else { return nil }
        let swept = try await store.sweep(grace: Self.grace)
        log.debug("swept blobs", [("blobs", "\(swept.blobs)"), ("bytes", "\(swept.bytes)")])
        return swept
    }

    /// A day, as by hand.
    private static let grace = Duration.seconds(86_400)
}
