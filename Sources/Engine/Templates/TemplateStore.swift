package import Postgres
import Synchronization
import Threads

/// Mail templates by name and locale: what is published in the database, else what is built in. Compiled ones are kept.
package struct TemplateStore: Sendable {
    private struct Key: Hashable {
        var name: String
        var locale: String
    }
    private struct Entry {
        var template: MailTemplate
        var checked: ContinuousClock.Instant
    }
    private struct State {
        var entries: [Key: Entry] = [:]
        /// Moves with every notification: what was read before it is not kept.
        var generation = 0
        var hears = false
    }
    private final class Cache: Sendable {
        let state = Mutex(State())
        let changed = Signal()

        func forget(hears: Bool) {
            defer { changed.fire() }
            state.withLock { state in
                state.entries = [:]
                state.generation += 1
                state.hears = hears
            }
        }
    }

    private let pool: Pool
    private let hearing: NotificationHub
    private let defaultLocale: String
    private let cache = Cache()
    private let read: Reading

    /// One read for all who ask for the same key at the same time.
    package typealias Reading =
        @Sendable (String, @escaping @Sendable () async throws -> MailSource?) async throws -> MailSource?

    /// As many as a fleet of apps may have; beyond, everything is forgotten once.
    private static let mostEntries = 1_000

    /// - Parameter hearing: what the process hears by; none: a connection of its own, when it runs.
    package init(
        pool: Pool, hearing: NotificationHub? = nil, defaultLocale: String = "en",
        read: @escaping Reading = { _, load in try await load() }
    ) {
        self.read = read
        self.pool = pool
        self.hearing = hearing ?? NotificationHub(pool.options)
        self.defaultLocale = defaultLocale
        // What changed before it begins is forgotten as well.
        self.hearing.heed(["millrace_templates"]) { [cache] news in cache.forget(hears: news != .ended) }
    }

    /// The live version for a locale, or the nearest there is: pt-BR, pt, the default, en.
    package func template(_ name: String, locale: String? = nil) async throws -> MailTemplate {
        let key = Key(name: name, locale: locale ?? defaultLocale)
        let (known, generation, hears) = cache.state.withLock { ($0.entries[key], $0.generation, $0.hears) }
        // Without notifications a change is seen within two seconds; with them, one that was lost within a minute.
        if let known, ContinuousClock.now - known.checked < (hears ? .seconds(60) : .seconds(2)) {
            return known.template
        }
        let asked = ContinuousClock.now
        let chain = LocaleChain.of(key.locale, fallback: defaultLocale)
        // A read that began before the last change answers nobody who asks after it.
        let source = try await read("template:\(generation):\(key.locale):\(name)") { [pool] in
            try await pool.withConnection { connection in
                // Nobody else may have the compiler at hand.
                try await Self.checkUnchecked(on: connection)
                return try await Self.live(name, locales: chain, on: connection)
            }
        }
        guard let source else {
            throw TemplateError(
                .notFound, "no version of that name can be used",
                hint: "millrace templates list shows what there is, and why a version was refused")
        }
        let template: MailTemplate
        if let known, known.template.source == source {
            template = known.template
        } else {
            template = try MailTemplate(source)
        }
        cache.state.withLock { state in
            guard state.generation == generation else { return }
            if state.entries.count >= Self.mostEntries { state.entries = [:] }
            state.entries[key] = Entry(template: template, checked: asked)
        }
        return template
    }

    package func render(_ name: String, locale: String? = nil, data: TemplateValue) async throws -> RenderedMail {
        try await template(name, locale: locale).render(data)
    }

    /// Hears of changes until cancelled, where notifications come through, and compiles what was published.
    package func run() async {
        async let _: Void = hearing.run()
        while !Task.isCancelled {
            do {
                try await pool.withConnection { connection in try await Self.checkUnchecked(on: connection) }
            } catch {
                // A caller that renders one of them meets the same error and reports it; here the next turn tries again.
            }
            await cache.changed.wait(for: .seconds(30))
        }
    }
}
