/// Words that an operator has published, from wherever those are kept. Asked while a notice is sent, so that it answers from memory.
package struct PublishedPhrases: Sendable {
    package struct Phrase: Sendable, Equatable {
        package var title: String
        package var body: String

        package init(title: String, body: String) {
            self.title = title
            self.body = body
        }
    }

    /// Before the first notice is sent; for a moment at most, for notices go out without it, too.
    package var prepare: @Sendable () async -> Void
    /// Keeps up with changes, until cancelled.
    package var run: @Sendable () async -> Void
    /// For a sending with the words that it would have, or nil: those stand. It is nil, too, where what was published cannot be rendered.
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
