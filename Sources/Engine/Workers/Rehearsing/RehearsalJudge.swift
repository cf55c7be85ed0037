import JSON

/// A job that is rehearsed, as the database has it.
package struct RehearsedJob: Sendable {
    package enum Place: Sendable, Equatable {
        /// Between two runs, at a step that waits.
        case waits(RehearsalAsked)
        /// It has run, and will run again.
        case underWay
        /// It has not begun.
        case fresh
        /// It has ended.
        case ended
    }

    package struct Step: Sendable {
        package var name: String
        /// What it had waited for, as far as it is known; nil: it did its own work, or that was not kept.
        package var asked: RehearsalAsked?

        package init(name: String, asked: RehearsalAsked? = nil) { (self.name, self.asked) = (name, asked) }
    }

    package var id: Int64
    package var kind: String
    package var place: Place
    /// In the order of the record.
    package var steps: [Step]

    package init(id: Int64, kind: String, place: Place, steps: [Step]) {
        (self.id, self.kind, self.place, self.steps) = (id, kind, place, steps)
    }
}

/// Why a build cannot go on with a job.
package struct RehearsalFinding: Sendable, Hashable {
    package enum Cause: String, Sendable, CaseIterable {
        /// The arguments do not decode.
        case arguments
        /// A value on record does not decode.
        case type
        /// The handler ends and has not asked for a step on record.
        case missing
        /// It asks for a step that is not on record where another is.
        case otherStep = "other_step"
        /// It asks for steps in another order.
        case order
        /// It does not come to wait where the job waits.
        case wait
        /// It asks with other input than what is on record.
        case input
        /// It threw before it had asked for what is on record.
        case failed
        /// It took too long.
        case hung
        /// Its process died.
        case crashed
        /// There is no handler for the kind.
        case noHandler = "no_handler"
    }

    package var cause: Cause
    package var step: String?
    /// Without the job's number.
    package var sentence: String

    package init(_ cause: Cause, step: String? = nil, _ sentence: String) {
        (self.cause, self.step, self.sentence) = (cause, step, sentence)
    }
}

/// Judges what a rehearsed run has asked for. Pure. A run must ask for all that is on record in its order, and then wait where the job waits; what
/// comes behind that is free.
package enum RehearsalJudge {
    package static func findings(_ job: RehearsedJob, _ answer: RehearsalAnswer) -> [RehearsalFinding] {
        switch answer.end {
        case .unknownKind: return [RehearsalFinding(.noHandler, "the build has no handler for this kind")]
        case .undecodable:
            return [RehearsalFinding(.arguments, "its arguments no longer fit: \(answer.why ?? "")")]
        case .finished, .stopped, .threw: break
        }
        if let misfit = answer.misfits.first {
            return [
                RehearsalFinding(.type, step: misfit.step, "the value on record for \(misfit.step): \(misfit.why)")
            ]
        }
        return [course(job, answer)].compactMap { $0 } + inputs(job, answer)
    }

    /// Whether it follows the record.
    private static func course(_ job: RehearsedJob, _ answer: RehearsalAnswer) -> RehearsalFinding? {
        if answer.answered < job.steps.count {
            let expected = job.steps[answer.answered].name
            let names = Set(job.steps.map(\.name))
            if let early = answer.instead.first(where: { names.contains($0.step) }) {
                return RehearsalFinding(.order, step: early.step, "it asks for \(early.step) before \(expected)")
            }
            if let other = answer.instead.first {
                return RehearsalFinding(
                    .otherStep, step: other.step,
                    "it asks for \(other.step), which is not on record, where \(expected) is")
            }
            if answer.end == .threw {
                return RehearsalFinding(
                    .failed, step: expected, "it fails before it asks for \(expected): \(answer.why ?? "")")
            }
            return RehearsalFinding(.missing, step: expected, "it ends without asking for \(expected)")
        }
        guard case .waits(let awaited) = job.place else { return nil }
        if let asked = answer.then.first(where: { $0.step == awaited.step }) {
            return difference(awaited, asked).map {
                RehearsalFinding(.wait, step: awaited.step, "at \(awaited.step), where it waits, \($0)")
            }
        }
        if let other = answer.then.first ?? answer.instead.first {
            return RehearsalFinding(
                .wait, step: other.step, "it asks for \(other.step), where the job waits at \(awaited.step)")
        }
        if answer.end == .threw {
            return RehearsalFinding(
                .failed, step: awaited.step, "it fails before it waits at \(awaited.step): \(answer.why ?? "")")
        }
        return RehearsalFinding(.wait, step: awaited.step, "it ends, where the job waits at \(awaited.step)")
    }

    private static func inputs(_ job: RehearsedJob, _ answer: RehearsalAnswer) -> [RehearsalFinding] {
        let waits = Dictionary(answer.waits.map { ($0.step, $0) }, uniquingKeysWith: { first, _ in first })
        for step in job.steps.prefix(answer.answered) {
            guard let was = step.asked, let text = difference(was, waits[step.name] ?? RehearsalAsked(step: step.name))
            else { continue }
            return [RehearsalFinding(.input, step: step.name, "at \(step.name), which is on record, \(text)")]
        }
        return []
    }

    /// What is asked for now and was not; nil: the same. Times and questions may be worded otherwise.
    private static func difference(_ was: RehearsalAsked, _ now: RehearsalAsked) -> String? {
        guard was.what == now.what else {
            return "it waited for \(thing(was.what)), and now asks for \(thing(now.what))"
        }
        if was.what == "signal", was.name != now.name || (was.key ?? "") != (now.key ?? "") {
            return was.name != now.name
                ? "it waited for the signal \(was.name ?? ""), and now for \(now.name ?? "")"
                : "it waited for another key of the signal \(was.name ?? "")"
        }
        guard was.what == "jobs", let old = was.children, let new = now.children else { return nil }
        if old.map(\.kind) != new.map(\.kind) { return "it waited for other jobs than it now makes" }
        let isSame = zip(old, new).allSatisfy { SameJSON.holds($0.args, $1.args) }
        return isSame ? nil : "its jobs had other arguments than it now makes"
    }

    private static func thing(_ what: String?) -> String {
        switch what {
        case "time": "a time"
        case "signal": "a signal"
        case "jobs": "jobs of its own"
        case "approval": "an answer"
        default: "a step's own work"
        }
    }
}

/// Whether two JSON texts say the same, whatever the order of their members.
enum SameJSON {
    static func holds(_ one: String, _ other: String) -> Bool {
        if one == other { return true }
        guard let left = try? JSONValue.read(one), let right = try? JSONValue.read(other) else { return false }
        return holds(left, right)
    }

    private static func holds(_ one: JSONValue, _ other: JSONValue) -> Bool {
        switch (one, other) {
        case (.object(let left), .object(let right)):
            let members = Dictionary(right.map { ($0.key, $0.value) }, uniquingKeysWith: { _, last in last })
            return left.count == right.count
                && left.allSatisfy { member in members[member.key].map { holds(member.value, $0) } ?? false }
        case (.array(let left), .array(let right)):
            return left.count == right.count && zip(left, right).allSatisfy { holds($0, $1) }
        case (.number(let left), .number(let right)): return left == right || Double(left) == Double(right)
        default: return one == other
        }
    }
}
