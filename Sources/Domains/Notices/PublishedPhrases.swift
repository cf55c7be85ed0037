/// Words that an operator has published. They are read while a notice is sent, so the answer comes from memory.
package struct PublishedPhrases: Sendable {
    package struct Phrase: Sendable, Equatable {
        package var title: String
        package var body: String

        package init(title: String, body: String) {
            self.title = title
            self.body = body
        }
    }

    /// Called before the first notice is sent. It may take a moment at most, because notices go out without it, too.
    package var prepare: @Sendable () async -> Void
    /// Follows changes, until cancelled.
    package var run: @Sendable () async -> Void
    /// The published words for a sending; nil: the given words stay, also when the published ones cannot be rendered.
    package var of: @Sendable (Sending, NoticeWords) -> Phrase?

    package init(
        prepare: @escaping @Sendable () async -> Void = {}, run: @escaping @Sendable () async -> Void = {},
        of: @escaping @Sendable (Sending, NoticeWords) -> Phrase? = { _, _ in nil }
    ) {
        self.prepare = prepare
        self.run = run
        self.of = of
    }
}
