import CCurl
import Glibc
import Synchronization
import Threads

/// The threads of a transport: one for each connection, made when messages wait, ended when none has come for a while.
final class Lanes: Sendable {
    typealias Waiter = CheckedContinuation<Result<MailResult, MailFailure>, Never>

    private struct State {
        var waiting: [(delivery: MailDelivery, waiter: Waiter)] = []
        var lanes = 0
        /// Lanes without a message: they take the next one. A lane becomes free before the sender of its last message hears of the end, so
        /// a sender that continues at once finds the connection.
        var free = 0
        var isClosed = false
        var running: [ObjectIdentifier: MailDelivery] = [:]
    }

    let plan: MailPlan
    private let most: Int
    private let state = Mutex(State())
    private let turn: ThreadSemaphore

    init(_ plan: MailPlan, most: Int) {
        precondition(curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, "libcurl cannot start")
        self.plan = plan
        self.most = max(1, most)
        turn = ThreadSemaphore()
    }

    func post(_ delivery: MailDelivery, _ waiter: Waiter) {
        enum Way { case closed, givenUp, wait, grow }
        let way: Way = state.withLock { state in
            if state.isClosed { return .closed }
            if delivery.isGivenUp { return .givenUp }
            state.waiting.append((delivery, waiter))
            guard state.free < state.waiting.count, state.lanes < most else { return .wait }
            state.lanes += 1
            state.free += 1
            return .grow
        }
        switch way {
        case .closed: waiter.resume(returning: .failure(Self.closed(delivery)))
        case .givenUp: waiter.resume(returning: delivery.ended(CURLE_ABORTED_BY_CALLBACK))
        case .wait: turn.signal()
        case .grow: Thread.start(name: "mail") { [self] in drive() }
        }
    }

    /// One that waits is answered at once; one that runs hears of it through its socket.
    func withdraw(_ delivery: MailDelivery) {
        let waiter = state.withLock { state -> Waiter? in
            guard let index = state.waiting.firstIndex(where: { $0.delivery === delivery }) else { return nil }
            return state.waiting.remove(at: index).waiter
        }
        waiter?.resume(returning: delivery.ended(CURLE_ABORTED_BY_CALLBACK))
    }

    func close() {
        let (waiting, running) = state.withLock { state in
            state.isClosed = true
            defer { state.waiting = [] }
            return (state.waiting, Array(state.running.values))
        }
        for one in waiting { one.waiter.resume(returning: .failure(Self.closed(one.delivery))) }
        for delivery in running { delivery.giveUp() }
        turn.signalAll()
    }

    private static func closed(_ delivery: MailDelivery) -> MailFailure {
        MailFailure(transfer: .closed, recipients: Array(repeating: nil, count: delivery.envelope.recipients.count))
    }

    private func drive() {
        let socket = LaneSocket()
        var easy: CurlHandle? = CurlHandle()
        while let handle = easy, let (delivery, waiter) = next() {
            let result = delivery.perform(plan, on: handle, socket)
            state.withLock { state in
                state.running[ObjectIdentifier(delivery)] = nil
                state.free += 1
            }
            waiter.resume(returning: result)
        }
        // The QUIT of an idle connection waits for its answer; a server that is silent is not waited for.
        socket.interrupt()
        easy = nil
        withExtendedLifetime(socket) {}  // closing calls back to it
    }

    /// nil: the lane's thread ends, because of the closing or because nothing came in the time that a connection is kept.
    private func next() -> (MailDelivery, Waiter)? {
        let until = ContinuousClock.now + plan.configuration.idleLife
        while true {
            let (found, ends) = state.withLock { state -> ((MailDelivery, Waiter)?, Bool) in
                if !state.waiting.isEmpty {
                    let first = state.waiting.removeFirst()
                    state.running[ObjectIdentifier(first.delivery)] = first.delivery
                    state.free -= 1
                    return ((first.delivery, first.waiter), false)
                }
                if state.isClosed || ContinuousClock.now >= until {
                    state.lanes -= 1
                    state.free -= 1
                    return (nil, true)
                }
                return (nil, false)
            }
            if let found { return found }
            if ends { return nil }
            turn.wait(atMost: until - .now)
        }
    }
}

/// Lets waiting threads through, one for each signal.
///
/// `@unchecked`: a semaphore may be used from any thread, and this one does not move while anybody holds it.
final class ThreadSemaphore: @unchecked Sendable {
    private let semaphore: UnsafeMutablePointer<sem_t>

    init() {
        semaphore = .allocate(capacity: 1)
        sem_init(semaphore, 0, 0)
    }

    deinit {
        sem_destroy(semaphore)
        semaphore.deallocate()
    }

    func signal() { sem_post(semaphore) }

    func signalAll() {
        for _ in 0..<64 { sem_post(semaphore) }
    }

    func wait(atMost limit: Duration) {
        var until = timespec()
        clock_gettime(CLOCK_REALTIME, &until)
        until.tv_sec += max(1, limit.milliseconds / 1000 + 1)
        sem_timedwait(semaphore, &until)
    }
}
