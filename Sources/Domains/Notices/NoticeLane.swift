import Faults
import Postgres
import Supervision
import Telemetry
import Threads

/// Takes due sendings, brings them to their providers, and records the results. Alarms have their own lane, with slots and a connection
/// that nothing else uses.
actor NoticeLane {
    struct Options: Sendable {
        var isAlarm: Bool
        var slots: Int
        /// Unannounced work is found after this time at the latest.
        var floor: Duration
        var lease: Duration
        /// The time limit of one call, including the wait for its turn; shorter than the lease.
        var deadline: Duration
    }

    let options: Options
    let signal = Wakeup()
    private let dispatch: NoticeRouter
    private let tally: NoticeTally
    private let log: Log
    private let holder = Int64.random(in: 1 ... .max)
    private let written = Wakeup()
    private var running = 0
    private var isFull = false
    private var results: [NoticeStore.Result] = []
    private let link: KeptConnection
    /// An outage has been logged.
    private var isAway = false

    init(_ options: Options, database: ConnectionOptions, dispatch: NoticeRouter, tally: NoticeTally, log: Log) {
        self.options = options
        link = KeptConnection(
            database.urgent(options.isAlarm ? .urgent : .work), name: options.isAlarm ? "mr-alarms" : "mr-notices")
        self.dispatch = dispatch
        self.tally = tally
        self.log = log
    }

    /// Until cancelled; calls under way then are finished and recorded.
    func run(hearing sleepLock: NoticeSleepLock) async {
        let writing = Task { await self.write() }
        await withDiscardingTaskGroup { group in
            await RetryingLoop.run(cap: .seconds(2)) { loop in
                let free = options.slots - running
                isFull = free <= 0
                guard free > 0 else {
                    await signal.wait(for: .seconds(1))
                    return
                }
                let most = min(free, 100)
                let taken = try await take(most)
                start(taken, in: &group)
                loop.worked()
                // Alarms are rare, so they always notify.
                if !options.isAlarm { await sleepLock.setBusy(taken.count == most, alarms: false) }
                if taken.count == most { return }
                let next = try await link.use { [options] connection throws(PostgresError) in
                    try await NoticeStore.next(alarms: options.isAlarm, on: connection)
                }
                let floor = await sleepLock.isListening ? options.floor : min(options.floor, .milliseconds(250))
                await signal.wait(for: min(next ?? floor, floor))
            } failed: { error in
                complain(error)
                return .pause
            }
        }
        // All calls have come back. Results that the writer could not record are recorded here, by a task that is never cancelled.
        writing.cancel()
        await writing.value
        await uncancelled {
            // The cancellation of another statement on this connection may have hit the first try.
            for _ in 0..<20 {
                do { return try await self.flush() } catch {}
                try? await Task.sleep(for: .milliseconds(50))  // never cancelled
            }
        }
        await link.close()
    }

    private func take(_ most: Int) async throws(PostgresError) -> [Sending] {
        let taken = try await link.use { [options, holder] connection throws(PostgresError) in
            try await NoticeStore.take(
                alarms: options.isAlarm, most: most, holder: holder, lease: options.lease, on: connection)
        }
        if isAway { log.info("notices are sent again", [("lane", options.isAlarm ? "alarms" : "plain")]) }
        isAway = false
        return taken
    }

    private func start(_ taken: [Sending], in group: inout DiscardingTaskGroup) {
        let mails = taken.filter { $0.channel == Sending.Channel.mail.rawValue }
        for sending in taken where sending.channel != Sending.Channel.mail.rawValue {
            running += 1
            group.addTask { await self.bring(sending) }
        }
        guard !mails.isEmpty else { return }
        running += 1
        group.addTask { await self.handOver(mails) }
    }

    private func bring(_ sending: Sending) async {
        let began = ContinuousClock.now
        // It outlives the worker's cancellation: half a call would leave its result unknown.
        let (provider, delivery) = await uncancelled { [dispatch, options] in
            await dispatch.bring(sending, deadline: options.deadline)
        }
        put([NoticeStore.Result(sending, provider: provider, delivery, took: began.duration(to: .now))])
        await tally.count(delivery, isAlarm: sending.isAlarm)
        leave()
        if sending.isAlarm, let fault = delivery.fault {
            log.warning(
                "the provider did not take an alarm",
                [("notice.id", sending.id), ("provider", provider), ("error", "\(fault)")])
        }
    }

    /// Not isolated: the texts are made beside the lane's other work.
    private nonisolated func handOver(_ mails: [Sending]) async {
        let began = ContinuousClock.now
        let letters = mails.map { sending in
            let words = dispatch.words(sending)
            return NoticeStore.Letter(
                id: sending.id, subject: words.title.replacing("\n", with: " "),
                body: words.textParted(by: "\n\n") + "\n")
        }
        do {
            let done = try await uncancelled { [holder] in
                try await self.link.use { connection throws(PostgresError) in
                    try await NoticeStore.handOver(letters, holder: holder, on: connection)
                }
            }
            for _ in 0..<done { await tally.count(.accepted(id: nil), isAlarm: options.isAlarm) }
        } catch {
            let fault = Fault(.transient, "the mail could not be handed over: \(error)")
            await put(
                mails.map {
                    NoticeStore.Result($0, provider: "mail", .failed(fault), took: began.duration(to: .now))
                })
            await complain(error)
        }
        await leave()
    }

    private func put(_ more: [NoticeStore.Result]) {
        results += more
        written.fire()
    }

    private func leave() {
        running -= 1
        if isFull { signal.fire() }
    }

    /// Records all results that have come back, in one statement; keeps those that cannot be recorded now.
    private func write() async {
        await RetryingLoop.run(cap: .seconds(2)) { _ in
            await written.wait(for: .seconds(5))
            try await flush()
        } failed: { _ in
            written.fire()
            return .pause
        }
    }

    /// An error: try again later.
    private func flush() async throws {
        let given = results
        results = []
        guard !given.isEmpty else { return }
        do {
            try await link.use { [holder] connection throws(PostgresError) in
                try await NoticeStore.record(given, holder: holder, on: connection)
            }
        } catch {
            // Results that could not be recorded are dropped above a hundred thousand: their leases are over, and they are sent again.
            results = (results.count > 100_000 ? [] : given) + results
            complain(error)
            throw error
        }
    }

    private func complain(_ error: any Error) {
        if Task.isCancelled || isAway { return }
        isAway = true
        log.warning(
            "cannot send notices now; they are kept",
            [("lane", options.isAlarm ? "alarms" : "plain"), ("error", "\(error)")])
    }
}
