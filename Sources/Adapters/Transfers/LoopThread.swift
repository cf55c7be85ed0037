import CCurl
import CLinux
import Glibc
import Threads

/// libcurl's multi handle with its sockets and its timer, on the one thread that touches them.
final class LoopThread {
    private let inbox: LoopInbox
    private let settings: TransferLoop.Settings
    private let epoll: Int32
    private var multi: UnsafeMutableRawPointer
    private var running: [ObjectIdentifier: RunningTransfer] = [:]
    private var line = TransferLine()
    private var spare: [CurlHandle] = []
    private var commands: [LoopInbox.Command] = []
    private var isClosed = false
    /// When libcurl wants to be called, by the monotonic clock.
    private var due: Int?

    init(_ inbox: LoopInbox, _ settings: TransferLoop.Settings) {
        self.inbox = inbox
        self.settings = settings
        epoll = millrace_epoll()
        precondition(epoll >= 0, "no descriptor left for a transfer loop")
        guard let multi = curl_multi_init() else { fatalError("libcurl gives no handle: no memory is left") }
        self.multi = multi
        _ = millrace_epoll_watch(epoll, inbox.bell.descriptor, 1, 0)
    }

    deinit {
        curl_multi_cleanup(multi)
        close(epoll)
    }

    func run() {
        settings.prepare?()
        setUp()
        var descriptors = [Int32](repeating: 0, count: 64)
        var events = [UInt32](repeating: 0, count: 64)
        while true {
            inbox.take(into: &commands)
            for command in commands { carryOut(command) }
            commands.removeAll(keepingCapacity: true)  // they hold their transfers
            admitWaiting()
            if isClosed { return }
            fireTimer()
            collect()  // a transfer can begin and end within a timer's call
            let pause = inbox.sleeps() ? wait : 0
            let count = Int(millrace_epoll_wait(epoll, &descriptors, &events, pause))
            for index in 0..<max(0, count) {
                if descriptors[index] == inbox.bell.descriptor {
                    _ = inbox.bell.take()
                } else {
                    act(descriptors[index], events[index])
                }
            }
            fireTimer()
            collect()
        }
    }

    // MARK: Commands

    private func carryOut(_ command: LoopInbox.Command) {
        switch command {
        case .start(let transfer, let delivery):
            if isClosed {
                delivery.fail(.closed)
            } else {
                line.add(transfer, delivery)
            }
        case .giveUp(let transfer):
            if let delivery = line.remove(transfer) {
                delivery.fail(.cancelled(.unsent))
            } else if let one = remove(ObjectIdentifier(transfer)) {
                one.giveUp { .cancelled($0) }
                recycle(one.easy)
            }
        case .goOn(let transfer):
            if let one = running[ObjectIdentifier(transfer)] {
                // A transfer that waits for us is tried again; it may have to wait again at once.
                _ = curl_easy_pause(one.easy.raw, CURLPAUSE_CONT)
            }
        case .close:
            isClosed = true
            for entry in line.removeAll() { entry.delivery.fail(.closed) }
            failAll { TransferError(.closed, $0, "the client was closed while the transfer ran") }
        }
    }

    private func admitWaiting() {
        for entry in line.expired(at: .now) {
            entry.delivery.fail(TransferError(.timedOut(.total), .unsent, TransferError.sentence(.total)))
        }
        while running.count < settings.mostInFlight, let (transfer, delivery) = line.next() {
            if transfer.isGivenUp {
                delivery.fail(.cancelled(.unsent))
                continue
            }
            let one = RunningTransfer(transfer, delivery, on: spare.popLast() ?? CurlHandle(in: inbox.census)) {
                [inbox] in
                inbox.post(.goOn(transfer))
            }
            one.prepare(settings, remaining: transfer.deadline - .now)
            running[ObjectIdentifier(transfer)] = one
            let code = curl_multi_add_handle(multi, one.easy.raw)
            if code != CURLM_OK {
                running[ObjectIdentifier(transfer)] = nil
                one.giveUp { TransferError(.internal, $0, "libcurl did not take the transfer") }
            }
        }
    }

    private func remove(_ id: ObjectIdentifier) -> RunningTransfer? {
        guard let one = running.removeValue(forKey: id) else { return nil }
        curl_multi_remove_handle(multi, one.easy.raw)
        return one
    }

    private func recycle(_ easy: CurlHandle) {
        guard spare.count < 128 else { return }
        curl_easy_reset(easy.raw)
        spare.append(easy)
    }

    private func failAll(_ error: (TransferError.Stage) -> TransferError) {
        for id in Array(running.keys) { remove(id)?.giveUp(error) }
    }

    // MARK: libcurl's work

    private func collect() {
        var code = CURLE_OK
        while let raw = millrace_next_ended(multi, &code) {
            guard let context = millrace_get_context(raw) else { continue }
            let one = Unmanaged<RunningTransfer>.fromOpaque(context).takeUnretainedValue()
            guard remove(ObjectIdentifier(one.transfer)) != nil else { continue }
            one.finish(code)
            recycle(one.easy)
        }
    }

    private func act(_ descriptor: Int32, _ events: UInt32) {
        var mask: Int32 = 0
        if events & 1 != 0 { mask |= CURL_CSELECT_IN }
        if events & 4 != 0 { mask |= CURL_CSELECT_OUT }
        if events & 0x18 != 0 { mask |= CURL_CSELECT_ERR }
        var left: Int32 = 0
        if curl_multi_socket_action(multi, descriptor, mask, &left) != CURLM_OK { startOver() }
    }

    private func fireTimer() {
        // libcurl sets the timer again from within, at once or for later.
        while let due, due <= Self.now() {
            self.due = nil
            var left: Int32 = 0
            if curl_multi_socket_action(multi, CURL_SOCKET_TIMEOUT, 0, &left) != CURLM_OK { startOver() }
        }
    }

    /// Milliseconds to sleep, rounded up; -1 for ever.
    private var wait: Int32 {
        var until = due
        if let next = line.nextDeadline {
            let then = Self.now() + max(0, (next - .now).milliseconds + 1) * 1_000_000
            until = min(until ?? then, then)
        }
        guard let until else { return -1 }
        return Int32(clamping: max(0, (until - Self.now() + 999_999) / 1_000_000))
    }

    /// libcurl rarely gives up on a multi handle, but then for good.
    private func startOver() {
        failAll { TransferError(.internal, $0, "the transfer loop broke down and was started again") }
        curl_multi_cleanup(multi)
        guard let fresh = curl_multi_init() else { fatalError("libcurl gives no handle: no memory is left") }
        multi = fresh
        due = nil
        setUp()
    }

    private func setUp() {
        let context = Unmanaged.passUnretained(self).toOpaque()
        demand(millrace_multi_on_socket(multi, Self.onSocket))
        demand(millrace_multi_set_pointer(multi, CURLMOPT_SOCKETDATA, context))
        demand(millrace_multi_on_timer(multi, Self.onTimer))
        demand(millrace_multi_set_pointer(multi, CURLMOPT_TIMERDATA, context))
        demand(millrace_multi_set_long(multi, CURLMOPT_MAXCONNECTS, settings.keptConnections))
    }

    private func demand(_ code: CURLMcode) {
        precondition(code == CURLM_OK, "libcurl refuses an option of a multi handle: code \(code.rawValue)")
    }

    private static let onSocket: curl_socket_callback = { _, descriptor, what, context, known in
        guard let context else { return -1 }
        let loop = Unmanaged<LoopThread>.fromOpaque(context).takeUnretainedValue()
        return loop.watch(descriptor, what, known: known != nil)
    }

    private static let onTimer: curl_multi_timer_callback = { _, milliseconds, context in
        guard let context else { return -1 }
        let loop = Unmanaged<LoopThread>.fromOpaque(context).takeUnretainedValue()
        loop.due = milliseconds < 0 ? nil : LoopThread.now() + milliseconds * 1_000_000
        return 0
    }

    private func watch(_ descriptor: Int32, _ what: Int32, known: Bool) -> Int32 {
        var events: UInt32 = 0
        if what & CURL_POLL_IN != 0 { events |= 1 }
        if what & CURL_POLL_OUT != 0 { events |= 4 }
        if what == CURL_POLL_REMOVE { events = 0 }
        // A closed socket has already left the list.
        let failed = millrace_epoll_watch(epoll, descriptor, events, known ? 1 : 0) != 0
        if events != 0, !known, !failed {
            _ = curl_multi_assign(multi, descriptor, Unmanaged.passUnretained(self).toOpaque())
        }
        return failed && events != 0 ? -1 : 0
    }

    private static func now() -> Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1_000_000_000 + time.tv_nsec
    }
}
