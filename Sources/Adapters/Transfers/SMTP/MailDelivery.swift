import CCurl
import Glibc
import Synchronization

/// One message on its way. A lane drives it; to give it up, a caller closes its socket.
final class MailDelivery: Sendable {
    private struct State {
        var isGivenUp = false
        var conversation: Conversation
        var handedOver = 0
        var mayHaveEnded = false
        var lines = LineCheck()
        /// Why we cut the message off ourselves.
        var complaint: TransferError?
    }

    let envelope: SMTPEnvelope
    let deadline: ContinuousClock.Instant
    private let state: Mutex<State>
    private let socket = Mutex<LaneSocket?>(nil)
    private let upload: Upload?
    /// Lets the lane continue when its source has more, or when the delivery is given up.
    private let turn = ThreadSemaphore()

    init(_ envelope: SMTPEnvelope, deadline: ContinuousClock.Instant) {
        self.envelope = envelope
        self.deadline = deadline
        upload = if case .stream(let length, _) = envelope.message { Upload(length: length) } else { nil }
        state = Mutex(State(conversation: Conversation(recipients: envelope.recipients.count)))
    }

    var isGivenUp: Bool { state.withLock { $0.isGivenUp } }

    func giveUp() {
        state.withLock { $0.isGivenUp = true }
        socket.withLock { $0 }?.interrupt()
        turn.signal()
    }

    /// Blocks. The handle keeps its connection for the next one.
    func perform(_ plan: MailPlan, on easy: CurlHandle, _ laneSocket: LaneSocket) -> Result<MailResult, MailFailure> {
        guard !isGivenUp, deadline > .now else { return ended(CURLE_OPERATION_TIMEDOUT) }
        let recipients = TextList(envelope.recipients)
        let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        curl_easy_reset(easy.raw)
        plan.set(on: easy, envelope, recipients: recipients, remaining: deadline - .now)
        easy.set(CURLOPT_READFUNCTION, Self.onSource)
        easy.set(CURLOPT_READDATA, pointer: context)
        easy.set(CURLOPT_VERBOSE, true)
        precondition(millrace_on_talk(easy.raw, Self.onTalk) == CURLE_OK)
        easy.set(CURLOPT_DEBUGDATA, pointer: context)
        easy.set(CURLOPT_WRITEFUNCTION, Self.toNowhere)
        easy.set(CURLOPT_HEADERFUNCTION, Self.toNowhere)
        easy.set(CURLOPT_NOPROGRESS, false)
        precondition(millrace_on_progress(easy.raw, Self.onProgress) == CURLE_OK)
        easy.set(CURLOPT_XFERINFODATA, pointer: context)
        laneSocket.watch(easy)
        socket.withLock { $0 = laneSocket }
        let code = curl_easy_perform(easy.raw)
        socket.withLock { $0 = nil }
        easy.set(CURLOPT_MAIL_RCPT, nil as TextList?)
        return ended(code)
    }

    /// Also for one that never began.
    func ended(_ code: CURLcode) -> Result<MailResult, MailFailure> {
        let (conversation, mayHaveEnded, isGivenUp, complaint) = state.withLock {
            ($0.conversation, $0.mayHaveEnded, $0.isGivenUp, $0.complaint)
        }
        // The server's decision counts, whatever happened to the connection afterwards.
        if conversation.isDecided { return .success(conversation.result) }
        let stage: TransferError.Stage = mayHaveEnded ? .sent : .unsent
        if let complaint, !mayHaveEnded {
            return .failure(
                MailFailure(transfer: complaint, recipients: conversation.recipients, reply: conversation.reply))
        }
        let limit: TransferError.Limit = deadline <= .now ? .total : conversation.stage == .session ? .connect : .stall
        return .failure(
            MailFailure(
                transfer: isGivenUp
                    ? .cancelled(stage)
                    : TransferError(
                        code: code == CURLE_OK ? CURLE_WEIRD_SERVER_REPLY : code, stage: stage, limit: limit),
                recipients: conversation.recipients, reply: conversation.reply))
    }

    private static func of(_ context: UnsafeMutableRawPointer?) -> MailDelivery? {
        context.map { Unmanaged<MailDelivery>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let onSource: millrace_bytes = { bytes, size, count, context in
        guard let delivery = of(context), let bytes else { return Int(CURL_READFUNC_ABORT) }
        return delivery.hand(to: UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
    }

    /// The last two bytes go alone. They are requested when all others have been given to the system, and the dot follows them: so the time
    /// in which the message may have been taken begins as late as possible.
    private func hand(to buffer: UnsafeMutableRawBufferPointer) -> Int {
        let (done, length) = (state.withLock { $0.handedOver }, envelope.length)
        let room = UnsafeMutableRawBufferPointer(
            rebasing: buffer[..<min(buffer.count, (done < length - 2 ? length - 2 : length) - done)])
        guard !room.isEmpty else { return 0 }
        switch envelope.message {
        case .whole(let message):
            message.withUnsafeBytes {
                room.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[done..<done + room.count]))
            }
        case .stream:
            guard pull(into: room, atEnd: done >= length - 2) else { return Int(CURL_READFUNC_ABORT) }
        }
        return state.withLock { state in
            state.handedOver += room.count
            if state.handedOver > length - 2 { state.mayHaveEnded = true }
            return room.count
        }
    }

    /// Fills all of it from the source; waits for the source, on the lane's own thread. False when there is no more, or when what
    /// came must not be sent.
    private func pull(into room: UnsafeMutableRawBufferPointer, atEnd: Bool) -> Bool {
        func fail(_ error: TransferError) -> Bool {
            state.withLock { $0.complaint = error }
            return false
        }
        guard let upload else { return false }
        var filled = 0
        while filled < room.count {
            guard !isGivenUp, deadline > .now else { return false }
            switch upload.take(into: UnsafeMutableRawBufferPointer(rebasing: room[filled...])) {
            case .bytes(let count): filled += count
            case .nothingYet: turn.wait(atMost: min(.seconds(1), deadline - .now))
            case .over, .broken:
                return fail(TransferError(.source, .unsent, "the message could not be read to its end"))
            }
        }
        let complaint = state.withLock { state in
            state.lines.add(UnsafeRawBufferPointer(room)) ?? (atEnd && filled == 2 ? state.lines.end : nil)
        }
        return complaint.map { fail(TransferError(.invalid, .unsent, $0)) } ?? true
    }

    /// Keeps the lane supplied until it wants no more.
    func fill() async {
        guard let upload, case .stream(_, let next) = envelope.message else { return }
        await upload.fill(from: next) { self.turn.signal() }
    }

    private static let onTalk: curl_debug_callback = { _, kind, bytes, count, context in
        guard let delivery = of(context) else { return 0 }
        let line = UnsafeRawBufferPointer(start: bytes, count: count)
        if kind == CURLINFO_HEADER_OUT {
            delivery.state.withLock { $0.conversation.send(line) }
        } else if kind == CURLINFO_HEADER_IN {
            delivery.state.withLock { state in
                for line in line.split(separator: 0x0a) { state.conversation.receive(line) }
            }
        }
        return 0
    }

    private static let onProgress: curl_xferinfo_callback = { context, _, _, _, _ in
        of(context).map { $0.isGivenUp ? 1 : 0 } ?? 1
    }

    private static let toNowhere: millrace_bytes = { _, size, count, _ in size * count }
}
