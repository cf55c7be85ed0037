import MillraceQueues
import Postgres

extension Command {
    static let jobsStep = Command(
        ["jobs", "step"],
        summary: "Correct a job's record: set the value of a step, or forget it",
        discussion: """
            For admins, and written into the audit with the old and the new value, of which the kind's redactions are hidden. A \
            job that runs is refused with exit 4; no run begins meanwhile. set: of a step on record, or of the one at which the job \
            waits, which then goes on; a name that no run has reached needs --new. What a wait for a signal or an answer has \
            given is {"value": …} or {"timeout": true}. forget: the next run does the step again; an undo that was planned for it \
            is forgotten, too. A job that has ended needs jobs retry to run again.
            """,
        arguments: [
            Argument("id", .one, .jobID, help: "the job's id"),
            Argument("action", .one, .choice(["set", "forget"]), help: "what to do with its record"),
            Argument("step", .one, help: "the step's name"),
            Argument("value", .optional, help: "for set: JSON, @file, or - for standard input"),
        ],
        flags: [.toggle("new", environment: .none, help: "With set: also a step that is not on record.")],
        examples: [
            Example("millrace jobs step 42 set reserve '{\"shelf\": \"B7\"}'", "its next run goes on with that"),
            Example("millrace jobs step 42 forget reserve", "its next run does it again"),
        ]
    ) { invocation in
        let parsed = invocation.parsed
        let id = Int64(parsed.integer("id") ?? 0)
        let name = parsed.string("step") ?? ""
        let shown = DisplayWidth.harmless(name)
        let sets = parsed.string("action") == "set"
        guard sets == (parsed.string("value") != nil) else {
            throw Failure(.misused, sets ? "<value> is missing: the step's value" : "forget takes no value")
        }
        guard sets || !parsed.isOn("new") else { throw Failure(.misused, "--new is for set") }
        let value = try parsed.string("value").map {
            try invocation.json(at: $0, named: "the value", most: 4 * 1_048_576)
        }
        let isChanged = try await invocation.withSchema { connection in
            guard try await Queue.job(id, on: connection) != nil else { throw Invocation.unknown(id) }
            if let value {
                return try await Queue.setStep(
                    name, of: id, to: value, adds: parsed.isOn("new"), on: connection)
            }
            try await Queue.forgetStep(name, of: id, on: connection)
            return true
        }
        invocation.console.show([
            "id": .int(Int(id)), "step": .string(name), "action": .string(sets ? "set" : "forget"),
            "changed": .bool(isChanged),
        ]) {
            invocation.console.print(
                sets
                    ? isChanged ? "job \(id): step \(shown) is set" : "job \(id): step \(shown) has that value already"
                    : "job \(id): step \(shown) is forgotten")
        }
        return .done
    }
}
