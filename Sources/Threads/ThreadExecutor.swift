import CLinux
import Glibc
import Synchronization

/// Runs an actor's jobs on one thread of its own, so that blocking C calls stall nobody else.
///
/// Idle, the thread sleeps on `wakeDescriptor`; a job that must itself wait for a descriptor polls this one beside it and
/// returns when it becomes readable, to let the next job run.
package final class ThreadExecutor: SerialExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var stopped = false
    }

    private let state = Mutex(State())
    package let wakeDescriptor: Int32

    package init(name: String) {
        wakeDescriptor = millrace_eventfd()
        precondition(wakeDescriptor >= 0, "no descriptor left for a thread's wake-up")
        Thread.start(name: name) { [self] in loop() }
    }

    deinit {
        close(wakeDescriptor)
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let wasEmpty = state.withLock { state in
            state.jobs.append(job)
            return state.jobs.count == 1
        }
        if wasEmpty { signal() }
    }

    /// True when another job waits for the thread.
    package var hasWork: Bool {
        state.withLock { !$0.jobs.isEmpty || $0.stopped }
    }

    /// Ends the thread once its jobs are done. The owner calls it from `deinit`; nothing may be enqueued afterwards.
    package func stop() {
        state.withLock { $0.stopped = true }
        signal()
    }

    private func signal() {
        var one: UInt64 = 1
        _ = write(wakeDescriptor, &one, 8)
    }

    private func loop() {
        while true {
            let (jobs, stopped) = state.withLock { state in
                defer { state.jobs.removeAll(keepingCapacity: true) }
                return (state.jobs, state.stopped)
            }
            for job in jobs {
                job.runSynchronously(on: asUnownedSerialExecutor())
            }
            if jobs.isEmpty {
                if stopped { return }
                sleep()
            }
        }
    }

    private func sleep() {
        var waiting = pollfd(fd: wakeDescriptor, events: Int16(POLLIN), revents: 0)
        _ = poll(&waiting, 1, -1)
        var count: UInt64 = 0
        _ = read(wakeDescriptor, &count, 8)
    }
}
