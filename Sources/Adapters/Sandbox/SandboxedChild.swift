import ChildProtocol
import Synchronization
import Threads

/// A program that reads foreign bytes in our place. It is started with few rights, enters its sandbox before it reads anything, exchanges
/// frames of checked length with us, and is killed when it takes too long, writes too much, or when nobody waits for it any more.
package final class SandboxedChild: Sendable {
    package struct Program: Sendable {
        package var path: String
        package var arguments: [String]
        /// OpenMP reads its limit when it is loaded, and would otherwise use four times the CPU. A crash shows by its signal; Swift's
        /// backtrace could not be made inside the sandbox.
        package var environment = ["LC_ALL": "C.UTF-8", "OMP_THREAD_LIMIT": "1", "SWIFT_BACKTRACE": "enable=no"]

        package init(_ path: String, _ arguments: [String] = []) {
            self.path = path
            self.arguments = arguments
        }
    }

    package struct Limits: Sendable, Equatable {
        package var memory = 1 << 30
        /// The CPU time of its whole life.
        package var cpu: Duration = .seconds(60)
        /// The time for one request, from when it was sent, without what it waited for a processor.
        package var wall: Duration = .seconds(120)
        package var start: Duration = .seconds(20)
        package var fileSize = 1 << 30
        /// Its nice value, as of nice(1); 20: it gets CPU time only when nothing else wants it.
        package var niceness = 0
        package var answer = 64 << 20
        package var note = 1 << 20
        /// How much of its stderr is kept.
        package var messages = 4096

        package init() {}
    }

    package struct Answer: Sendable {
        package var payload: [UInt8]
        package var messages: String
    }

    /// Where a request's answer is delivered.
    struct Ask: Sendable {
        var id: Int64
        var bytes: [UInt8]
        var note: (@Sendable ([UInt8]) -> Void)?
        var answer: CheckedContinuation<Result<Answer, ChildFailure>, Never>
    }

    enum Order: Sendable {
        case ask(Ask)
        /// Nobody waits for this request any more. A child cannot be stopped within a request, so it is killed.
        case leave(Int64)
        case end
    }

    let orders = Mutex<(list: [Order], isOver: ChildFailure?)>(([], nil))
    let interrupt = Interrupt()
    let limits: Limits
    private let ids = Atomic<Int64>(0)
    private let last = Mutex<(pid: Int32?, refused: UInt32, ending: ProcessEnd?)>((nil, 0, nil))
    private let over = Wakeup()

    private init(_ limits: Limits) {
        self.limits = limits
    }

    /// The layers of its sandbox that the kernel has refused, as the bits of `CCage`.
    package var refusedLayers: UInt32 { last.withLock { $0.refused } }

    /// Starts it, and returns when it is shut in. The files are its descriptors from 3 on.
    package static func start(
        _ program: Program, limits: Limits = Limits(), files: [Int32] = []
    ) async throws(ChildFailure) -> SandboxedChild {
        let child = SandboxedChild(limits)
        let outcome: Result<Void, ChildFailure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                Thread.start(name: "child") {
                    do throws(ChildFailure) {
                        let process = try ChildProcess(program, limits: limits, files: files)
                        child.began(process.pid)
                        var driver = ChildDriver(process, of: child) { outcome in
                            continuation.resume(returning: outcome)
                        }
                        driver.run()
                    } catch {
                        child.ended(error, nil)
                        continuation.resume(returning: .failure(error))
                    }
                }
            }
        } onCancel: {
            child.order(.end)
        }
        try outcome.get()
        return child
    }

    /// One request at a time. If the task is cancelled the child is killed, because a request cannot be stopped otherwise.
    package func ask(
        _ request: [UInt8], note: (@Sendable ([UInt8]) -> Void)? = nil
    ) async throws(ChildFailure) -> Answer {
        let id = ids.add(1, ordering: .relaxed).newValue
        let outcome: Result<Answer, ChildFailure> = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let refusal: ChildFailure? = orders.withLock { state in
                    if let over = state.isOver { return over }
                    state.list.append(.ask(Ask(id: id, bytes: request, note: note, answer: continuation)))
                    return nil
                }
                if let refusal { continuation.resume(returning: .failure(refusal)) } else { interrupt.fire() }
            }
        } onCancel: {
            order(.leave(id))
        }
        return try outcome.get()
    }

    /// Lets it end, and kills it if it does not.
    @discardableResult
    package func end() async -> ProcessEnd? {
        order(.end)
        while orders.withLock({ $0.isOver == nil }) { await over.wait(for: .milliseconds(100)) }
        return last.withLock { $0.ending }
    }

    func order(_ order: Order) {
        orders.withLock { $0.list.append(order) }
        interrupt.fire()
    }

    /// While it lives.
    package var pid: Int32? { last.withLock { $0.ending == nil ? $0.pid : nil } }

    func began(_ pid: Int32) { last.withLock { $0.pid = pid } }
    func said(hello refused: UInt32) { last.withLock { $0.refused = refused } }

    /// Callers that still wait for an answer are told why there is none.
    func ended(_ failure: ChildFailure, _ ending: ProcessEnd?) {
        last.withLock { $0.ending = ending }
        let left: [Order] = orders.withLock { state in
            state.isOver = failure
            defer { state.list = [] }
            return state.list
        }
        for case .ask(let ask) in left { ask.answer.resume(returning: .failure(failure)) }
        over.fire()
    }
}

extension SandboxedChild {
    /// Starts a child for one request, and waits for its end, so that its usage is known.
    package static func run(
        _ program: Program, _ request: [UInt8], limits: Limits = Limits(), files: [Int32] = [],
        note: (@Sendable ([UInt8]) -> Void)? = nil
    ) async throws(ChildFailure) -> (answer: Answer, usage: Usage, refusedLayers: UInt32) {
        let child = try await start(program, limits: limits, files: files)
        do throws(ChildFailure) {
            let answer = try await child.ask(request, note: note)
            let ending = await child.end()
            return (answer, ending?.usage ?? Usage(), child.refusedLayers)
        } catch {
            var failure = error
            if let ending = await child.end() { failure.usage = ending.usage }
            throw failure
        }
    }
}
