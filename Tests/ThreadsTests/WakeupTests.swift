import Synchronization
import Testing
import Threads

@Suite struct WakeupTests {
    @Test func `a call before the wait is not lost`() async {
        let signal = Wakeup()
        signal.fire()
        #expect(await signal.wait())
    }

    @Test func `many calls are one`() async {
        let signal = Wakeup()
        for _ in 0..<10 { signal.fire() }
        #expect(await signal.wait())
        #expect(!(await signal.wait(for: .zero)))
    }

    @Test func `a wait ends at its limit`() async {
        #expect(!(await Wakeup().wait(for: .milliseconds(1))))
    }

    @Test func `each wait ends at its own limit, whatever those of the waits before`() async {
        let signal = Wakeup()
        for round in 0..<60 {
            let long = Task { await signal.wait(for: .seconds(600 - round)) }
            if round.isMultiple(of: 2) { try? await Task.sleep(for: .milliseconds(1)) }
            signal.fire()
            #expect(await long.value)
            for limit in [Duration.milliseconds(round % 7), .milliseconds(20), .milliseconds(3)] {
                let began = ContinuousClock.now
                #expect(!(await signal.wait(for: limit)))
                #expect(began.duration(to: .now) >= limit)
            }
        }
    }

    @Test func `a cancelled task does not wait`() async {
        let signal = Wakeup()
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await signal.wait()
        }
        #expect(!(await task.value))
    }

    @Test func `a cancelled wait does not swallow a later call`() async {
        let signal = Wakeup()
        let task = Task { await signal.wait() }
        task.cancel()
        #expect(!(await task.value))
        signal.fire()
        #expect(await signal.wait(for: .seconds(60)))
    }

    /// Each round fires once, at any moment of a wait that may also end by itself or be cancelled.
    @Test func `no wake-up is lost among calls, limits and cancellations`() async {
        let signal = Wakeup()
        let rounds = 100_000
        let go = Wakeup()
        let heard = Mutex(0)
        let caller = Task.detached {
            for round in 0..<rounds {
                await go.wait()
                if round % 3 == 0 { await Task.yield() }
                signal.fire()
            }
        }
        for round in 0..<rounds {
            go.fire()
            var got = false
            if round % 5 == 0 {
                let waiter = Task { await signal.wait() }
                if round % 10 == 0 { await Task.yield() }
                waiter.cancel()
                got = await waiter.value
            } else if round % 50 == 1 {
                got = await signal.wait(for: .microseconds(round % 97))
            }
            while !got { got = await signal.wait(for: round % 50 == 2 ? .seconds(60) : nil) }
            heard.withLock { $0 += 1 }
        }
        await caller.value
        #expect(heard.withLock { $0 } == rounds)
        #expect(!(await signal.wait(for: .zero)))
    }
}
