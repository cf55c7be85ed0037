import Synchronization
import Threads

/// The slots of a process whose workers share them: see `SlotShares`.
///
/// A lock and no actor, as for `WorkerStateGuard`: it is asked under that lock, at each start and end of a job.
package final class SlotBudget: Sendable {
    private let shares: Mutex<SlotShares>
    fileprivate let calls: [Wakeup]

    package init(slots: Int, members: Int) {
        shares = Mutex(SlotShares(slots: slots, members: members))
        calls = (0..<members).map { _ in Wakeup() }
    }

    /// The part of one of the workers.
    package func share(_ member: Int) -> SlotShare { SlotShare(budget: self, member: member) }

    package var running: Int { shares.withLock { $0.running } }

    fileprivate func with<Value: Sendable>(_ body: (inout sending SlotShares) -> Value) -> Value {
        shares.withLock { body(&$0) }
    }
}

/// A worker's part of a `SlotBudget`. Those that it says may go on are called when the worker holds no lock.
package struct SlotShare: Sendable {
    fileprivate let budget: SlotBudget
    fileprivate let member: Int

    func settle(running: Int, held: Int) -> (cap: Int, called: [Int]) {
        budget.with { [member] in $0.settle(member, running: running, held: held) }
    }

    func look(running: Int, held: Int) -> (cap: Int, called: [Int]) {
        budget.with { [member] in $0.look(member, running: running, held: held) }
    }

    func take(running: Int, held: Int) -> (cap: Int, called: [Int]) {
        budget.with { [member] in $0.take(member, running: running, held: held) }
    }

    /// Who is to go on at once: itself, if there is more for it by now.
    func stops(at cap: Int) -> [Int] {
        budget.with { [member] in $0.stops(member, at: cap) } ? [] : [member]
    }

    func call(_ members: [Int]) {
        for member in members { budget.calls[member].fire() }
    }

    /// It was short of slots, and there are some.
    var called: Wakeup { budget.calls[member] }
}
