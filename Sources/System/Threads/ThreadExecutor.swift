import CLinux
import Glibc
import Synchronization

/// Runs an actor's jobs on its own thread, so that blocking C calls stall nobody else.
///
/// When idle, the thread sleeps on `wakeDescriptor`. A job that must wait for a descriptor itself polls both, and returns when
/// `wakeDescriptor` becomes readable, to let the next job run.
package final class ThreadExecutor: SerialExecutor, TaskExecutor {
    private struct State {
        var jobs: [UnownedJob] = []
        var head = 0
        var stopped = false
        var thread: pthread_t?
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
        let mustWake = state.withLock { state in
            state.jobs.append(job)
            // The thread itself looks before it sleeps.
            return state.jobs.count == state.head + 1 && state.thread != pthread_self()
        }
        if mustWake { signal() }
    }

    /// True when another job waits for the thread.
    package var hasWork: Bool {
        state.withLock { $0.head < $0.jobs.count || $0.stopped }
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

    /// One job at a time: waiting jobs must show in `hasWork`.
    private func loop() {
        state.withLock { $0.thread = pthread_self() }
        while true {
            let (job, stopped) = state.withLock { state -> (UnownedJob?, Bool) in
                guard state.head < state.jobs.count else {
                    state.jobs.removeAll(keepingCapacity: true)
                    state.head = 0
                    return (nil, state.stopped)
                }
                state.head += 1
                return (state.jobs[state.head - 1], state.stopped)
            }
            if let job {
                job.runSynchronously(on: asUnownedSerialExecutor())
            } else if stopped {
                return
            } else {
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
