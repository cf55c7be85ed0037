/// Which of the workers of one process may use how many of its slots. Pure.
///
/// Each may use what the others leave to it: all but what they use, and what they are about to use up to a level that is the same for all. So
/// slots of an idle one go to the busy ones, those that want more than there is get the same, and each always has room to begin one more
/// job, as long as there are at least as many slots as workers.
package struct SlotShares: Sendable {
    private struct Member {
        var running = 0
        /// What runs and what waits to start.
        var held = 0
        /// The cap at which it stopped, until it is called.
        var shortAt: Int?
        /// It stopped at its cap, and has not looked since whether there is more for it to do.
        var isHungry = false
        /// It looks right now.
        var hasLooked = false

        /// It may always look for one more. How much a hungry one could use, nobody knows.
        var wanted: Int { isHungry ? .max : held + 1 }
    }

    package let slots: Int
    private var members: [Member]

    package init(slots: Int, members: Int) {
        precondition(members > 0 && slots >= members, "each worker needs a slot")
        self.slots = slots
        self.members = [Member](repeating: Member(), count: members)
    }

    package var running: Int { members.reduce(0) { $0 + $1.running } }

    /// How many jobs this one may run at once, as things stand.
    package func cap(of member: Int) -> Int { cap(of: member, level: level) }

    /// What it runs and holds now. The answer is its cap, and those that may go on.
    package mutating func settle(_ member: Int, running: Int, held: Int) -> (cap: Int, called: [Int]) {
        members[member].running = running
        members[member].held = held
        return answer(to: member)
    }

    /// The same when it is about to look for jobs. When it does so again and still has room, there were no more.
    package mutating func look(_ member: Int, running: Int, held: Int) -> (cap: Int, called: [Int]) {
        members[member].running = running
        members[member].held = held
        if held < cap(of: member) {
            if members[member].hasLooked { members[member].isHungry = false }
            members[member].hasLooked = true
        }
        return answer(to: member)
    }

    /// It is about to start a job: if its cap lets it, the job counts from now on.
    package mutating func take(_ member: Int, running: Int, held: Int) -> (cap: Int, called: [Int]) {
        members[member].running = running
        members[member].held = held
        let answer = answer(to: member)
        if running < answer.cap { members[member].running += 1 }
        return answer
    }

    /// It has stopped at this cap, and is to be called when there is more for it. False: there is by now.
    package mutating func stops(_ member: Int, at cap: Int) -> Bool {
        guard self.cap(of: member) <= cap else { return false }
        members[member].shortAt = cap
        members[member].isHungry = true
        members[member].hasLooked = false
        return true
    }

    private mutating func answer(to member: Int) -> (cap: Int, called: [Int]) {
        let level = level
        var called: [Int] = []
        for other in members.indices where other != member {
            guard let short = members[other].shortAt, cap(of: other, level: level) > short else { continue }
            members[other].shortAt = nil
            called.append(other)
        }
        return (cap(of: member, level: level), called)
    }

    private func cap(of member: Int, level: Int) -> Int {
        var left = slots
        for other in members.indices where other != member {
            left -= max(members[other].running, min(level, members[other].wanted))
        }
        return max(0, left)
    }

    /// What each of those gets that want more than that, if the others get what they want.
    private var level: Int {
        var level = slots / members.count
        while true {
            var left = slots
            var above = 0
            for member in members {
                if member.wanted <= level { left -= member.wanted } else { above += 1 }
            }
            guard above > 0 else { return slots }
            let next = left / above
            guard next > level else { return level }
            level = next
        }
    }
}
