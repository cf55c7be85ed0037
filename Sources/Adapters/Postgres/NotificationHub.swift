import Synchronization

/// Receives notifications for all rooms of a process, on one connection. A server wakes every listening backend of a database for every
/// notification, whatever its channel, so each further connection would cost everybody who commits a notification.
package final class NotificationHub: Sendable {
    package enum News: Sendable, Equatable {
        /// From now on every notification is received; earlier changes must be looked for.
        case began
        case said(String)
        /// No notification is received until it begins again.
        case ended
    }

    package typealias Listener = @Sendable (News) -> Void

    private struct State {
        var listeners: [(channels: Set<String>, tell: Listener)] = []
        var isHosted = false
        var isOpen = false
    }

    /// A direct connection that keeps its session: past a transaction pooler, if there is one.
    package let options: ConnectionOptions
    /// It hears by a waker of this host, and has no connection.
    package let waker: WakerClient?
    private let state = Mutex(State())

    package init(_ options: ConnectionOptions, waker: WakerClient? = nil) {
        self.options = options
        self.waker = waker
    }

    /// No session of this process can hold the locks that make writers notify: a waker holds them for all, or there are too few connections.
    package var lacksSessions: Bool { waker != nil || options.budget != nil }

    /// Whether notifications arrive now.
    package var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Calls `tell` for notifications on these channels, on the receiving thread, so it must be quick. To be called before `run`.
    package func heed(_ channels: Set<String>, _ tell: @escaping Listener) {
        state.withLock { $0.listeners.append((channels, tell)) }
    }

    /// True for the first caller, which then receives for everybody: with `run`, or on a connection that it has anyway.
    package func host() -> Bool {
        state.withLock { state in
            defer { state.isHosted = true }
            return !state.isHosted
        }
    }

    /// Receives until cancelled, unless another caller does. Behind a transaction pooler nothing ever arrives.
    package func run() async {
        guard host(), !lacksSessions else { return }
        await RetryingLoop.run(cap: .seconds(5)) { loop throws(PostgresError) in
            let connection = try await Connection.open(options, name: "mr-hear")
            guard await !connection.isPooled else {
                await connection.close()
                return loop.end()
            }
            try await begin(on: connection)
            loop.worked()
            while !Task.isCancelled { try await hear(on: connection) }
            end()
            await connection.close()
        } failed: { error in
            end()
            return error == .cancelled ? .atOnce : .pause
        }
    }
}

/// For the caller that receives for everybody.
extension NotificationHub {
    package func begin(on connection: Connection) async throws(PostgresError) {
        for channel in state.withLock({ Set($0.listeners.flatMap(\.channels)) }).sorted() {
            try await connection.listen(channel)
        }
        state.withLock { $0.isOpen = true }
        tell(.began)
    }

    /// Waits for notifications for a while, and passes them on.
    package func hear(on connection: Connection) async throws(PostgresError) {
        for note in try await connection.notifications(until: .now + .seconds(30)) {
            tell(.said(note.payload), on: note.channel)
        }
    }

    /// Hears by the waker, until cancelled; nothing without one.
    package func follow() async {
        await waker?.run { [self] word in
            switch word {
            case .began:
                state.withLock { $0.isOpen = true }
                tell(.began)
            case .ended: end()
            case .said(let channel, let payload): tell(.said(payload), on: channel)
            case .order: break  // the client's to obey
            }
        }
        end()
    }

    package func end() {
        let wasOpen = state.withLock { state in
            defer { state.isOpen = false }
            return state.isOpen
        }
        if wasOpen { tell(.ended) }
    }

    private func tell(_ news: News, on channel: String? = nil) {
        let listeners = state.withLock { $0.listeners }
        for listener in listeners where channel.map(listener.channels.contains) ?? true { listener.tell(news) }
    }
}
