import CommandKit

/// Compares what happened with the rules: no watch ends by another person's action, nobody reads another's data, nobody is asked beyond the
/// limits.
struct PeopleJudge {
    struct Question: Sendable, Hashable {
        var id: String
        var asker: String
        /// The address in the form in which consent counts it.
        var address: String
    }

    typealias Fault = (kind: String, what: String)

    private(set) var asks = 0
    private var seen: Set<String> = []
    /// All requests that were sent: by which asker, to which address, in which hour. Counted separately from the model and the database.
    private var sent: [(asker: String, address: String, hour: Int)] = []

    mutating func faults(
        _ step: PeopleStep, allowed: Bool, answer: String, model: PeopleModel, before: PeopleWorld.Sight,
        after: PeopleWorld.Sight
    ) -> [Fault] {
        var faults: [Fault] = []
        if answer.hasPrefix("ok") != allowed {
            let isLook: Bool = if case .look = step.act { true } else { false }
            faults.append((isLook ? "read" : "rule", allowed ? "refused what is allowed" : "did what is not allowed"))
        }
        if !allowed, answer.hasPrefix("no"), !Self.isRefusal(answer) {
            faults.append(("unclassified", "failed with something other than a refusal"))
        }
        if let other = Self.watchTouched(step, before, after) {
            faults.append(("watch", "changed the watch of another: \(other)"))
        }
        let expected = Self.spelled(model)
        if after.state != expected {
            let extra = Set(after.state).subtracting(expected).sorted()
            let missing = Set(expected).subtracting(after.state).sorted()
            faults.append(("state", "there is \(extra), there should be \(missing)"))
        }
        for question in after.questions where seen.insert(question.id).inserted {
            asks += 1
            faults += faultsOf(question, model)
        }
        return faults
    }

    private static func isRefusal(_ answer: String) -> Bool {
        let state = answer.dropFirst(3).prefix(5)
        return ["42501", "55000", "P0002", "23505", "53400", "22023"].contains(state)
    }

    /// Time ends watches; else only their own person does, and a back end that erases.
    private static func watchTouched(
        _ step: PeopleStep, _ before: PeopleWorld.Sight, _ after: PeopleWorld.Sight
    ) -> String? {
        if case .wait = step.act { return nil }
        var own = step.actor ?? ""
        if case .erase(let person) = step.act, step.actor == nil { own = person }
        let changed = Set(before.watches).symmetricDifference(after.watches)
        return changed.sorted().first { !$0.hasPrefix("watch \(own) ") }
    }

    private mutating func faultsOf(_ question: Question, _ model: PeopleModel) -> [Fault] {
        var faults: [Fault] = []
        if model.never.contains(question.address) { faults.append(("asked", "asked one who said never again")) }
        let pair = sent.filter { $0.asker == question.asker && $0.address == question.address }
        let today = sent.filter { $0.hour / 24 == model.hour / 24 }
        if pair.count >= 5 { faults.append(("asked", "asked a sixth time: \(question)")) }
        if pair.contains(where: { $0.hour > model.hour - 24 }) {
            faults.append(("asked", "asked twice in a day: \(question)"))
        }
        if today.count(where: { $0.asker == question.asker }) >= 10 {
            faults.append(("asked", "one asked more than ten times a day: \(question)"))
        }
        if today.count(where: { $0.address == question.address }) >= 3 {
            faults.append(("asked", "one was asked more than three times a day: \(question)"))
        }
        sent.append((question.asker, question.address, model.hour))
        return faults
    }

    /// The model's state, as `PeopleWorld` spells the database's.
    private static func spelled(_ model: PeopleModel) -> [String] {
        var rows = ["never \(model.never.count)", "asks \(model.asked.values.reduce(0) { $0 + $1.times })"]
        rows += model.members.map { "member \($0.key) \($0.value.family) \($0.value.role)" }
        rows += model.invitations.filter { $0.value.expires > model.hour }.map {
            "invitation \($0.key.family) \($0.key.person) \($0.value.role)\($0.value.isDeclined ? " declined" : "")"
        }
        rows += model.watches.map { person, watch in
            switch watch {
            case .running: "watch \(person) running"
            case .expired: "watch \(person) expired"
            case .disarmed: "watch \(person) disarmed"
            }
        }
        rows += model.alarms.filter { $0.value.isOpen }.map { "alarm \($0.key) \($0.value.cause)" }
        for (named, channels) in model.contacts {
            rows += channels.map { channel, address in
                let state = address.isDeclined ? "declined" : address.isVerified ? "given" : "open"
                return "contact \(named.person) \(named.contact) \(channel) \(state)"
            }
        }
        return rows.sorted()
    }
}
