import Faults
import Postgres
import Supervision
import Synchronization
import Telemetry
import Threads

/// Takes due sendings, brings them to their providers, and records the results. Alarms have their own lane, with slots and a connection
/// that nothing else uses.
final class NoticeLane: Sendable {
    struct Options: Sendable {
        var isAlarm: Bool
        var slots: Int
        /// Unannounced work is found after this time at the latest.
        var floor: Duration
        var lease: Duration
        /// The time limit of one call, including the wait for its turn; shorter than the lease.
        var deadline: Duration
    }

    private struct State {
        var running = 0
        var isFull = false
        var results: [NoticeStore.Result] = []
        var connection: Connection?
        var isAway = false
    }

    let options: Options
    let signal = Signal()
    private let database: ConnectionOptions
    private let dispatch: NoticeRouter
    private let tally: NoticeTally
    private let log: Log
    private let holder = Int64.random(in: 1 ... .max)
    private let written = Signal()
    private let state = Mutex(State())

    init(_ options: Options, database: ConnectionOptions, dispatch: NoticeRouter, tally: NoticeTally, log: Log) {
        self.options = options
        self.database = database
        self.dispatch = dispatch
        self.tally = tally
        self.log = log
    }

    /// Until cancelled; calls under way then are finished and recorded.
    func run(hearing sleepLock: NoticeSleepLock) async {
        let writing = Task { await self.write() }
        await withDiscardingTaskGroup { group in
            var backoff = Backoff(cap: .seconds(2))
            while !Task.isCancelled {
                let free = state.withLock { state in
                    state.isFull = state.running >= options.slots
                    return options.slots - state.running
                }
                guard free > 0 else {
                    await signal.wait(for: .seconds(1))
                    continue
                }
                do {
                    let most = min(free, 100)
                    let taken = try await take(most)
                    start(taken, in: &group)
                    backoff.reset()
                    // Alarms are rare, so they always notify.
                    if !options.isAlarm { await sleepLock.setBusy(taken.count == most, alarms: false) }
                    if taken.count == most { continue }
                    let next = try await NoticeStore.next(alarms: options.isAlarm, on: try await open())
                    let floor = await sleepLock.isListening ? options.floor : min(options.floor, .milliseconds(250))
                    await signal.wait(for: min(next ?? floor, floor))
                } catch {
                    complain(error)
                    try? await Task.sleep(for: backoff.next())
                }
            }
        }
        // All calls have come back. Results that the writer could not record are recorded here, by a task that is never cancelled.
        writing.cancel()
        await writing.value
        await Task {
            // The cancellation of another statement on this connection may have hit the first try.
            for _ in 0..<20 {
                if await self.flush() { break }
                try? await Task.sleep(for: .milliseconds(50))  // never cancelled
            }
        }.value
        if let connection = state.withLock({ $0.connection }) { await connection.close() }
    }

    private func take(_ most: Int) async throws(PostgresError) -> [Sending] {
        let connection = try await open()
        let taken = try await NoticeStore.take(
            alarms: options.isAlarm, most: most, holder: holder, lease: options.lease, on: connection)
        if state.withLock({ state in
            defer { state.isAway = false }
            return state.isAway
        }) {
            log.info("notices are sent again", [("lane", options.isAlarm ? "alarms" : "plain")])
        }
        return taken
    }

    private func start(_ taken: [Sending], in group: inout DiscardingTaskGroup) {
        let mails = taken.filter { $0.channel == Sending.Channel.mail.rawValue }
        for sending in taken where sending.channel != Sending.Channel.mail.rawValue {
            state.withLock { $0.running += 1 }
            group.addTask { await self.bring(sending) }
        }
        guard !mails.isEmpty else { return }
        state.withLock { $0.running += 1 }
        group.addTask { await self.handOver(mails) }
    }

    private func bring(_ sending: Sending) async {
        let began = ContinuousClock.now
        // It outlives the worker's cancellation: half a call would leave its result unknown.
        let (provider, delivery) = await Task { [dispatch, options] in
            await dispatch.bring(sending, deadline: options.deadline)
        }.value
        put([NoticeStore.Result(sending, provider: provider, delivery, took: began.duration(to: .now))])
        tally.count(delivery, isAlarm: sending.isAlarm)
        leave()
        if sending.isAlarm, let fault = delivery.fault {
            log.warning(
                "the provider did not take an alarm",
                [("notice.id", sending.id), ("provider", provider), ("error", "\(fault)")])
        }
    }

    private func handOver(_ mails: [Sending]) async {
        let began = ContinuousClock.now
        let letters = mails.map { sending in
            let words = dispatch.words(sending)
            return NoticeStore.Letter(
                id: sending.id, subject: words.title.replacing("\n", with: " "),
                body: words.textParted(by: "\n\n") + "\n")
        }
        do {
            let done = try await Task { [holder] in
                try await NoticeStore.handOver(letters, holder: holder, on: try await self.open())
            }.value
            for _ in 0..<done { tally.count(.accepted(id: nil), isAlarm: options.isAlarm) }
        } catch {
            let fault = Fault(.transient, "the mail could not be handed over: \(error)")
            put(
                mails.map {
                    NoticeStore.Result($0, provider: "mail", .failed(fault), took: began.duration(to: .now))
                })
            complain(error)
        }
        leave()
    }

    private func put(_ results: [NoticeStore.Result]) {
        state.withLock { $0.results += results }
        written.fire()
    }

    private func leave() {
        let wasFull = state.withLock { state in
            state.running -= 1
            return state.isFull
        }
        if wasFull { signal.fire() }
    }

    /// Records all results that have come back, in one statement; keeps those that cannot be recorded now.
    private func write() async {
        var backoff = Backoff(cap: .seconds(2))
        while !Task.isCancelled {
            await written.wait(for: .seconds(5))
            if await flush() {
                backoff.reset()
            } else {
                try? await Task.sleep(for: backoff.next())
                written.fire()
            }
        }
    }

    /// False: try again later.
    private func flush() async -> Bool {
        let results = state.withLock { state in
            defer { state.results = [] }
            return state.results
        }
        guard !results.isEmpty else { return true }
        do {
            try await NoticeStore.record(results, holder: holder, on: try await open())
            return true
        } catch {
            // Results that could not be recorded are dropped above a hundred thousand: their leases are over, and they are sent again.
            state.withLock { $0.results = ($0.results.count > 100_000 ? [] : results) + $0.results }
            complain(error)
            return false
        }
    }

    private func open() async throws(PostgresError) -> Connection {
        if let connection = state.withLock({ $0.connection }), await !connection.isBroken { return connection }
        let opened = try await Connection.open(database, name: options.isAlarm ? "mr-alarms" : "mr-notices")
        let kept = state.withLock { state in
            state.connection = opened
            return opened
        }
        return kept
    }

    private func complain(_ error: any Error) {
        if Task.isCancelled { return }
        let isFirst = state.withLock { state in
            defer { state.isAway = true }
            return !state.isAway
        }
        if isFirst {
            log.warning(
                "cannot send notices now; they are kept",
                [("lane", options.isAlarm ? "alarms" : "plain"), ("error", "\(error)")])
        }
    }
}
