import Synchronization

/// A value behind a lock that tasks and threads may share.
package final class Locked<Value: Sendable>: Sendable {
    private let mutex: Mutex<Value>

    package init(_ value: Value) { mutex = Mutex(value) }

    package var value: Value { mutex.withLock { $0 } }

    package func withLock<Result: Sendable, Failure: Error>(
        _ body: (inout Value) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try mutex.withLock { value throws(Failure) in try body(&value) }
    }
}

extension Locked<Int> {
    /// One more; how many there are now.
    @discardableResult
    package func add() -> Int {
        withLock { count in
            count += 1
            return count
        }
    }
}
