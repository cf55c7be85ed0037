public import Foundation

/// Hobbies, and the flash cards that their facts become.
public protocol HobbyService: Sendable {
    /// Names of hobbies to choose from.
    func presets() async throws -> [String]
    /// Its id makes it happen once. A new fact becomes a card of the family's quiz.
    func save(_ hobby: NewHobby) async throws -> Submission<UUID>
    /// Of a family, the newest first; nil: one's own.
    func hobbies(in family: String?, after: UUID?) async throws -> [Hobby]
    /// True: it was new to the person, and gave points.
    func markSeen(_ hobby: UUID) async throws -> Submission<Bool>
    /// The cards of the family's quiz; `after` is the last one of the page before.
    func cards(in family: String, after: UUID?) async throws -> [FlashCard]
    /// `at` is when it was answered. Returns whether it was right. The first answer gives points.
    func answer(_ card: UUID, _ answer: String, at: Date) async throws -> Submission<CardAnswer>
}

extension HobbyService {
    /// Saves a hobby with an id of its own.
    public func save(_ name: String, fact: String) async throws -> Submission<UUID> {
        try await save(NewHobby(name, fact: fact))
    }
    /// The newest ones.
    public func hobbies(in family: String? = nil) async throws -> [Hobby] { try await hobbies(in: family, after: nil) }
    /// The first ones.
    public func cards(in family: String) async throws -> [FlashCard] { try await cards(in: family, after: nil) }
    /// Answers now.
    public func answer(_ card: UUID, _ answer: String) async throws -> Submission<CardAnswer> {
        try await self.answer(card, answer, at: Date())
    }
}

/// A hobby with a fact about it.
public struct NewHobby: Sendable, Hashable {
    /// Names it for ever.
    public var id = UUID()
    /// What it is called.
    public var name: String
    /// What the person said about it.
    public var fact: String

    /// From its parts.
    public init(_ name: String, fact: String) { (self.name, self.fact) = (name, fact) }
}

/// A hobby that somebody has noted.
public struct Hobby: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: UUID
    /// Whose it is.
    public let person: String
    /// What it is called.
    public let name: String
    /// What the person said about it.
    public let fact: String
    /// When it was said.
    public let at: Date
    /// Who of the family has seen it.
    public let seenBy: [String]

    /// For doubles of your own.
    public init(
        id: UUID, person: String, name: String, fact: String, at: Date, seenBy: [String]
    ) {
        self.id = id
        self.person = person
        self.name = name
        self.fact = fact
        self.at = at
        self.seenBy = seenBy
    }
}

/// A question of the family quiz: whose fact is this, and what is it about?
public struct FlashCard: Sendable, Hashable, Identifiable, Decodable {
    /// Names it for ever.
    public let id: UUID
    /// Whose hobby it is about.
    public let person: String
    /// What the person said about it.
    public let fact: String
    /// When it was said.
    public let at: Date
    /// By the person who asks.
    public let answered: Bool
    /// As a model asks it; nil: there is none, and the fact is the question.
    public let question: String?

    /// For doubles of your own.
    public init(
        id: UUID, person: String, fact: String, at: Date, answered: Bool, question: String? = nil
    ) {
        self.question = question
        self.id = id
        self.person = person
        self.fact = fact
        self.at = at
        self.answered = answered
    }
}

/// What an answer came to.
public struct CardAnswer: Sendable, Hashable, Decodable {
    /// Whether the first answer was right.
    public let right: Bool
    /// Points for this answer: 0 when the card was answered before.
    public let awarded: Int
    /// All points of the person.
    public let total: Int
    /// What the right answer is.
    public let name: String

    /// For doubles of your own.
    public init(
        right: Bool, awarded: Int, total: Int, name: String
    ) {
        self.right = right
        self.awarded = awarded
        self.total = total
        self.name = name
    }
}
