import CLinux
package import ChildProtocol
import Glibc
import Subprocesses
import Threads

/// A program of somebody's own that answers requests on a descriptor, one at a time. It owns the thread that speaks with it. What the program prints
/// goes nowhere, and of what it complains about the end is kept.
package actor FramedProgram {
    /// Why there is no answer.
    package enum Failure: Error, Sendable, Equatable {
        case cannotStart(String)
        /// It took longer than it may, and was killed.
        case late
        /// It has ended: how, in words, and the end of its stderr.
        case ended(String, messages: String)
        /// It said what is no frame.
        case misspoke
    }

    /// Where the program finds the descriptor.
    package static let place: Int32 = 3
    private static let mostMessages = 4096

    private let thread = ThreadExecutor(name: "framed-program")
    private var pid: pid_t = -1
    private var conversation: Int32 = -1
    private var complaints: Int32 = -1
    private var reader: FrameReader
    private var messages: [UInt8] = []

    package nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

    package init(longest: [Frame.Kind: Int]) {
        reader = FrameReader(longest: longest)
    }

    deinit { thread.stop() }

    /// - Parameter environment: All that the program has of variables.
    package func start(_ program: String, _ arguments: [String], environment: [String: String]) throws(Failure) {
        var pair: [Int32] = [-1, -1]
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0, &pair) == 0,
            millrace_pipe(&ends, O_CLOEXEC) == 0
        else { throw .cannotStart(String(cString: strerror(errno))) }
        let nothing = open("/dev/null", O_RDWR | O_CLOEXEC)
        // High up first: a place may be another's descriptor.
        let theirs = [nothing, nothing, ends[1], pair[1]].map { fcntl($0, F_DUPFD_CLOEXEC, 200) }
        defer { for descriptor in theirs + [nothing, ends[1], pair[1]] { close(descriptor) } }
        var child = Subprocess(program, arguments)
        child.environment = environment.map { "\($0.key)=\($0.value)" }
        child.descriptors = theirs.enumerated().map { (ours: $0.element, place: Int32($0.offset)) }
        child.firstClosed = Self.place + 1
        child.resetsSignals = true
        (conversation, complaints) = (pair[0], ends[0])
        do throws(Subprocess.Refused) {
            pid = try child.start()
        } catch {
            closeAll()
            throw .cannotStart(String(cString: strerror(error.number)))
        }
        for descriptor in [conversation, complaints] {
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
        }
    }

    /// Says something, unless there is nothing to say, and waits for what comes back. After a failure the program is gone.
    package func exchange(_ request: Frame?, within limit: Duration) throws(Failure) -> Frame {
        let deadline = ContinuousClock.now + limit
        var outgoing = (request?.bytes ?? [])[...]
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            do throws(FrameReader.Complaint) {
                if outgoing.isEmpty, let frame = try reader.next() { return frame }
            } catch {
                end(killing: true)
                throw .misspoke
            }
            let left = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
            guard left > 0 else {
                end(killing: true)
                throw .late
            }
            var polled = [
                pollfd(
                    fd: conversation, events: Int16(outgoing.isEmpty ? POLLIN : POLLIN | POLLOUT), revents: 0),
                pollfd(fd: complaints, events: Int16(POLLIN), revents: 0),
            ]
            poll(&polled, 2, Int32(min(left.rounded(.up), 60_000)))
            if polled[1].revents != 0 { hear(&buffer) }
            if polled[0].revents & Int16(POLLOUT) != 0, !outgoing.isEmpty {
                let count = outgoing.withUnsafeBytes {
                    send(conversation, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                if count > 0 { outgoing.removeFirst(count) }
            }
            guard polled[0].revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 else { continue }
            let count = read(conversation, &buffer, buffer.count)
            if count > 0 {
                reader.take(buffer[0..<count])
            } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
                throw gone()
            }
        }
    }

    /// It reads its end, and has some time to go.
    package func stop() {
        end(killing: false)
    }

    private func hear(_ buffer: inout [UInt8]) {
        let count = read(complaints, &buffer, buffer.count)
        if count > 0 {
            messages.append(contentsOf: buffer[0..<count])
            if messages.count > 2 * Self.mostMessages { messages.removeFirst(messages.count - Self.mostMessages) }
        } else if count == 0 || (errno != EAGAIN && errno != EINTR) {
            close(complaints)
            complaints = -1
        }
    }

    /// It has closed its end: it dies, or has given up.
    private func gone() -> Failure {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let deadline = ContinuousClock.now + .seconds(2)
        while complaints >= 0, ContinuousClock.now < deadline {
            var polled = [pollfd(fd: complaints, events: Int16(POLLIN), revents: 0)]
            guard poll(&polled, 1, 200) > 0 else { break }
            hear(&buffer)
        }
        let said = String(decoding: messages.suffix(Self.mostMessages), as: UTF8.self)
        let status = end(killing: false)
        let signal = status & 0x7f
        let how = signal == 0 ? "it ended with \(status >> 8 & 0xff)" : "it crashed with signal \(signal)"
        return .ended(how, messages: said)
    }

    /// Returns its status, as `waitpid` says it.
    @discardableResult
    private func end(killing: Bool) -> Int32 {
        closeAll()
        guard pid > 0 else { return 0 }
        defer { pid = -1 }
        var status: Int32 = 0
        if killing { kill(-pid, SIGKILL) }
        let deadline = ContinuousClock.now + .seconds(5)
        while waitpid(pid, &status, WNOHANG) == 0 {
            if ContinuousClock.now > deadline {
                kill(-pid, SIGKILL)
                waitpid(pid, &status, 0)
                break
            }
            usleep(2000)
        }
        kill(-pid, SIGKILL)  // the group may have outlived it
        return status
    }

    private func closeAll() {
        for descriptor in [conversation, complaints] where descriptor >= 0 { close(descriptor) }
        (conversation, complaints) = (-1, -1)
    }
}
