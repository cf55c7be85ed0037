package import MillraceQueues

/// Decides who is dead, by beats alone that this watcher has itself seen stand still. Pure.
///
/// No clock of anybody else enters. A beat must stand still for 30 s of the watcher's own connected time, two of them since it last
/// reconnected; for 5 s when the session lock is free that this watcher has itself seen held; for 10 s when it was free from the first
/// look. After a restart of the database all locks are free and nobody is dead: workers are back within a second or two, and a
/// reconnect begins the watch over locks again. The silence that was seen before it counts, or cuts that come again and again would
/// put off a rescue without limit; and after a minute of it, cuts that are closer than two seconds put it off no more.
package struct Watch: Sendable {
    package struct Limits: Sendable {
        package var silent: Duration = .seconds(30)
        package var lockFree: Duration = .seconds(5)
        package var lockNeverHeld: Duration = .seconds(10)
        /// How long the beat must have stood still since the last reconnect: a worker that lives has beaten by then.
        package var settled: Duration = .seconds(2)

        package init() {}
    }

    private struct Seen {
        var beat: Int64
        /// The first and the last look over this connection; nil: there was none yet.
        var since: ContinuousClock.Instant?
        var last: ContinuousClock.Instant?
        /// What was seen of this beat over connections that are gone.
        var before = Duration.zero
        var heldLock: Bool
    }

    private let limits: Limits
    private var seen: [Int64: Seen] = [:]

    package init(limits: Limits = Limits()) {
        self.limits = limits
    }

    package mutating func reconnected() {
        for session in seen.keys {
            guard var entry = seen[session] else { continue }
            if let since = entry.since, let last = entry.last { entry.before += since.duration(to: last) }
            (entry.since, entry.last, entry.heldLock) = (nil, nil, false)
            seen[session] = entry
        }
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
                next[sign.session] = Seen(beat: sign.beat, since: now, last: now, heldLock: held)
                continue
            }
            let since = entry.since ?? now
            let still = since.duration(to: now)
            let silent = entry.before + still
            let free = entry.heldLock ? limits.lockFree : limits.lockNeverHeld
            let isSilent =
                silent >= limits.silent
                && (still >= min(limits.settled, limits.silent) || silent >= limits.silent * 2)
            if isSilent || (sign.direct && sign.lockIsFree && still >= free) {
                dead.append((sign.session, sign.beat))
            }
            (entry.since, entry.last) = (since, now)
            entry.heldLock = entry.heldLock || holds
            next[sign.session] = entry
        }
        seen = next
        return dead
    }
}
