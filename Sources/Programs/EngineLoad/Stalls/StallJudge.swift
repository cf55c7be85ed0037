import CommandKit

/// How an answer compares with the cause that was made.
enum StallVerdict: Equatable, Sendable {
    case right
    /// And what is wrong with it.
    case wrong(String)
    case silent

    init(_ stall: Stall, answer: JSONValue?) {
        guard let answer, let reason = answer["reason"]?.text, let sentence = answer["sentence"]?.text,
            !sentence.isEmpty
        else {
            self = .silent
            return
        }
        let chain = (answer["chain"]?.items ?? []).compactMap(\.text)
        let said = ([sentence] + chain).joined(separator: "\n")
        if !stall.reasons.contains(reason) {
            self = .wrong("\(reason): \(sentence)")
        } else if chain.count < 2 || chain.contains("") {
            self = .wrong("the chain has \(chain.count) steps: \(sentence)")
        } else if let missing = stall.mentions.first(where: { !said.contains($0) }) {
            self = .wrong("\(missing) is not named: \(said)")
        } else if stall.needsCommand, answer["command"]?.text == nil {
            self = .wrong("no command: \(sentence)")
        } else {
            self = .right
        }
    }
}

/// The verdicts of a run, by cause.
struct StallScore: Sendable {
    struct Row: Sendable {
        var right = 0
        var wrong = 0
        var silent = 0

        var all: Int { right + wrong + silent }
    }

    private(set) var rows: [StallCause: Row] = [:]
    private(set) var complaints: [String] = []
    /// Of the calls of `why`, in milliseconds.
    var times: [Double] = []

    mutating func add(_ verdict: StallVerdict, of stall: Stall) {
        switch verdict {
        case .right: rows[stall.cause, default: Row()].right += 1
        case .silent:
            rows[stall.cause, default: Row()].silent += 1
            complaints.append("\(stall.label): no answer")
        case .wrong(let why):
            rows[stall.cause, default: Row()].wrong += 1
            complaints.append("\(stall.label): \(why)")
        }
    }

    var all: Int { rows.values.reduce(0) { $0 + $1.all } }
    var right: Int { rows.values.reduce(0) { $0 + $1.right } }
    var silent: Int { rows.values.reduce(0) { $0 + $1.silent } }
    var share: Double { all == 0 ? 0 : Double(right) / Double(all) }

    var table: Table {
        var table = Table([
            .init("cause", shrinks: true), .init("asked", .trailing), .init("right", .trailing),
            .init("wrong", .trailing), .init("silent", .trailing),
        ])
        for cause in StallCause.allCases {
            let row = rows[cause] ?? Row()
            table.add([
                .init(cause.rawValue), .init("\(row.all)"), .init("\(row.right)"),
                .init("\(row.wrong)", row.wrong > 0 ? .red : .dim),
                .init("\(row.silent)", row.silent > 0 ? .red : .dim),
            ])
        }
        return table
    }

    var json: JSONValue {
        .array(
            StallCause.allCases.map { cause in
                let row = rows[cause] ?? Row()
                return [
                    "cause": .string(cause.rawValue), "right": .int(row.right), "wrong": .int(row.wrong),
                    "silent": .int(row.silent),
                ]
            })
    }
}

extension Stall {
    var label: String {
        companions.isEmpty
            ? cause.rawValue : "\(cause.rawValue) (with \(companions.map(\.rawValue).joined(separator: ", ")))"
    }
}
