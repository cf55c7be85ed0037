import Threads

/// Goes on when other workers of the process leave slots that this one was short of.
actor SlotSharing: SharingPart {
    nonisolated let shared: WorkerShared
    private let running: Running

    init(_ shared: WorkerShared, _ running: Running) {
        self.shared = shared
        self.running = running
    }

    func run() async {
        guard let share = options.share else { return }
        while !Task.isCancelled {
            guard await share.called.wait() else { continue }
            running.startRuns()
            state.room.fire()
        }
    }
}
