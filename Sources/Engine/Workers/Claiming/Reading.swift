import MillraceQueues
import Postgres
import Telemetry
import Threads

/// Reads the jobs of loose claims. Such a claim returns before its leases are on the disk; its jobs are read when they are, and start
/// then, while the next claim is on its way.
actor Reading: SharingPart {
    nonisolated let shared: WorkerShared
    private let running: Running

    init(_ shared: WorkerShared, _ running: Running) {
        self.shared = shared
        self.running = running
    }

    func run() async {
        var bytes = BatchSize(2 * options.bytes.claim, least: 0)
        await RetryingLoop.run { _ throws(PostgresError) in
            let leases = state.expected
            guard !leases.isEmpty else {
                await state.unreadLeases.wait()
                return
            }
            let session = state.session
            let carry = bytes.size / leases.reduce(1) { $0 + $1.ids.count }
            stalls.began(.reading)
            let jobs = try await links.read.use { connection throws(PostgresError) in
                try await Queue.readLeases(on: connection, session: session, of: leases, carry: carry)
            }
            stalls.ended(.reading)
            bytes.worked()
            let forgotten = state.arrived(jobs, of: Set(leases.map(\.number)))
            if !forgotten.isEmpty {
                log.warning("a crash of the server has undone claims", [("leases", "\(forgotten.count)")])
                state.requestReconcile()
            }
            running.startRuns()
        } failed: { error in
            if error.isSlowness { bytes.failed() }
            if error.isUnanswerable { bytes.gaveWay() }
            limitedLog.say("what was claimed cannot be read yet; its jobs wait", error)
            return .pause
        }
    }
}

extension PostgresError {
    /// The answer is too much for the server or for us, or cannot be made of what is stored: asked for in smaller pieces most of it can be had.
    var isUnanswerable: Bool {
        guard let sqlState else { return false }
        return sqlState.hasPrefix("54") || sqlState == "53200" || sqlState.hasPrefix("XX") || sqlState.hasPrefix("22")
    }
}
