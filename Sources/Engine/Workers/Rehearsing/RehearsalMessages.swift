/// A job as a rehearsed build is told of it. JSON texts are texts within the message.
package struct RehearsalRequest: Codable, Sendable, Equatable {
    package struct Step: Codable, Sendable, Equatable {
        package var name: String
        package var value: String

        package init(name: String, value: String) { (self.name, self.value) = (name, value) }
    }

    package struct Predecessor: Codable, Sendable, Equatable {
        package var id: Int64
        package var succeeded: Bool
        package var result: String?

        package init(id: Int64, succeeded: Bool, result: String?) {
            (self.id, self.succeeded, self.result) = (id, succeeded, result)
        }
    }

    package var id: Int64
    package var kind: String
    package var queue = "default"
    package var attempt = 1
    package var crashes = 0
    /// Seconds since 1970.
    package var enqueuedAt: Double = 0
    package var tenant: String?
    package var tags: [String] = []
    package var metadata: String?
    package var args: String
    package var steps: [Step] = []
    /// The step at which the job waits now.
    package var awaited: String?
    package var earlier: [Predecessor] = []
    /// How long nothing must move before a step counts as asked for before its turn, in milliseconds.
    package var patience = 15

    package init(id: Int64, kind: String, args: String) {
        (self.id, self.kind, self.args) = (id, kind, args)
    }
}

/// What a run asked for.
package struct RehearsalAsked: Codable, Sendable, Equatable {
    package struct Child: Codable, Sendable, Equatable {
        package var kind: String
        package var args: String

        package init(kind: String, args: String) { (self.kind, self.args) = (kind, args) }
    }

    package var step: String
    /// time, signal, jobs or approval; nil: the step's own work.
    package var what: String?
    /// Of a signal.
    package var name: String?
    package var key: String?
    package var children: [Child]?

    package init(
        step: String, what: String? = nil, name: String? = nil, key: String? = nil, children: [Child]? = nil
    ) {
        (self.step, self.what, self.name, self.key, self.children) = (step, what, name, key, children)
    }
}

/// What a run of a rehearsed build did.
package struct RehearsalAnswer: Codable, Sendable, Equatable {
    package enum End: String, Codable, Sendable {
        /// It returned.
        case finished
        /// It was told to end, where something was not on record.
        case stopped
        case threw
        /// Its arguments do not decode.
        case undecodable
        /// The build has no handler for its kind.
        case unknownKind
    }

    package struct Misfit: Codable, Sendable, Equatable {
        package var step: String
        package var why: String

        package init(step: String, why: String) { (self.step, self.why) = (step, why) }
    }

    /// How many of the recorded steps it asked for, in their order.
    package var answered = 0
    /// What it asked for where another step was on record.
    package var instead: [RehearsalAsked] = []
    /// What it asked for behind the record.
    package var then: [RehearsalAsked] = []
    /// The waits on record that it asked for.
    package var waits: [RehearsalAsked] = []
    /// Values on record that are not what it takes them for.
    package var misfits: [Misfit] = []
    package var end = End.finished
    /// With threw and undecodable.
    package var why: String?

    package init() {}
}

/// What a rehearsed build says first.
package struct RehearsalHello: Codable, Sendable {
    package var kinds: [String]
    /// It cannot call anybody.
    package var isOffline: Bool

    package init(kinds: [String], isOffline: Bool) { (self.kinds, self.isOffline) = (kinds, isOffline) }
}
