import CommandKit
import FoundationEssentials
import LoadKit

/// Who belongs to whom, and the marks by which everything planted tells its owner. Pure.
struct IsolationPeople: Sendable {
    /// What carries a mark.
    enum Kind: Character, CaseIterable, Sendable {
        case document = "d"
        case job = "j"
        case mood = "m"
        case hobby = "h"
        case contact = "c"
        case alarm = "a"
        case profile = "p"
        case notice = "n"
        case letter = "l"
        case device = "q"
    }

    struct Mark: Sendable, Hashable {
        let kind: Kind
        let owner: Int
    }

    /// In a group everybody names the next as contact; the first six are a family.
    static let groupSize = 10
    static let familySize = 6

    /// Some months ahead, for what is due then.
    static let later = Date(timeIntervalSinceNow: 100 * 86_400).formatted(.iso8601)

    let count: Int
    let seed: UInt64
    private let codes: [[String]]

    init(count: Int, seed: UInt64) {
        self.count = count
        self.seed = seed
        codes = (0..<count).map { owner in
            var random = SeededChoices(seed: seed &* 1_000_003 &+ UInt64(owner))
            return Kind.allCases.map { _ in
                let hex = String(UInt32.random(in: .min ... .max, using: &random), radix: 16)
                return String(repeating: "0", count: 8 - hex.count) + hex
            }
        }
    }

    var groups: Int { (count + Self.groupSize - 1) / Self.groupSize }

    func name(_ user: Int) -> String { "person-\(user)" }
    func group(_ user: Int) -> Int { user / Self.groupSize }
    func family(_ user: Int) -> String { "family-\(group(user))" }
    func isInFamily(_ user: Int) -> Bool { user % Self.groupSize < Self.familySize }
    /// Half of the groups are a tenant by their claims; in the others each is alone.
    func tenant(_ user: Int) -> String? { group(user) % 2 == 0 ? "tenant-\(group(user))" : nil }
    func contact(of user: Int) -> Int {
        let next = user + 1
        return next < count && group(next) == group(user) ? next : group(user) * Self.groupSize
    }

    /// Twenty characters that stand nowhere by chance.
    func mark(_ kind: Kind, _ owner: Int) -> String {
        let number = String(owner)
        let place = Kind.allCases.firstIndex(of: kind) ?? 0
        return "mk\(kind.rawValue)\(String(repeating: "0", count: 4 - number.count))\(number)" + codes[owner][place]
    }

    /// May this reader see what carries the mark?
    func mayRead(_ reader: Int, _ mark: Mark) -> Bool {
        if reader == mark.owner { return true }
        guard group(reader) == group(mark.owner) else { return false }
        let isFamily = isInFamily(reader) && isInFamily(mark.owner)
        switch mark.kind {
        case .document, .job, .letter: return tenant(reader) != nil
        case .mood, .hobby: return isFamily
        case .profile: return isFamily || contact(of: reader) == mark.owner || contact(of: mark.owner) == reader
        case .alarm: return contact(of: mark.owner) == reader
        case .contact, .notice, .device: return false
        }
    }

    /// All marks in an answer's bytes.
    func marks(in bytes: [UInt8]) -> Set<Mark> {
        var found: Set<Mark> = []
        var place = 0
        while place + 15 <= bytes.count {
            guard bytes[place] == 0x6d, bytes[place + 1] == 0x6b,
                let kind = Kind(rawValue: Character(UnicodeScalar(bytes[place + 2]))),
                let owner = Int(String(decoding: bytes[(place + 3)..<(place + 7)], as: UTF8.self)), owner >= 0,
                owner < count, mark(kind, owner).utf8.elementsEqual(bytes[place..<(place + 15)])
            else {
                place += 1
                continue
            }
            found.insert(Mark(kind: kind, owner: owner))
            place += 15
        }
        return found
    }

    /// All ids in an answer's bytes, in lower case.
    static func ids(in bytes: [UInt8]) -> Set<String> {
        var found: Set<String> = []
        var place = 8
        while place + 28 <= bytes.count {
            guard bytes[place] == 0x2d, bytes[place + 5] == 0x2d, bytes[place + 10] == 0x2d, bytes[place + 15] == 0x2d
            else {
                place += 1
                continue
            }
            found.insert(String(decoding: bytes[(place - 8)..<(place + 28)], as: UTF8.self).lowercased())
            place += 28
        }
        return found
    }
}

/// What was planted for a person.
struct IsolationThings: Sendable {
    var documents: [String] = []
    var moods: [String] = []
    var hobbies: [String] = []
    var jobs: [Int] = []
    var letters: [String] = []
    var notices: [String] = []
    var alarm: String?
    /// A device token of the offline intake.
    var deviceToken: String?
}
