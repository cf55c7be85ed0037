import FoundationEssentials
import Millrace
import MillraceJobs
import Synchronization
import Workers

/// Runs described handlers through the library, as a program of somebody's own would.
enum DescribedWorker {
    /// Names a file of descriptions; then this program is such a program.
    static let variable = "MILLRACE_LOAD_HANDLERS"

    private static let descriptions = Mutex<[DescribedHandler]>(DescribedHandler.ten)

    static func description(_ number: Int) -> DescribedHandler { descriptions.withLock { $0[number] } }

    /// Runs until it is told to end.
    static func run(from path: String) async throws {
        let read = try JSONDecoder().decode([DescribedHandler].self, from: Data(contentsOf: URL(fileURLWithPath: path)))
        descriptions.withLock { $0 = read }
        let worker = Millrace.Worker(log: .silent)
        worker.handle(handlers)
        try await worker.run()
    }

    static var handlers: [Handler] {
        [
            handler(DescribedJob<Nth0>.self), handler(DescribedJob<Nth1>.self), handler(DescribedJob<Nth2>.self),
            handler(DescribedJob<Nth3>.self), handler(DescribedJob<Nth4>.self), handler(DescribedJob<Nth5>.self),
            handler(DescribedJob<Nth6>.self), handler(DescribedJob<Nth7>.self), handler(DescribedJob<Nth8>.self),
            handler(DescribedJob<Nth9>.self),
        ]
    }

    private static func handler<Place: Nth>(_ type: DescribedJob<Place>.Type) -> Handler {
        Handler(type) { job, context in
            try await DescribedRun(job: job.values, context: context).run(description(Place.number).body)
            return .done
        }.takingUndos
    }
}

/// Which of the descriptions a type stands for.
protocol Nth: Sendable {
    static var number: Int { get }
}
enum Nth0: Nth { static let number = 0 }
enum Nth1: Nth { static let number = 1 }
enum Nth2: Nth { static let number = 2 }
enum Nth3: Nth { static let number = 3 }
enum Nth4: Nth { static let number = 4 }
enum Nth5: Nth { static let number = 5 }
enum Nth6: Nth { static let number = 6 }
enum Nth7: Nth { static let number = 7 }
enum Nth8: Nth { static let number = 8 }
enum Nth9: Nth { static let number = 9 }

/// A job whose arguments are those of its description.
struct DescribedJob<Place: Nth>: Job {
    static var kind: String { DescribedWorker.description(Place.number).kind }
    static var retries: RetryPolicy { RetryPolicy(attempts: 20, base: .seconds(86_400), cap: .seconds(86_400)) }

    var values: [String: DescribedValue] = [:]

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: DescribedKey.self)
        for field in DescribedWorker.description(Place.number).fields {
            let key = DescribedKey(field.name)
            if field.isOptional, try !container.contains(key) || container.decodeNil(forKey: key) { continue }
            values[field.name] =
                switch field.type {
                case .int: .int(try container.decode(Int.self, forKey: key))
                case .double: .double(try container.decode(Double.self, forKey: key))
                case .text: .text(try container.decode(String.self, forKey: key))
                case .flag: .flag(try container.decode(Bool.self, forKey: key))
                }
        }
    }

    func encode(to encoder: any Encoder) throws {}
}

enum DescribedValue: Sendable {
    case int(Int)
    case double(Double)
    case text(String)
    case flag(Bool)

    /// As a signal's key.
    var word: String {
        switch self {
        case .int(let number): "\(number)"
        case .double(let number): "\(number)"
        case .text(let text): text
        case .flag(let flag): "\(flag)"
        }
    }
}

struct DescribedKey: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(_ name: String) { stringValue = name }
    init?(stringValue: String) { self.init(stringValue) }
    init?(intValue: Int) { nil }
}

private struct Pair: Codable, Sendable {
    var a: Int
    var b: String
}

private struct WiderPair: Codable, Sendable {
    var a: Int
    var b: String
    var c: Int?
}

private struct NeedyPair: Codable, Sendable {
    var a: Int
    var b: String
    var c: Int
}

private struct OnPurpose: Error {}

private struct Described: Job {
    static let kind = "rehearsed.child"
    var n: Int
}

private struct Stuck: Job {
    static let kind = "rehearsed.stuck"
    var n: Int
}

/// One run of a description.
private struct DescribedRun: Sendable {
    typealias Part = DescribedHandler.Part

    let job: [String: DescribedValue]
    let context: Context

    func run(_ parts: [Part]) async throws {
        for part in parts { try await run(part) }
    }

    private func run(_ part: Part) async throws {
        switch part.sort {
        case .step: try await step(part)
        case .undoable: _ = try await context.step(part.name, undo: { (_: Double) in }) { Double(part.value) + 0.5 }
        case .sleep: try await context.sleep(part.name, for: .seconds(part.seconds))
        case .event: try await event(part)
        case .approval: _ = try await context.approval(part.name, of: "may it be \(part.value)?")
        case .child: try await child(part)
        case .branch:
            var takes = false
            if case .flag(true)? = job[part.field] { takes = true }
            try await run(takes != part.negated ? part.parts : part.otherwise)
        case .together:
            try await withThrowingTaskGroup(of: Void.self) { group in
                for part in part.parts { group.addTask { try await run(part) } }
                try await group.waitForAll()
            }
        case .attempt: do { try await run(part.parts) } catch is OnPurpose {} catch is RunHasEnded {}
        case .failingStep: try await context.step(part.name) { throw OnPurpose() }
        case .log: context.log("at \(part.name), \(part.value)")
        case .progress: context.progress(0.5, stage: part.name)
        case .spawn: try await context.spawn(Described(n: part.value))
        case .fails: throw OnPurpose()
        }
    }

    private func step(_ part: Part) async throws {
        switch part.type {
        case .int: _ = try await context.step(part.name) { part.value }
        case .double: _ = try await context.step(part.name) { Double(part.value) + 0.5 }
        case .text: _ = try await context.step(part.name) { "made \(part.value)" }
        case .list: _ = try await context.step(part.name) { [part.value, 8] }
        case .pair: _ = try await context.step(part.name) { Pair(a: part.value, b: "b") }
        case .widerPair: _ = try await context.step(part.name) { WiderPair(a: part.value, b: "b") }
        case .needyPair: _ = try await context.step(part.name) { NeedyPair(a: part.value, b: "b", c: 1) }
        }
    }

    private func event(_ part: Part) async throws {
        let key = job[part.field]?.word ?? ""
        switch part.type {
        case .int: _ = try await context.event(part.signal, key: key, as: Int.self, step: part.name)
        case .double: _ = try await context.event(part.signal, key: key, as: Double.self, step: part.name)
        case .text: _ = try await context.event(part.signal, key: key, as: String.self, step: part.name)
        case .list: _ = try await context.event(part.signal, key: key, as: [Int].self, step: part.name)
        case .pair: _ = try await context.event(part.signal, key: key, as: Pair.self, step: part.name)
        case .widerPair: _ = try await context.event(part.signal, key: key, as: WiderPair.self, step: part.name)
        case .needyPair: _ = try await context.event(part.signal, key: key, as: NeedyPair.self, step: part.name)
        }
    }

    private func child(_ part: Part) async throws {
        var n = 0
        if case .int(let number)? = job[part.field] { n = number }
        if part.child == Stuck.kind {
            _ = try await context.child(Stuck(n: n), as: Int.self, step: part.name)
        } else {
            _ = try await context.child(Described(n: n), as: Int.self, step: part.name)
        }
    }
}
