package import Queues

/// Decides who is dead, by beats alone that this watcher has itself seen stand still. Pure.
///
/// No clock of anybody else enters. A beat must stand still for 30 s of the watcher's own connected time; for 5 s when the session
/// lock is free that this watcher has itself seen held; for 10 s when it was free from the first look. After a restart of the
/// database all locks are free and nobody is dead: workers are back within a second or two, and a reconnect begins every watch
/// anew.
package struct Watch: Sendable {
    package struct Limits: Sendable {
        package var silent: Duration = .seconds(30)
        package var lockFree: Duration = .seconds(5)
        package var lockNeverHeld: Duration = .seconds(10)

        package init() {}
    }

    private struct Seen {
        var beat: Int64
        var since: ContinuousClock.Instant
        var heldLock: Bool
    }

    private let limits: Limits
    private var seen: [Int64: Seen] = [:]

    package init(limits: Limits = Limits()) {
        self.limits = limits
    }

    package mutating func reconnected() {
        seen = [:]
    }

    package var others: Int { seen.count }

    /// The sessions that are dead, with the beat at which each stood still.
    package mutating func look(_ signs: [Sign], at now: ContinuousClock.Instant) -> [(session: Int64, beat: Int64)] {
        var next: [Int64: Seen] = [:]
        var dead: [(session: Int64, beat: Int64)] = []
        for sign in signs {
            let holds = sign.direct && !sign.lockIsFree
            guard var entry = seen[sign.session], entry.beat == sign.beat else {
                let held = (seen[sign.session]?.heldLock ?? false) || holds
                next[sign.session] = Seen(beat: sign.beat, since: now, heldLock: held)
                continue
            }
            let still = entry.since.duration(to: now)
            let free = entry.heldLock ? limits.lockFree : limits.lockNeverHeld
            if still >= limits.silent || (sign.direct && sign.lockIsFree && still >= free) {
                dead.append((sign.session, sign.beat))
            }
            entry.heldLock = entry.heldLock || holds
            next[sign.session] = entry
        }
        seen = next
        return dead
    }
}
