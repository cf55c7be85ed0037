public import Foundation

/// Questions to a language model, each for a purpose. AI has to be switched on for the person's tenant or family.
public struct AIClient: Sendable {
    private let doors: any DoorCaller

    /// On what calls functions.
    public init(_ doors: any DoorCaller) { self.doors = doors }

    /// Asks, and returns the question's id. The app's own purposes have names and inputs of their own.
    public func ask(
        _ purpose: String, _ input: [String: AppValue], _ options: AIOptions = AIOptions()
    ) async throws -> UUID {
        try await doors.act(
            "ai_ask", ["purpose": .string(purpose), "input": .object(input), "options": options.value])
    }

    /// How a question stands.
    public func answer(_ question: UUID) async throws -> AIAnswer {
        try await doors.ask("ai_answer", ["id": AppValue(question)], as: OneRow<AIAnswer>.self).row
    }

    /// The person's own questions, the newest first.
    public func questions(after question: UUID? = nil) async throws -> [AIAnswer] {
        try await doors.ask("ai_own", ["after": AppValue(question)])
    }

    /// How a question stands, now and after each change, until it has ended.
    public func follow(_ question: UUID) -> AsyncThrowingStream<AIAnswer, any Error> {
        let name = question.uuidString.lowercased()
        return doors.following(.ai) {
            $0.ref.lowercased() == name
        } isLast: {
            $0.hasEnded
        } read: {
            try await answer(question)
        }
    }

    /// Waits until there is an answer, for as long as the task is not cancelled.
    public func settled<Answer: Decodable & Sendable>(
        _ question: UUID, as type: Answer.Type = Answer.self
    ) async throws -> Answer {
        for try await now in follow(question) where now.hasEnded { return try now.decoded() }
        throw AppError(.unknown, "the stream of the question \(question) has ended without an answer")
    }

    /// By a parent: whether AI may be asked about the family.
    public func setOn(_ isOn: Bool, family: String) async throws -> Bool {
        try await doors.act(
            "ai_switch", ["scope": "family", "name": .string(family), "is_on": .bool(isOn)])
    }
}

/// What the purposes that are built in answer. Each asks, and waits for the answer.
extension AIClient {
    /// An introduction to a hobby.
    public func introduction(
        to hobby: String, fact: String, _ options: AIOptions = AIOptions()
    ) async throws -> HobbyIntroduction {
        try await settled(try await ask("hobby_intro", ["hobby": .string(hobby), "fact": .string(fact)], options))
    }

    /// A question for a flash card, of a hobby's fact.
    public func cardQuestion(
        _ hobby: String, fact: String, _ options: AIOptions = AIOptions()
    ) async throws -> String {
        let made: CardQuestion = try await settled(
            try await ask("flash_card", ["hobby": .string(hobby), "fact": .string(fact)], options))
        return made.question
    }

    /// A tip for somebody who feels like this.
    public func tip(
        for mood: MoodColor, situation: String? = nil, topic: String? = nil, _ options: AIOptions = AIOptions()
    ) async throws -> MoodTip {
        var words = "The person feels \(mood.rawValue)."
        if let situation { words += " " + situation }
        var input: [String: AppValue] = ["situation": .string(words)]
        if let topic { input["topic"] = .string(topic) }
        return try await settled(try await ask("coaching_tip", input, options))
    }

    /// A tip for a mood that is logged, of one's own or shared by the family; nil: one's own newest of the last day.
    public func tip(
        forMood mood: UUID?, situation: String? = nil, topic: String? = nil, _ options: AIOptions = AIOptions()
    ) async throws -> MoodTip {
        try await settled(
            try await act(
                "mood_tip",
                ["mood": AppValue(mood), "situation": AppValue(situation), "topic": AppValue(topic)], options))
    }

    /// How the newest messages of a thread sound together. Everybody who wrote them has to have AI switched on.
    public func tone(
        ofThread thread: UUID, last: Int = 50, _ options: AIOptions = AIOptions()
    ) async throws -> ThreadTone {
        try await settled(
            try await act("chat_tone", ["thread": AppValue(thread), "last": AppValue(last)], options))
    }

    /// How a text sounds.
    public func tone(of text: String, _ options: AIOptions = AIOptions()) async throws -> TextTone {
        try await settled(try await ask("sentiment", ["text": .string(text)], options))
    }

    private func act(
        _ door: String, _ arguments: [String: AppValue], _ options: AIOptions
    ) async throws -> UUID {
        try await doors.act(door, arguments.merging(["options": options.value]) { own, _ in own })
    }

    private struct CardQuestion: Decodable {
        let question: String
    }
}

/// How a question is asked.
public struct AIOptions: Sendable, Hashable {
    /// The language of the answer, such as `de`; nil: the person's.
    public var locale: String?
    /// Asks again, also where the same was answered before.
    public var isFresh = false
    /// It has a day's time, and costs less.
    public var mayWait = false

    /// From its parts.
    public init(locale: String? = nil) { self.locale = locale }

    var value: AppValue {
        var given: [String: AppValue] = [:]
        if let locale { given["locale"] = .string(locale) }
        if isFresh { given["fresh"] = true }
        if mayWait { given["may_wait"] = true }
        return .object(given)
    }
}

/// A question, and what came of it.
public struct AIAnswer: Sendable, Hashable, Identifiable, Decodable {
    /// The question's.
    public let id: UUID
    /// What it was asked for, such as `hobby_intro`.
    public let purpose: String
    /// `waiting`, `asking`, `answered`, `refused`, `failed` or `cancelled`.
    public let status: String
    /// It fits the purpose's schema, and is otherwise as good as what a stranger writes: show it as text.
    public let answer: AppValue?
    /// Why there is none.
    public let reason: String?
    /// The same for people.
    public let sentence: String?
    /// When it was asked.
    public let askedAt: Date
    /// When it was answered, or failed.
    public let endedAt: Date?

    /// For doubles of your own.
    public init(
        id: UUID, purpose: String, status: String, answer: AppValue? = nil, reason: String? = nil,
        sentence: String? = nil, askedAt: Date, endedAt: Date? = nil
    ) {
        (self.id, self.purpose, self.status, self.answer) = (id, purpose, status, answer)
        (self.reason, self.sentence, self.askedAt, self.endedAt) = (reason, sentence, askedAt, endedAt)
    }

    /// From an answer of `ai_answer`, which says `question`, or of `ai_own`, which says `id`.
    public init(from decoder: any Decoder) throws {
        let row = try decoder.container(keyedBy: Key.self)
        self.init(
            id: try row.decodeIfPresent(UUID.self, forKey: .question) ?? row.decode(UUID.self, forKey: .id),
            purpose: try row.decode(String.self, forKey: .purpose),
            status: try row.decode(String.self, forKey: .status),
            answer: try row.decodeIfPresent(AppValue.self, forKey: .answer),
            reason: try row.decodeIfPresent(String.self, forKey: .reason),
            sentence: try row.decodeIfPresent(String.self, forKey: .sentence),
            askedAt: try row.decode(Date.self, forKey: .askedAt),
            endedAt: try row.decodeIfPresent(Date.self, forKey: .endedAt))
    }

    private enum Key: String, CodingKey {
        case id, question, purpose, status, answer, reason, sentence, askedAt, endedAt
    }

    /// Nothing more will change.
    public var hasEnded: Bool { endedAt != nil }

    /// The answer as a type of yours. Throws why there is none.
    public func decoded<Answer: Decodable>(as type: Answer.Type = Answer.self) throws -> Answer {
        guard status == "answered", let answer else {
            throw AppError(
                status == "cancelled" ? .cancelled : .unavailable,
                "the question \(id) is \(status): \(reason ?? "no reason is known")", userMessage: sentence)
        }
        return try AppJSON.answer(of: purpose, answer)
    }
}

/// An introduction to a hobby.
public struct HobbyIntroduction: Sendable, Hashable, Codable {
    /// Its first line.
    public let title: String
    /// Some sentences.
    public let intro: String
    /// What the family may ask.
    public let questions: [String]?
}

/// A tip for somebody's day.
public struct MoodTip: Sendable, Hashable, Codable {
    /// The tip.
    public let tip: String
    /// One small thing to do.
    public let action: String?
}

/// How a conversation sounds.
public struct ThreadTone: Sendable, Hashable, Codable {
    /// From -1, hostile or hopeless, over 0 to 1, warm and glad.
    public let score: Double
    /// `warm`, `playful`, `neutral`, `tense`, `sad` or `hostile`.
    public let tone: String
    /// One sentence that names nobody.
    public let summary: String?
}

/// How a text sounds.
public struct TextTone: Sendable, Hashable, Codable {
    /// `positive`, `neutral`, `negative` or `mixed`.
    public let sentiment: String
    /// `none`, `low` or `high`: whether somebody should look after the writer.
    public let concern: String?
    /// One sentence.
    public let summary: String?
}
