import CCurl
import Glibc

/// A transfer on a handle. Confined to the loop's thread; libcurl's callbacks come there too.
final class RunningTransfer {
    let transfer: Transfer
    let easy: CurlHandle
    private let delivery: TransferReceiver
    private var stage = TransferError.Stage.unsent
    /// Why we stopped it ourselves, when we did.
    private var verdict: TransferError?

    private var status = 0
    private var version = ""
    private var headers = HTTPHeaders()
    private var trailers = HTTPHeaders()
    private var headBytes = 0
    private var bodyBytes = 0
    private var hasHead = false
    private var body: [UInt8] = []
    private var length: Int?
    /// The answer was complete before the request was; we stopped sending.
    private var isCutShort = false

    private let goOn: () -> Void

    init(_ transfer: Transfer, _ delivery: TransferReceiver, on easy: CurlHandle, goOn: @escaping () -> Void) {
        self.goOn = goOn
        self.transfer = transfer
        self.delivery = delivery
        self.easy = easy
    }

    /// Sets everything on a handle that is as new.
    func prepare(_ settings: TransferLoop.Settings, remaining: Duration) {
        let context = UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
        easy.setCommon(settings.trust)
        easy.set(CURLOPT_PRIVATE, pointer: context)
        easy.set(CURLOPT_MAXLIFETIME_CONN, max(1, settings.connectionLife.milliseconds / 1000))
        easy.set(CURLOPT_MAXAGE_CONN, max(1, settings.idleLife.milliseconds / 1000))
        easy.set(CURLOPT_DNS_CACHE_TIMEOUT, settings.nameLife.milliseconds / 1000)
        transfer.plan.set(on: easy, remaining: remaining)
        easy.set(CURLOPT_WRITEFUNCTION, Self.onBody)
        easy.set(CURLOPT_WRITEDATA, pointer: context)
        easy.set(CURLOPT_HEADERFUNCTION, Self.onHeader)
        easy.set(CURLOPT_HEADERDATA, pointer: context)
        precondition(millrace_on_request(easy.raw, Self.onRequest) == CURLE_OK)
        easy.set(CURLOPT_PREREQDATA, pointer: context)
        // For the policy, and because every child of ours would inherit libcurl's own sockets.
        precondition(millrace_on_open(easy.raw, Self.onOpen) == CURLE_OK)
        easy.set(CURLOPT_OPENSOCKETDATA, pointer: context)
        if transfer.upload != nil {
            easy.set(CURLOPT_READFUNCTION, Self.onSource)
            easy.set(CURLOPT_READDATA, pointer: context)
        }
    }

    /// Called after libcurl has released the handle.
    func finish(_ code: CURLcode) {
        transfer.upload?.stop()
        if let verdict {
            delivery.fail(verdict)
        } else if code != CURLE_OK, !isCutShort {
            delivery.fail(TransferError(code: code, stage: stage, limit: passedLimit, systemError: systemError(code)))
        } else if !hasHead {
            delivery.fail(TransferError(.dropped, stage, "the answer ended within its headers"))
        } else {
            switch delivery {
            case .whole(let continuation):
                continuation.resume(
                    returning: .success(HTTPResponse(head: head, body: body, trailers: trailers)))
            case .pieces(let download): download.end(.success(trailers))
            }
        }
    }

    func giveUp(_ error: (TransferError.Stage) -> TransferError) {
        verdict = error(stage)
        finish(CURLE_ABORTED_BY_CALLBACK)
    }

    private func systemError(_ code: CURLcode) -> Int32 {
        [CURLE_COULDNT_CONNECT, CURLE_SEND_ERROR, CURLE_RECV_ERROR].contains(code)
            ? Int32(easy.long(CURLINFO_OS_ERRNO)) : 0
    }

    private var passedLimit: TransferError.Limit {
        // libcurl counts whole milliseconds; a stall is at least a second.
        if ContinuousClock.now + .milliseconds(100) >= transfer.deadline { return .total }
        return stage == .unsent ? .connect : .stall
    }

    private var head: HTTPHead {
        HTTPHead(
            status: status, headers: headers, version: version, wasReused: easy.long(CURLINFO_NUM_CONNECTS) == 0)
    }

    // MARK: What libcurl calls

    private static func of(_ context: UnsafeMutableRawPointer?) -> RunningTransfer? {
        context.map { Unmanaged<RunningTransfer>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let onOpen: curl_opensocket_callback = { context, _, address in
        guard let running = of(context), let address else { return -1 }
        let isAdmitted = withUnsafePointer(to: &address.pointee.addr) { running.admits(IPAddress($0)) }
        guard isAdmitted else { return -1 }  // CURL_SOCKET_BAD: it goes on to the name's next address
        let flags = Int32(SOCK_CLOEXEC.rawValue)
        return socket(address.pointee.family, address.pointee.socktype | flags, address.pointee.protocol)
    }

    private static let onRequest: curl_prereq_callback = { context, address, _, _, _ in
        guard let running = of(context) else { return CURL_PREREQFUNC_ABORT }
        return running.mayAsk(address.map { String(cString: $0) }) ? CURL_PREREQFUNC_OK : CURL_PREREQFUNC_ABORT
    }

    private static let onHeader: millrace_bytes = { bytes, size, count, context in
        guard let running = of(context) else { return 0 }
        let line = UnsafeRawBufferPointer(start: bytes, count: size * count)
        return running.take(line: line) ? line.count : 0
    }

    private static let onBody: millrace_bytes = { bytes, size, count, context in
        guard let running = of(context) else { return 0 }
        return running.take(body: UnsafeRawBufferPointer(start: bytes, count: size * count))
    }

    private static let onSource: millrace_bytes = { bytes, size, count, context in
        guard let running = of(context), let upload = running.transfer.upload else { return Int(CURL_READFUNC_ABORT) }
        switch upload.take(into: UnsafeMutableRawBufferPointer(start: bytes, count: size * count)) {
        case .bytes(let count): return count
        case .nothingYet: return Int(CURL_READFUNC_PAUSE)
        case .over: return 0
        case .broken where running.isCutShort: return Int(CURL_READFUNC_ABORT)
        case .broken:
            running.verdict = TransferError(
                .source, running.stage, "the source of the body failed, or gave more or less than it had announced")
            return Int(CURL_READFUNC_ABORT)
        }
    }

    private func admits(_ address: IPAddress?) -> Bool {
        guard case .strict = transfer.plan.policy else { return true }
        do throws(TransferError) {
            guard let address else { throw TransferError(.refused, stage, "the address family is unknown") }
            try transfer.plan.policy.check(address, for: transfer.plan.target)
            verdict = nil  // another address of the name was refused before
            return true
        } catch {
            verdict = error
            return false
        }
    }

    private func mayAsk(_ address: String?) -> Bool {
        guard admits(address.flatMap(IPAddress.init)) else { return false }
        guard stage == .unsent || transfer.plan.mayRepeat else {
            verdict = TransferError(
                .dropped, stage, "the connection broke before an answer came; whether the request arrived is not known")
            return false
        }
        stage = .sent
        return true
    }

    private func take(line: UnsafeRawBufferPointer) -> Bool {
        headBytes += line.count
        guard headBytes <= transfer.plan.limits.headBytes else {
            verdict = TransferError(.tooLarge, stage, "the answer's headers are larger than allowed")
            return false
        }
        if hasHead {
            trailers.add(line: line)
        } else if line.starts(with: "HTTP/".utf8) {
            let words = line.split(separator: 0x20, maxSplits: 2)
            status = words.count > 1 ? Int(String(decoding: words[1].prefix { $0 > 0x20 }, as: UTF8.self)) ?? 0 : 0
            version = words.first.map { String(decoding: $0.dropFirst(5), as: UTF8.self) } ?? ""
            headers = HTTPHeaders()
            if status >= 200 { stage = .answered }
        } else if line.first == 0x0d || line.first == 0x0a {
            if status >= 200 { return begin() }
        } else {
            headers.add(line: line)
        }
        return true
    }

    private func begin() -> Bool {
        hasHead = true
        let isBare = transfer.plan.method == "HEAD" || status == 304
        length = isBare ? nil : headers["Content-Length"].flatMap { Int($0) }
        if let length, length > transfer.plan.limits.bodyBytes { return isTooLarge() }
        switch delivery {
        case .whole: if let length { body.reserveCapacity(length) }
        case .pieces(let download): download.begin(head)
        }
        if length == 0 { stopSending() }
        return true
    }

    private func take(body bytes: UnsafeRawBufferPointer) -> Int {
        guard bodyBytes + bytes.count <= transfer.plan.limits.bodyBytes else {
            _ = isTooLarge()
            return 0
        }
        switch delivery {
        case .whole: body.append(contentsOf: bytes)
        case .pieces(let download):
            guard download.put(bytes) else { return Int(CURL_WRITEFUNC_PAUSE) }
        }
        bodyBytes += bytes.count
        if bodyBytes == length { stopSending() }
        return bytes.count
    }

    /// Otherwise libcurl would read the source to its end, although nobody listens any more.
    private func stopSending() {
        guard let upload = transfer.upload, upload.cut() else { return }
        isCutShort = true
        goOn()
    }

    private func isTooLarge() -> Bool {
        verdict = TransferError(
            .tooLarge, stage, "the answer is larger than the \(transfer.plan.limits.bodyBytes) bytes that are allowed")
        return false
    }
}
