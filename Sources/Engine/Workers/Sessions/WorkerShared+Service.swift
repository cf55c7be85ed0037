import Synchronization
import Threads

extension WorkerShared {
    /// Its session is open: from now on it takes jobs.
    func tellReady() {
        options.service?.send(["READY=1", "STATUS=\(status)"])
    }

    /// Still waiting for the database: that takes as long as it takes.
    func tellWaiting() {
        options.service?.send([
            "EXTEND_TIMEOUT_USEC=60000000",
            "STATUS=waiting for the database\(refusal.withLock { $0.map { ": " + $0.replacing("\n", with: " ") } ?? "" })",
        ])
    }

    func tellStopping() {
        options.service?.send(["STOPPING=1", "STATUS=\(status)"])
    }

    /// After each try of a beat. A beat that fails while the database is there is no sign of life.
    func tellLife(hasBeaten: Bool) {
        guard let service = options.service else { return }
        let isAway = outage.lasts != nil
        var lines = ["STATUS=\(isAway ? "cut off from the database, " : "")\(status)"]
        if service.watchdog != nil, hasBeaten || isAway { lines.append("WATCHDOG=1") }
        service.send(lines)
    }

    private var status: String {
        let counts = state.counts
        return
            "\(state.isDraining ? "draining" : "working"): \(counts.running) running, \(counts.waiting) waiting to start"
    }
}
