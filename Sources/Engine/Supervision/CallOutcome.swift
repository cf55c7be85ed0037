package import Faults

/// What a finished call means for decisions about the next ones.
package enum CallOutcome: Sendable, Equatable {
    case healthy
    case failing
    /// No call will succeed until `hold` has passed, or until somebody has corrected something.
    case refusing
    /// It says nothing about the provider: cancelled, our own mistake, or only too fast.
    case neutral

    package init(_ kind: ErrorClass?) {
        switch kind?.bearing {
        case nil, .healthy: self = .healthy
        case .failing: self = .failing
        case .refusing: self = .refusing
        case .pacing, .neutral: self = .neutral
        }
    }
}

/// A call that was let through, and for what reason.
package struct Permit: Sendable, Equatable {
    package enum Right: Sendable, Equatable {
        /// Nothing forbade it.
        case plain
        /// A probe of this process's own.
        case probe(Int64)
        /// A probe that the whole fleet counts.
        case fleetProbe(lease: Int64)
        case ramp
        case fleetRamp
    }

    package var right: Right
    package var generation: Int64
}

package enum Admission: Sendable, Equatable {
    case go(Permit)
    /// Another try may help from then on.
    case refused(until: Moment)
}
