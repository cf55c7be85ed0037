import LoadKit

/// A change of a described handler that jobs under way cannot bear, or can.
struct HandlerChange: Sendable {
    enum Sort: String, Sendable, CaseIterable {
        case renamed = "step renamed"
        case reordered = "steps reordered"
        case removed = "step removed"
        case addedBefore = "step added before"
        case typeChanged = "type changed"
        case flipped = "branch flipped"
        case argumentRenamed = "argument renamed"
        case argumentAdded = "argument added"
        case argumentType = "argument's type changed"
        case waitChanged = "wait changed"

        case addedAfter = "step added after"
        case workChanged = "a step's work changed"
        case logged = "log line or progress added"
        case spawned = "job spawned"
        case optionalArgument = "optional argument added"
        case widened = "type widened"
        case argumentWidened = "argument widened"
        case futureRenamed = "step renamed that none has come to"
        case futureRemoved = "step removed that none has come to"
        case sleptLonger = "sleep or question changed"
        case branchAdded = "branch added that none takes"
        case grouped = "steps grouped"

        var isHarmless: Bool { Self.harmless.contains(self) }

        static let harmless: [Sort] = [
            .addedAfter, .workChanged, .logged, .spawned, .optionalArgument, .widened, .argumentWidened, .futureRenamed,
            .futureRemoved, .sleptLonger, .branchAdded, .grouped,
        ]
        static let incompatible = allCases.filter { !$0.isHarmless }
    }

    var sort: Sort
    var handler: DescribedHandler
}

/// Makes changes of one handler. What is on record decides which of them its jobs can bear.
struct ChangeGenerator {
    typealias Part = DescribedHandler.Part

    private let handler: DescribedHandler
    /// Steps that are on record of some job, and those at which one waits.
    private let recorded: Set<String>
    private let touched: Set<String>
    private var number = 0

    init(_ handler: DescribedHandler, recorded: Set<String>, awaited: Set<String>) {
        self.handler = handler
        self.recorded = recorded
        touched = recorded.union(awaited)
    }

    /// nil: this handler has no place for such a change.
    mutating func change(_ sort: HandlerChange.Sort, using random: inout SeededChoices) -> HandlerChange? {
        var changed = handler
        // Harmless ones besides must hide nothing, and must not make anything worse.
        for _ in 0..<Int.random(in: 0...2, using: &random) {
            let other = HandlerChange.Sort.harmless.randomElement(using: &random) ?? .logged
            _ = apply(other, to: &changed, using: &random)
        }
        guard apply(sort, to: &changed, using: &random) else { return nil }
        return HandlerChange(sort: sort, handler: changed)
    }

    private mutating func fresh(_ word: String) -> String {
        number += 1
        return "\(word)-\(number)"
    }

    private mutating func apply(
        _ sort: HandlerChange.Sort, to changed: inout DescribedHandler, using random: inout SeededChoices
    ) -> Bool {
        switch sort {
        case .argumentRenamed, .argumentAdded, .argumentType, .optionalArgument, .argumentWidened:
            return applyToFields(sort, &changed, &random)
        case .logged, .spawned, .branchAdded:
            return insertAnywhere(sort, &changed, &random)
        case .addedAfter:
            changed.body.append(.step(fresh("added")))
            return true
        case .reordered: return reorder(&changed, &random)
        default: break
        }
        let names = Self.all(changed.body).filter { fits(sort, $0) }.map(\.name)
        guard let name = names.randomElement(using: &random) else { return false }
        let new = fresh("new")
        let pick = Int.random(in: 0...2, using: &random)
        return Self.edit(&changed.body, at: name) { parts, index in
            switch sort {
            case .renamed, .futureRenamed: parts[index].name = new
            case .removed, .futureRemoved: parts.remove(at: index)
            case .addedBefore: parts.insert(.step(new), at: index)
            case .typeChanged: parts[index].type = Self.misfitting(parts[index].type)
            case .widened: parts[index].type = parts[index].type == .int ? .double : .widerPair
            case .flipped: parts[index].negated.toggle()
            case .waitChanged: Self.changeWait(&parts[index], pick)
            case .workChanged: parts[index].value += 11
            case .sleptLonger:
                parts[index].seconds += 3600
                parts[index].value += 3
            case .grouped: parts[index] = .group(.together, new, [parts[index]])
            default: break
            }
        }
    }

    /// Whether a part is one that a change of this sort may be made of.
    private func fits(_ sort: HandlerChange.Sort, _ part: Part) -> Bool {
        switch sort {
        case .renamed, .removed, .addedBefore: touched.contains(part.name)
        case .typeChanged: recorded.contains(part.name) && (part.sort == .step || part.sort == .event)
        case .widened: part.sort == .step && (part.type == .int || part.type == .pair)
        case .flipped:
            part.sort == .branch && handler.fields.contains { $0.name == part.field }
                && Self.all(part.parts + part.otherwise).contains { touched.contains($0.name) }
        case .waitChanged: part.waits && touched.contains(part.name)
        case .workChanged: part.sort == .step
        case .futureRenamed, .futureRemoved: part.asks && part.sort != .failingStep && !touched.contains(part.name)
        case .sleptLonger: part.sort == .sleep || part.sort == .approval
        case .grouped: part.sort == .step
        default: false
        }
    }

    /// Two that stand beside each other, and that some job has come to.
    private func reorder(_ changed: inout DescribedHandler, _ random: inout SeededChoices) -> Bool {
        var pairs: [String] = []
        for part in [Part.group(.attempt, "", changed.body)] + Self.all(changed.body) {
            guard part.sort != .together else { continue }
            for list in [part.parts, part.otherwise] where list.count > 1 {
                for (first, second) in zip(list, list.dropFirst())
                where touched.contains(first.name) && touched.contains(second.name) { pairs.append(first.name) }
            }
        }
        guard let name = pairs.randomElement(using: &random) else { return false }
        return Self.edit(&changed.body, at: name) { parts, index in parts.swapAt(index, index + 1) }
    }

    private mutating func insertAnywhere(
        _ sort: HandlerChange.Sort, _ changed: inout DescribedHandler, _ random: inout SeededChoices
    ) -> Bool {
        guard let name = Self.all(changed.body).map(\.name).randomElement(using: &random) else { return false }
        let new = fresh("new")
        let isLog = Bool.random(using: &random)
        if sort == .branchAdded { changed.fields.append(.init(name: new, type: .flag, isOptional: true)) }
        return Self.edit(&changed.body, at: name) { parts, index in
            let part: Part =
                switch sort {
                case .spawned: .group(.spawn, new, [])
                case .branchAdded: .branch("\(new)-branch", on: new, [.step("\(new)-step")])
                default: .group(isLog ? .log : .progress, new, [])
                }
            parts.insert(part, at: index)
        }
    }

    private mutating func applyToFields(
        _ sort: HandlerChange.Sort, _ changed: inout DescribedHandler, _ random: inout SeededChoices
    ) -> Bool {
        let required = changed.fields.indices.filter { !changed.fields[$0].isOptional }
        let index = required.randomElement(using: &random) ?? 0
        switch sort {
        case .argumentRenamed: changed.fields[index].name = fresh(changed.fields[index].name)
        case .argumentAdded: changed.fields.append(.init(name: fresh("needed"), type: .int))
        case .argumentType: changed.fields[index].type = changed.fields[index].type == .text ? .int : .text
        case .argumentWidened:
            // Not one that is a key or goes to a child: there it would be other input.
            let used = Set(Self.all(changed.body).map(\.field))
            guard
                let free = required.first(where: {
                    changed.fields[$0].type == .int && !used.contains(changed.fields[$0].name)
                })
            else { return false }
            changed.fields[free].type = .double
        default: changed.fields.append(.init(name: fresh("may"), type: .int, isOptional: true))
        }
        return true
    }

    private static func misfitting(_ type: DescribedHandler.ValueType) -> DescribedHandler.ValueType {
        switch type {
        case .int, .double, .list: .text
        case .text: .int
        case .pair, .widerPair: .needyPair
        case .needyPair: .list
        }
    }

    private static func changeWait(_ part: inout Part, _ pick: Int) {
        switch part.sort {
        case .event where pick == 0: part.signal += "-v2"
        case .event where pick == 1: part.field = "other"
        case .event: part.sort = .approval
        case .approval:
            part.sort = .event
            (part.signal, part.field) = ("answered", "order")
        case .child where pick == 0: part.field = part.field == "other" ? "order" : "other"
        case .child: part.child = part.child == "rehearsed.stuck" ? "rehearsed.child" : "rehearsed.stuck"
        default:
            part.sort = .event
            (part.signal, part.field) = ("woken", "order")
        }
    }

    static func all(_ parts: [Part]) -> [Part] {
        parts.flatMap { [$0] + all($0.parts) + all($0.otherwise) }
    }

    /// Changes the list in which a part stands; false: there is none of that name.
    private static func edit(
        _ parts: inout [Part], at name: String, _ change: (inout [Part], Int) -> Void
    ) -> Bool {
        if let index = parts.firstIndex(where: { $0.name == name }) {
            change(&parts, index)
            return true
        }
        for index in parts.indices {
            if edit(&parts[index].parts, at: name, change) || edit(&parts[index].otherwise, at: name, change) {
                return true
            }
        }
        return false
    }
}
