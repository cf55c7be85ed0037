import Glibc
import Synchronization
import Testing
import Threads

@Suite struct ThreadExecutorTests {
    actor Counter {
        nonisolated let executor = ThreadExecutor(name: "test-counter")
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        var count = 0
        var threads: Set<pthread_t> = []

        deinit { executor.stop() }

        func add() -> Int {
            count += 1
            threads.insert(pthread_self())
            return count
        }

        /// Sits on the thread until somebody else wants it.
        func holdUntilWork(limit: Duration) -> Bool {
            let end = ContinuousClock.now + limit
            while !executor.hasWork {
                if ContinuousClock.now > end { return false }
                usleep(100)
            }
            return true
        }

        /// Sits on the thread until the gate opens.
        func hold(_ gate: ThreadGate) {
            gate.entered.withLock { $0 = true }
            while !gate.open.withLock({ $0 }) { usleep(100) }
        }
    }

    /// Blocks a thread, not a task.
    final class ThreadGate: Sendable {
        let open = Mutex(false)
        let entered = Mutex(false)
    }

    @Test func `every call runs, all on one thread, none lost among many callers`() async {
        let counter = Counter()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask { for _ in 0..<5000 { _ = await counter.add() } }
            }
        }
        #expect(await counter.count == 100_000)
        #expect(await counter.threads.count == 1)
    }

    @Test func `a call made while the thread falls asleep wakes it`() async {
        let counter = Counter()
        for _ in 0..<20_000 { _ = await counter.add() }
        #expect(await counter.count == 20_000)
    }

    /// 1. The thread is busy. 2. A call that waits and a second call are queued. 3. The thread takes both at once. The one that
    /// waits must see that the other wants the thread, or it would hold it up until its own deadline.
    @Test func `a call that waits learns of one that was queued together with it`() async throws {
        let counter = Counter()
        let gate = ThreadGate()
        async let first: Void = counter.hold(gate)
        while !gate.entered.withLock({ $0 }) { await Task.yield() }
        let waiting = Task { await counter.holdUntilWork(limit: .seconds(5)) }
        while !counter.executor.hasWork { await Task.yield() }
        let second = Task { await counter.add() }
        // The second is queued behind the waiting one once its task has suspended.
        for _ in 0..<1000 { await Task.yield() }
        gate.open.withLock { $0 = true }
        #expect(await waiting.value)
        #expect(await second.value == 1)
        await first
    }

    @Test func `an executor that is stopped lets its thread end`() async {
        weak var gone: ThreadExecutor?
        do {
            let executor = ThreadExecutor(name: "test-stop")
            gone = executor
            executor.stop()
        }
        let end = ContinuousClock.now + .seconds(90)
        while gone != nil, ContinuousClock.now < end { await Task.yield() }
        #expect(gone == nil)
    }

    @Test func `blocking work waits without holding up others`() async {
        let value = await Thread.run(name: "a-name-that-is-too-long") { 42 }
        #expect(value == 42)
    }

    @Test func `an interrupt is seen once, however often it was fired`() {
        let interrupt = Interrupt()
        #expect(!interrupt.take())
        interrupt.fire()
        interrupt.fire()
        #expect(interrupt.take())
        #expect(!interrupt.take())
    }
}
