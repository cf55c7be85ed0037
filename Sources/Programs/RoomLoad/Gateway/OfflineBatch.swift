import CommandKit
import FoundationEssentials
import LoadKit

/// What a phone did while it had no connection: operations, of which some must be refused. Pure.
struct OfflineBatch: Sendable {
    struct Operation: Sendable {
        /// Which of the batch it is; each person's own id is made from it.
        let number: Int
        let op: String
        let at: String
        let args: [(String, JSONValue)]
        /// It must not be carried out.
        var isRefused = false
    }

    private(set) var operations: [Operation] = []
    /// When the last check-in happened, as it must be in force in the end.
    private(set) var lastCheckIn: String?
    private(set) var moods = 0

    /// - Parameter now: in seconds since 1970; everything happened within the six hours before.
    init(seed: UInt64, now: Int) {
        var random = SeededChoices(seed: seed)
        later = (now / 86_400 + 100) * 86_400
        let count = Int.random(in: 6...30, using: &random)
        // Each at a time of its own, so that which one is newest is never a toss.
        let times = Array(0..<21_000).shuffled(using: &random).prefix(count + 2).map { now - 60 - $0 }
        for number in 0..<count { add(number, at: times[number], &random) }
        // One check-in at least, between operations that are refused.
        let place = Int.random(in: 0...operations.count, using: &random)
        operations.insert(refused(count, at: times[count], &random), at: place)
        addCheckIn(count + 1, at: times[count + 1], place: place + 1)
        operations.insert(refused(count + 2, at: times[count], &random), at: place + 2)
    }

    static func time(_ seconds: Int) -> String {
        Date(timeIntervalSince1970: Double(seconds)).formatted(.iso8601)
    }

    private var latest: Int?
    /// A midnight some months ahead, from which notices are due.
    private let later: Int

    private mutating func addCheckIn(_ number: Int, at: Int, place: Int) {
        operations.insert(Operation(number: number, op: "check_in", at: Self.time(at), args: []), at: place)
        if at > latest ?? .min { (latest, lastCheckIn) = (at, Self.time(at)) }
    }

    private mutating func add(_ number: Int, at: Int, _ random: inout SeededChoices) {
        func any(_ values: [String]) -> JSONValue { .string(values.randomElement(using: &random) ?? "") }
        func operation(_ op: String, _ args: [(String, JSONValue)]) {
            operations.append(Operation(number: number, op: op, at: Self.time(at), args: args))
        }
        switch Int.random(in: 0..<20, using: &random) {
        case ..<4: addCheckIn(number, at: at, place: operations.count)
        case ..<8:
            moods += 1
            operation("mood_log", [("color", any(["happy", "sad", "calm"])), ("emoji", .string("m\(number)"))])
        case ..<10:
            operation("hobby_save", [("name", any(["chess", "Chess", "song"])), ("fact", .string("fact \(number)"))])
        case ..<12: operation("check_in_set_interval", [("every", any(["5 days", "6 days", "8 days"]))])
        case ..<13: operation("person_profile", [("display_name", .string("name \(number)"))])
        case ..<14:
            operation("person_profile", [("locale", any(["de", "en", "fr"])), ("reminder_hour", .int(number % 24))])
        case ..<15:
            operation(
                "notice_preferences",
                [
                    ("zone", any(["Europe/Berlin", "UTC"])), ("quiet_from", "22:00"), ("quiet_to", "06:00"),
                    ("channels", ["push": .bool(number % 2 == 0)]), ("locale", "en"),
                ])
        case ..<17:
            operation(
                "own_notice_schedule",
                [
                    ("kind", "reminder"), ("key", any(["a", "b"])),
                    ("at", .string(Self.time(later + number % 18 * 86_400))),
                    ("data", ["n": .int(number)]),
                ])
        case ..<18: operation("own_notice_cancel", [("key", any(["a", "b"]))])
        default: operations.append(refused(number, at: at, &random))
        }
    }

    /// One of many ways to be wrong.
    private func refused(_ number: Int, at: Int, _ random: inout SeededChoices) -> Operation {
        func wrong(_ op: String, _ args: [(String, JSONValue)], at time: String? = nil) -> Operation {
            Operation(number: number, op: op, at: time ?? Self.time(at), args: args, isRefused: true)
        }
        switch Int.random(in: 0..<7, using: &random) {
        case 0: return wrong("explode", [])
        case 1: return wrong("mood_log", [("color", "no color at all")])
        case 2: return wrong("check_in", [("person", "somebody-else")])
        case 3: return wrong("check_in", [("surplus", 1)])
        case 4: return wrong("check_in", [], at: "yesterday")
        case 5: return wrong("person_erase", [])
        default: return wrong("check_in_set_interval", [("every", "-1 hour")])
        }
    }

    // MARK: as a person sends it

    func json(_ operation: Operation, person: String) -> JSONValue {
        let hasPerson = operation.args.contains { $0.0 == "person" }
        let args = (hasPerson ? [] : [("person", JSONValue.string(person))]) + operation.args
        return [
            "id": .string(Self.id(operation.number, of: person)), "op": .string(operation.op),
            "at": .string(operation.at), "args": .object(args.map { .init(key: $0.0, value: $0.1) }),
        ]
    }

    static func id(_ number: Int, of person: String) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in person.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        func hex(_ value: UInt64, _ digits: Int) -> String {
            let text = String(value, radix: 16)
            return String(repeating: "0", count: max(0, digits - text.count)) + text.suffix(digits)
        }
        return
            "\(hex(hash >> 32, 8))-\(hex(hash >> 16 & 0xffff, 4))-4000-8000-\(hex(hash & 0xffff, 4))\(hex(UInt64(number), 8))"
    }
}
