import ChildProtocol
import Glibc
import Synchronization
import Threads

/// The thread of one child: feeds it, hears it, watches its time, and buries it.
struct ChildDriver {
    private var process: ChildProcess
    private let child: SandboxedChild
    private var reader: FrameReader
    private var messages: Messages
    /// Called once: it is shut in, or it never will be.
    private var started: ((Result<Void, ChildFailure>) -> Void)?
    private var asked: SandboxedChild.Ask?
    private var waiting: [SandboxedChild.Ask] = []
    private var outgoing: ArraySlice<UInt8> = []
    private var deadline: ContinuousClock.Instant
    /// What counts until the deadline, since when, and what the child had used then.
    private var time: RequestTime
    private var since = ContinuousClock.now
    private var usedBefore: (cpu: Duration, waited: Duration) = (.zero, .zero)
    private var isEnding = false
    private var sentence: ChildFailure.Reason?
    private var answersEnded = false
    private var peak = 0

    init(_ process: ChildProcess, of child: SandboxedChild, started: @escaping (Result<Void, ChildFailure>) -> Void) {
        self.process = process
        self.child = child
        self.started = started
        messages = Messages(most: child.limits.messages)
        reader = FrameReader(longest: [
            .hello: 4, .note: child.limits.note, .result: child.limits.answer, .failure: child.limits.messages,
        ])
        time = RequestTime(limit: child.limits.start)
        deadline = .now + child.limits.start
    }

    @available(*, noasync)
    mutating func run() {
        // A child that dies while it is being fed shows as an error, even if the process ignores or blocks SIGPIPE.
        var broken = sigset_t()
        sigemptyset(&broken)
        sigaddset(&broken, SIGPIPE)
        pthread_sigmask(SIG_BLOCK, &broken, nil)
        var buffer = [UInt8](repeating: 0, count: 65_536)
        var isAlive = true
        while isAlive {
            send()
            var polled = [
                pollfd(fd: process.ended, events: Int16(POLLIN), revents: 0),
                pollfd(fd: child.interrupt.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: answersEnded ? -1 : process.answers, events: Int16(POLLIN), revents: 0),
                pollfd(fd: process.messages, events: Int16(POLLIN), revents: 0),
                pollfd(fd: outgoing.isEmpty ? -1 : process.requests, events: Int16(POLLOUT), revents: 0),
            ]
            poll(&polled, nfds_t(polled.count), patience)
            if polled[1].revents != 0 {
                _ = child.interrupt.take()
                obey()
            }
            if polled[3].revents != 0 { hearMessages(&buffer) }
            if polled[2].revents != 0 { hearAnswers(&buffer) }
            if polled[0].revents != 0 {
                hearMessages(&buffer)
                hearAnswers(&buffer)  // what it said last
                isAlive = false
            } else if isTimed, deadline <= .now {
                isLate()
            }
        }
        bury()
    }

    /// Something is owed by a certain time.
    private var isTimed: Bool { sentence == nil && (started != nil || asked != nil || isEnding) }

    private mutating func isLate() {
        guard asked != nil || started != nil else { return condemn(.exited(0)) }
        let used = process.times
        switch time.verdict(
            elapsed: .now - since, waited: used.waited - usedBefore.waited, cpu: used.cpu - usedBefore.cpu)
        {
        case .goesOn(let more): deadline = .now + more
        case .isOver: condemn(.timeout)
        case .isStarved: condemn(.starved)
        }
    }

    private var patience: Int32 {
        guard isTimed else { return -1 }
        let left = ContinuousClock.now.duration(to: deadline)
        return Int32(
            clamping: max(0, left.components.seconds * 1000 + left.components.attoseconds / 1_000_000_000_000_000 + 1))
    }

    private mutating func obey() {
        let list = child.orders.withLock { state in
            defer { state.list = [] }
            return state.list
        }
        for order in list {
            switch order {
            case .ask(let ask):
                waiting.append(ask)
                begin()
            case .leave(let id):
                if asked?.id == id {
                    condemn(.cancelled)
                } else if let index = waiting.firstIndex(where: { $0.id == id }) {
                    waiting.remove(at: index).answer.resume(
                        returning: .failure(ChildFailure(.cancelled, "nobody waits for the answer any more")))
                }
            case .end:
                if started != nil { condemn(.cancelled) }
                isEnding = true
                if asked == nil { letGo() }
            }
        }
    }

    /// The next request, when the last is answered.
    private mutating func begin() {
        guard asked == nil, started == nil, sentence == nil, !waiting.isEmpty else { return }
        let ask = waiting.removeFirst()
        outgoing = Frame(.request, ask.bytes).bytes[...]
        asked = ask
        time = RequestTime(limit: child.limits.wall)
        (since, usedBefore) = (.now, process.times)
        deadline = since + child.limits.wall
    }

    private mutating func send() {
        while !outgoing.isEmpty, process.requests >= 0 {
            let count = outgoing.withUnsafeBytes { write(process.requests, $0.baseAddress, $0.count) }
            if count < 0 {
                if errno == EINTR { continue }
                if errno != EAGAIN { outgoing = [] }  // it does not read any more: its end says why
                return
            }
            outgoing = outgoing.dropFirst(count)
        }
    }

    private mutating func hearMessages(_ buffer: inout [UInt8]) {
        // Bounded, so that a child that writes without end does not keep us reading.
        for _ in 0..<16 {
            let count = read(process.messages, &buffer, buffer.count)
            guard count > 0 else { return }
            messages.take(buffer[..<count])
        }
    }

    private mutating func hearAnswers(_ buffer: inout [UInt8]) {
        while sentence == nil {
            let count = read(process.answers, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            if count == 0 { answersEnded = true }
            guard count > 0 else { return }
            reader.take(buffer[..<count])
            do throws(FrameReader.Complaint) {
                while let frame = try reader.next() { hear(frame) }
            } catch {
                condemn(.misspoke)
            }
        }
    }

    private mutating func hear(_ frame: Frame) {
        if frame.kind != .note { peak = max(peak, process.peak) }
        switch frame.kind {
        case .hello:
            guard let started, frame.payload.count == 4 else { return condemn(.misspoke) }
            child.said(hello: frame.payload.reversed().reduce(0) { $0 << 8 | UInt32($1) })
            self.started = nil
            started(.success(()))
            begin()
        case .note:
            guard let asked else { return condemn(.misspoke) }
            asked.note?(frame.payload)
        case .result:
            finish(.success(SandboxedChild.Answer(payload: frame.payload, messages: messages.text)))
        case .failure:
            let words = String(decoding: frame.payload, as: UTF8.self).split(
                separator: "\n", maxSplits: 1, omittingEmptySubsequences: false)
            finish(
                .failure(
                    ChildFailure(
                        .refused(Self.word(words[0])), Self.shown(words.count > 1 ? words[1] : ""),
                        messages: messages.text)))
        case .request: condemn(.misspoke)
        }
    }

    private mutating func finish(_ outcome: Result<SandboxedChild.Answer, ChildFailure>) {
        guard let ask = asked, started == nil else { return condemn(.misspoke) }
        asked = nil
        ask.answer.resume(returning: outcome)
        begin()
        if asked == nil, isEnding { letGo() }
    }

    /// It has nothing more to do, and a moment to end.
    private mutating func letGo() {
        process.endRequests()
        deadline = .now + .seconds(2)
    }

    private mutating func condemn(_ reason: ChildFailure.Reason) {
        guard sentence == nil else { return }
        sentence = reason
        process.kill()
    }

    @available(*, noasync)
    private mutating func bury() {
        let (status, usage) = process.reap(seen: peak)
        let ending = ProcessEnd(status: status, usage: usage, sentence: sentence, messages: messages.text)
        let failure = ending.failure(child.limits)
        child.ended(failure, ending)
        started?(.failure(failure))
        for ask in waiting + (asked.map { [$0] } ?? []) { ask.answer.resume(returning: .failure(failure)) }
        waiting = []
        asked = nil
        started = nil
    }

    /// A reason is one of our words: letters and underscores, so that it is safe in a column and in a log.
    private static func word(_ text: Substring) -> String {
        let word = text.prefix(40)
        return !word.isEmpty && word.utf8.allSatisfy({ (0x61...0x7a).contains($0) || $0 == 0x5f })
            ? String(word) : "malformed"
    }

    private static func shown(_ text: Substring) -> String {
        var messages = Messages(most: 500)
        messages.take(text.utf8)
        return messages.text
    }
}
