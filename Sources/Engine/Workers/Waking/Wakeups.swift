import MillraceQueues
import Synchronization
import Threads

/// What the claim loop was told while it slept.
final class Wakeups: Sendable {
    struct News: Sendable {
        /// A job waits in each.
        var lanes: Set<Lane> = []
        /// These may hold many.
        var filled: Set<Lane> = []
        /// Look everywhere, and at what may have committed late.
        var careful = false
    }

    private let news = Mutex(News())
    let signal = Wakeup()

    func hint(_ lane: Lane) {
        _ = news.withLock { $0.lanes.insert(lane) }
        signal.fire()
    }

    func filled(_ lanes: [Lane]) {
        guard !lanes.isEmpty else { return }
        news.withLock { $0.filled.formUnion(lanes) }
        signal.fire()
    }

    func lookEverywhere() {
        news.withLock { $0.careful = true }
        signal.fire()
    }

    func take() -> News {
        news.withLock { news in
            defer { news = News() }
            return news
        }
    }
}
