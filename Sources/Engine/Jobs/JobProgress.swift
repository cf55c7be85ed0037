/// How far a run has come, by its own report.
public struct JobProgress: Sendable, Equatable {
    /// From 0 to 1; nil when it cannot tell.
    public var fraction: Double?
    /// What it is doing, of at most 128 characters.
    public var stage: String?
    /// A line for people, of at most 1,000 characters.
    public var note: String?

    /// Cuts every value to its bounds.
    public init(fraction: Double? = nil, stage: String? = nil, note: String? = nil) {
        self.fraction = fraction.flatMap { $0.isNaN ? nil : min(max($0, 0), 1) }
        self.stage = stage.map { Bounded.text($0, most: 128) }
        self.note = note.map { Bounded.text($0, most: 1000) }
    }
}

/// A line of a job's own log.
public struct LogLine: Sendable, Equatable {
    /// How much it matters.
    public enum Level: String, Sendable, CaseIterable {
        /// For developers of the handler.
        case debug
        /// What happened.
        case info
        /// Something that needs attention.
        case warning
        /// What went wrong.
        case error
    }

    /// How much it matters.
    public let level: Level
    /// At most 4,000 characters; a cut shows as `…`.
    public let text: String

    package init(_ text: String, _ level: Level) {
        self.level = level
        self.text = Bounded.text(text, most: 4000)
    }
}

enum Bounded {
    /// The part of a text that Postgres can store, cut to `most` characters as Postgres counts them.
    static func text(_ text: String, most: Int) -> String {
        let clean = text.unicodeScalars.contains("\0") ? text.replacing("\0", with: "␀") : text
        guard clean.utf8.count > most, clean.unicodeScalars.count > most else { return clean }
        return String(String.UnicodeScalarView(clean.unicodeScalars.prefix(most - 1))) + "…"
    }
}
