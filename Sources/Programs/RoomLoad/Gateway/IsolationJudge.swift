import CommandKit

/// Compares an answer with what its caller may see. Pure.
struct IsolationJudge: Sendable {
    let people: IsolationPeople
    /// Everything planted that has an id.
    let owners: [String: IsolationPeople.Mark]

    struct Tally: Sendable {
        var calls = 0
        var good = 0
        var refused = 0
        /// Answers in which something of the caller's own was found: the search finds what is there.
        var own = 0
        /// Answers with what fellows share.
        var shared = 0
        var byWhat: [String: Int] = [:]
        var faults: [String] = []
        var byKind: [String: Int] = [:]

        mutating func add(_ kind: String, _ fault: String) {
            byKind[kind, default: 0] += 1
            if faults.count < 20 { faults.append("\(kind): \(fault)") }
        }

        mutating func add(_ other: Tally) {
            calls += other.calls
            good += other.good
            refused += other.refused
            own += other.own
            shared += other.shared
            byWhat.merge(other.byWhat, uniquingKeysWith: +)
            byKind.merge(other.byKind, uniquingKeysWith: +)
            faults = Array((faults + other.faults).prefix(20))
        }
    }

    func judge(_ call: IsolationCall, _ answer: GatewayClient.Answer, reader: Int, step: Int, into tally: inout Tally) {
        tally.calls += 1
        tally.byWhat[call.what, default: 0] += 1
        if answer.isGood { tally.good += 1 } else { tally.refused += 1 }
        let place =
            "seed \(people.seed), \(people.name(reader)), call \(step): \(call.method) \(call.path) \(call.body?.compact ?? "")"
        func fault(_ kind: String, _ what: String) {
            tally.add(kind, "\(what)\n  \(place)\n  \(answer.status) \(answer.text.prefix(600))")
        }
        let headers = answer.headers.values.joined(separator: "\n")
        let bytes = answer.body + Array(headers.utf8)
        var marks = people.marks(in: bytes)
        for id in IsolationPeople.ids(in: bytes) where !call.named.contains(id) {
            if let mark = owners[id] { marks.insert(mark) }
        }
        let repeated = Set(call.named.flatMap { people.marks(in: Array($0.utf8)) })
        if marks.contains(where: { $0.owner == reader }) { tally.own += 1 }
        if marks.contains(where: { $0.owner != reader && people.mayRead(reader, $0) }) { tally.shared += 1 }
        for mark in marks.subtracting(repeated) where !people.mayRead(reader, mark) {
            fault("leak", "a \(mark.kind) of \(people.name(mark.owner)) came back")
        }
        switch answer.status {
        case 0: fault("lost", "no answer came")
        case 500: fault("internal", "an internal error")
        default: break
        }
        switch call.expectation {
        case .own: break
        case .nothing:
            if answer.isGood || answer.status == 303, !Self.isNothing(answer) {
                fault("acted", "a stranger's call was answered")
            }
        case .noDoor:
            // A name that cannot be decoded is no name.
            let isName = !call.path.contains("%00")
            if answer.status != 404, isName || answer.status != 400 {
                fault("door", "a function that is not for apps was not 404")
            }
        case .noToken: if answer.status != 401 { fault("token", "a forged token was not refused") }
        case .refused:
            if answer.status != 401, answer.status != 403 { fault("token", "a token for something else was taken") }
        }
    }

    /// The answer says that there is nothing, or that nothing was done.
    static func isNothing(_ answer: GatewayClient.Answer) -> Bool {
        guard answer.status != 303 else { return false }
        if answer.body.isEmpty { return true }
        guard let json = answer.json else { return false }
        return isNothing(json)
    }

    private static func isNothing(_ json: JSONValue) -> Bool {
        switch json {
        case .null, .bool(false), .int(0), .number("0"), .string(""): true
        case .array(let items): items.allSatisfy(isNothing)
        case .object(let members):
            if let outcome = json["outcome"]?.text {
                outcome == "refused" || outcome == "conflict"
            } else if let results = json["results"] {
                isNothing(results)
            } else if let events = json["events"] {
                isNothing(events)
            } else if json["deleted"] != nil {
                json["deleted"] == .bool(false)
            } else {
                members.isEmpty
            }
        case .bool, .int, .double, .number, .string, .raw: false
        }
    }
}
