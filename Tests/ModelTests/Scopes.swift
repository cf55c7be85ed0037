extension Scope {
    static let kills = Scope(name: "kills", jobs: 2, workers: 2, faults: Faults(kills: 2))
    static let silences = Scope(name: "silences", jobs: 2, workers: 2, faults: Faults(silences: 2))
    static let early = Scope(name: "rescues too early", jobs: 2, workers: 2, faults: Faults(earlyRescues: 2))
    static let lost = Scope(name: "lost answers", jobs: 2, workers: 1, faults: Faults(kills: 1, cuts: 2))
    static let cancels = Scope(
        name: "cancels", jobs: 1, workers: 2, faults: Faults(kills: 1, silences: 1, retries: 1), cancels: true)
    static let crashes = Scope(name: "forgotten claims", jobs: 2, workers: 2, faults: Faults(crashes: 1))
    static let late = Scope(name: "late commits", jobs: 3, workers: 1, late: true, claimsEnd: true, batch: 1)

    static let all = [
        kills, silences, early, lost, cancels, crashes, late,
        Scope(
            name: "forgotten claims and cancels", jobs: 1, workers: 2, faults: Faults(kills: 1, crashes: 1),
            cancels: true),
        Scope(name: "forgotten claims and lost answers", jobs: 2, workers: 1, faults: Faults(cuts: 1, crashes: 1)),
        Scope(name: "lost answers near others", jobs: 2, workers: 2, faults: Faults(silences: 1, cuts: 1)),
        Scope(name: "retries", jobs: 2, workers: 2, faults: Faults(silences: 1, retries: 1)),
        Scope(
            name: "cancels and lost answers", jobs: 1, workers: 1, faults: Faults(kills: 1, cuts: 2, retries: 1),
            cancels: true),
        Scope(name: "drains", jobs: 2, workers: 2, faults: Faults(drains: 1), cancels: true),
        Scope(name: "drains and lost answers", jobs: 2, workers: 1, faults: Faults(cuts: 1, drains: 1, retries: 1)),
        Scope(
            name: "late commits and lost answers", jobs: 2, workers: 1, faults: Faults(cuts: 1), late: true,
            claimsEnd: true),
    ]

    /// The faults that must be found, in which scope, and their description.
    static let breaking: [(Broken, Scope, String)] = [
        (.noTokenCheck, silences, "was accepted whose token was no longer live"),
        (.noTokenCheck, crashes, "was accepted whose token was no longer live"),
        (.finishBeforeEffect, kills, "its work was never done"),
        (.noSweeper, late, "no end can be reached"),
        (.rescueLeavesLease, early, "is in 2 places"),
        (.rescueForgetsCancel, cancels, "is forgotten"),
        (.neverReconciles, lost, "no end can be reached"),
    ]
}
