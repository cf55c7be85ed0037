import CMicrohttpd
import Glibc
import Synchronization

/// A daemon or a connection of the library's. It may go from thread to thread: what we call with it elsewhere than on the library's own,
/// which is to suspend, to resume, to quiesce and to stop, the library allows from any, and guards by locks of its own.
struct LibraryHandle: @unchecked Sendable {
    let pointer: OpaquePointer

    init(_ pointer: OpaquePointer) {
        self.pointer = pointer
    }
}

/// libmicrohttpd's daemon: one thread, on which it calls back. Nothing here waits.
final class Daemon: Sendable {
    let reception: HeadRules
    let openConnections: OpenConnections
    /// Starts a handler.
    private let serve: @Sendable (Exchange, Route, Request) -> Task<Void, Never>
    private let ended: @Sendable (Exchange, Bool) -> Void
    private let handle = Mutex<LibraryHandle?>(nil)
    private let isClosing = Mutex(false)
    private let live = Mutex<[ObjectIdentifier: Exchange]>([:])

    init(
        _ reception: HeadRules, _ openConnections: OpenConnections,
        serve: @escaping @Sendable (Exchange, Route, Request) -> Task<Void, Never>,
        ended: @escaping @Sendable (Exchange, _ isWhole: Bool) -> Void
    ) {
        self.reception = reception
        self.openConnections = openConnections
        self.serve = serve
        self.ended = ended
    }

    /// Requests that have not been answered to their end.
    var exchanges: [Exchange] { live.withLock { Array($0.values) } }

    /// The daemon owns the socket from then on. False: it does not start, and the socket is still the caller's.
    func start(on socket: Int32, connections: Int, memory: Int) -> Bool {
        // Itself held by the library until `stop`.
        let context = Unmanaged.passRetained(self)
        let started = millrace_mhd_start(
            socket, UInt32(connections), memory, Self.admits, Self.visits, Self.completes, Self.names, Self.handles,
            context.toOpaque())
        guard let started else {
            context.release()
            return false
        }
        let library = LibraryHandle(started)
        handle.withLock { $0 = library }
        return true
    }

    /// Takes no new connections; answers from now on say that their connection closes.
    func quiesce() {
        isClosing.withLock { $0 = true }
        guard let handle = handle.withLock({ $0 }) else { return }
        let socket = MHD_quiesce_daemon(handle.pointer)
        if socket >= 0 { close(socket) }
    }

    /// Waits for the library's thread, so it belongs on one of ours. What is still under way is cut.
    @available(*, noasync)
    func stop() {
        isClosing.withLock { $0 = true }
        let taken = handle.withLock { handle in
            defer { handle = nil }
            return handle
        }
        guard let taken else { return }
        // Nothing may be suspended any more, or the library ends the process; and from here nothing suspends itself again.
        for exchange in exchanges { exchange.abort() }
        MHD_stop_daemon(taken.pointer)
        Unmanaged.passUnretained(self).release()
    }

    // The library's callbacks. Each finds us, or the exchange, in the pointer that it is given.

    private static func own(_ context: UnsafeMutableRawPointer?) -> Daemon? {
        context.map { Unmanaged<Daemon>.fromOpaque($0).takeUnretainedValue() }
    }

    private static let admits: MHD_AcceptPolicyCallback = { context, address, _ in
        guard let daemon = own(context), let address else { return .NO }
        return daemon.openConnections.admits(ListenAddress.host(of: address)) ? .YES : .NO
    }

    private static let visits: MHD_NotifyConnectionCallback = { context, connection, slot, event in
        guard let daemon = own(context), let connection, let slot else { return }
        if event == .CONNECTION_NOTIFY_STARTED {
            let peer = millrace_mhd_peer(connection).map { ListenAddress.host(of: $0) } ?? "?"
            let key = daemon.openConnections.enter(socket: millrace_mhd_socket(connection), peer: peer)
            slot.pointee = UnsafeMutableRawPointer(bitPattern: key)
        } else {
            daemon.openConnections.leave(Int(bitPattern: slot.pointee))
            slot.pointee = nil
        }
    }

    /// The request line has come: from here on there is an exchange, until `completes`.
    private static let names:
        @convention(c) (UnsafeMutableRawPointer?, UnsafePointer<CChar>, OpaquePointer) -> UnsafeMutableRawPointer? = {
            context, target, connection in
            guard let daemon = own(context) else { return nil }
            let exchange = Exchange(
                target: String(cString: target), targetSize: strlen(target), connection: connection,
                connectionKey: Int(bitPattern: millrace_mhd_visitor(connection)),
                openConnections: daemon.openConnections)
            daemon.live.withLock { $0[ObjectIdentifier(exchange)] = exchange }
            if daemon.handle.withLock({ $0 == nil }) && daemon.isClosing.withLock({ $0 }) { exchange.abort() }
            return Unmanaged.passRetained(exchange).toOpaque()
        }

    private static let completes: MHD_RequestCompletedCallback = { context, _, slot, code in
        guard let daemon = own(context), let slot, let held = slot.pointee else { return }
        slot.pointee = nil
        let exchange = Unmanaged<Exchange>.fromOpaque(held).takeRetainedValue()
        daemon.openConnections.attach(nil, to: exchange.connectionKey)
        daemon.openConnections.change(exchange.connectionKey) { $0.completed(at: .now) }
        exchange.completed()
        daemon.live.withLock { _ = $0.removeValue(forKey: ObjectIdentifier(exchange)) }
        daemon.ended(exchange, code == .REQUEST_TERMINATED_COMPLETED_OK)
    }

    private static let handles: MHD_AccessHandlerCallback = {
        context, connection, _, method, version, bytes, size, slot in
        guard let daemon = own(context), let connection, let size, let held = slot?.pointee else { return .NO }
        let exchange = Unmanaged<Exchange>.fromOpaque(held).takeUnretainedValue()
        if exchange.begins() {
            guard let method, let version else { return .NO }
            let found = HeaderReading(of: connection)
            let line = strlen(method) + 1 + exchange.targetSize + 1 + strlen(version) + 2
            let head = RequestHead(
                method: String(cString: method), target: exchange.target, version: String(cString: version),
                headers: found.headers, peer: daemon.openConnections.peer(exchange.connectionKey),
                isExact: found.isContiguous && line + found.size + 2 == millrace_mhd_head_size(connection))
            return daemon.begin(exchange, head, on: connection) ? .YES : .NO
        }
        if size.pointee > 0, let bytes {
            let count = size.pointee
            size.pointee = 0
            daemon.openConnections.change(exchange.connectionKey) { $0.received(count, at: .now) }
            return bytes.withMemoryRebound(to: UInt8.self, capacity: count) { start in
                exchange.receive(UnsafeBufferPointer(start: start, count: count))
            } ? .YES : .NO
        }
        switch exchange.proceed() {
        case .wait: return .YES
        case .cut: return .NO
        case .answer(let response): return daemon.answer(response, exchange, on: connection) ? .YES : .NO
        }
    }

    /// The library is about to answer by itself, and to some malformed headers it answers with two heads. It does not say for which
    /// connection, but it calls here before it sends. So every client that has sent malformed headers gets our answer now, and the
    /// library's goes nowhere.
    fileprivate func refuseWhatIsMalformed() {
        for exchange in exchanges {
            exchange.refuseBeforeItBegins {
                let headers = HeaderReading(of: $0).headers
                return reception.malformed(headers).map { reception.response(to: $0, headers) }
            }
        }
    }

    private func begin(_ exchange: Exchange, _ head: RequestHead, on connection: OpaquePointer) -> Bool {
        exchange.note.withLock { note in
            note.method = head.method
            // Some servers read the end of the last chunk leniently: bytes after it are never taken for a request.
            note.isLast = head.isChunked
        }
        if head.hasBody {
            openConnections.change(exchange.connectionKey) { $0.received(0, at: .now) }
        } else {
            openConnections.change(exchange.connectionKey) { $0.handedOver() }
        }
        switch reception.decide(head) {
        case .answer(let response, let pattern):
            exchange.note.withLock { $0.pattern = pattern }
            if head.hasLittleBody, response.headers["Connection"] == nil {
                exchange.settle(response)
                return true
            }
            return answer(response, exchange, on: connection)
        case .serve(let route, let parameters, let query):
            exchange.note.withLock { $0.pattern = route.pattern }
            let request = Request(
                method: route.method, path: String(head.path), parameters: parameters, query: query,
                headers: head.headers, peer: head.peer, body: RequestBody(exchange: exchange))
            openConnections.attach(exchange, to: exchange.connectionKey)
            exchange.serve(upTo: route.limit) { serve(exchange, route, request) }
            return true
        }
    }

    private func answer(_ response: Response, _ exchange: Exchange, on connection: OpaquePointer) -> Bool {
        let isLast = exchange.note.withLock { note in
            note.status = response.status
            return note.isLast
        }
        return response.send(on: connection, of: exchange, closing: isLast || isClosing.withLock { $0 })
    }
}

@_cdecl("millrace_mhd_answers_itself")
func answersItself(_ context: UnsafeMutableRawPointer) {
    Unmanaged<Daemon>.fromOpaque(context).takeUnretainedValue().refuseWhatIsMalformed()
}
