import Synchronization
package import Threads

/// How many bytes of jobs' contents a worker has in memory, beyond what claims bring by themselves. A share is given back when nothing refers to
/// it any more, whichever way its job went.
package final class ByteBudget: Sendable {
    /// A share, as long as somebody keeps it.
    package final class Hold: Sendable {
        private let bytes: Int
        private let budget: ByteBudget

        fileprivate init(_ bytes: Int, of budget: ByteBudget) {
            self.bytes = bytes
            self.budget = budget
        }

        deinit {
            budget.giveBack(bytes)
        }
    }

    private let whole: Int
    private let used = Mutex(0)
    /// Fired when a share was given back.
    package let freed = Wakeup()

    package init(_ whole: Int) {
        self.whole = whole
    }

    package var isUnused: Bool { used.withLock { $0 == 0 } }
    /// What may still be taken.
    package var free: Int { max(0, whole - used.withLock { $0 }) }

    /// Takes a share, also where less is left: somebody who needs more than all of it would wait for ever.
    package func take(_ bytes: Int) -> Hold {
        used.withLock { $0 += bytes }
        return Hold(bytes, of: self)
    }

    private func giveBack(_ bytes: Int) {
        used.withLock { $0 -= bytes }
        freed.fire()
    }
}
