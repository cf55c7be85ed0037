import Faults
import Threads

/// What one caller may do at once on this gateway. Who waits here holds no connection of the database, and nobody else waits for it.
package struct GatewayTurns: Sendable {
    /// Requests of a person, long polls among them.
    let requests = Seats(inAll: .max, perName: 64)
    /// Pushes of a person whose bodies are held in memory.
    let pushBodies = Seats(inAll: .max, perName: 8)
    /// Pushes of a person: the database does them one after the other anyway.
    let pushes: Turns
    /// Requests of a person with the same Idempotency-Key.
    let keys: Turns
    /// Tokens of an address that are being checked.
    let tokens = Turns(atOnce: 8, waiting: 1000, patience: .seconds(10))

    /// - Parameter patience: how long one waits.
    package init(patience: Duration = .seconds(8)) {
        pushes = Turns(atOnce: 1, waiting: 8, patience: patience)
        keys = Turns(atOnce: 1, waiting: 16, patience: patience)
    }
}

extension GatewayProblem {
    /// A person asks for more at once than one may.
    static func crowded(_ what: String) -> GatewayProblem {
        GatewayProblem(
            .throttled, "too many \(what) at once", field: "subject",
            hint: "send the next one when an earlier one has been answered")
    }
}
