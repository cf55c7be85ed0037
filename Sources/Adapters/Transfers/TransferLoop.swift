import CCurl
import Synchronization
import Threads

/// Runs transfers on its own thread, until its last owner releases it.
package final class TransferLoop: Sendable {
    package struct Settings: Sendable {
        package var trust = Trust()
        /// More wait their turn.
        package var mostInFlight = 1000
        /// Idle ones that are kept for later transfers.
        package var keptConnections = 256
        /// A connection older than this serves no further transfer, so that a change of address or certificate is noticed.
        package var connectionLife = Duration.seconds(300)
        /// Nor does one that has been idle for so long: the server will be about to close it.
        package var idleLife = Duration.seconds(50)
        /// How long a name's address is remembered.
        package var nameLife = Duration.seconds(60)
        /// Runs first on the loop's thread.
        package var prepare: (@Sendable () -> Void)?

        package init() {}
    }

    private let inbox: LoopInbox
    var census: Census { inbox.census }

    package init(_ settings: Settings = Settings()) {
        _ = Self.started
        let inbox = LoopInbox()
        self.inbox = inbox
        Thread.start(name: "transfers") { LoopThread(inbox, settings).run() }
    }

    deinit { inbox.post(.close) }

    /// Running transfers fail, and so do later ones.
    package func close() { inbox.post(.close) }

    private static let started: Bool = {
        let code = curl_global_init(Int(CURL_GLOBAL_DEFAULT))
        precondition(code == CURLE_OK, "libcurl cannot start: code \(code.rawValue)")
        return true
    }()

    /// What it holds now: transfers that somebody still waits for, and libcurl's handles, including idle ones.
    package var holds: (transfers: Int, handles: Int) {
        (inbox.census.transfers.load(ordering: .acquiring), inbox.census.handles.load(ordering: .acquiring))
    }

    func start(_ transfer: Transfer, _ delivery: TransferReceiver) {
        if !inbox.post(.start(transfer, delivery)) { delivery.fail(.closed) }
    }

    func giveUp(_ transfer: Transfer) {
        transfer.giveUp()
        inbox.post(.giveUp(transfer))
    }

    func goOn(_ transfer: Transfer) {
        inbox.post(.goOn(transfer))
    }
}
