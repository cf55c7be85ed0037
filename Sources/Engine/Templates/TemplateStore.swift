package import Postgres
import Synchronization
import Threads

/// Mail templates by name and locale: the published one in the database, else the built-in one. Compiled templates are cached.
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
        /// Grows with every notification: what was read before it is not cached.
        var generation = 0
        var hears = false
    }
    private final class Cache: Sendable {
        let state = Mutex(State())
        let changed = Wakeup()

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

    /// One read for all callers that want the same key at the same time.
    package typealias Reading =
        @Sendable (String, @escaping @Sendable () async throws -> MailSource?) async throws -> MailSource?

    /// As many as a fleet of apps may have. At more, the whole cache is cleared once.
    private static let mostEntries = 1_000

    /// - Parameter hearing: the process's LISTEN connection; nil: the store opens its own when it runs.
    package init(
        pool: Pool, hearing: NotificationHub? = nil, defaultLocale: String = "en",
        read: @escaping Reading = { _, load in try await load() }
    ) {
        self.read = read
        self.pool = pool
        self.hearing = hearing ?? NotificationHub(pool.options)
        self.defaultLocale = defaultLocale
        // The start clears the cache, too, because changes before it were not heard.
        self.hearing.heed(["millrace_templates"]) { [cache] news in cache.forget(hears: news != .ended) }
    }

    /// The live version for a locale, or the nearest there is: pt-BR, pt, the default, en.
    package func template(_ name: String, locale: String? = nil) async throws -> MailTemplate {
        let key = Key(name: name, locale: locale ?? defaultLocale)
        let (known, generation, hears) = cache.state.withLock { ($0.entries[key], $0.generation, $0.hears) }
        // Without notifications a change is seen within two seconds. With them, a change whose notification was lost is seen within a
        // minute.
        if let known, ContinuousClock.now - known.checked < (hears ? .seconds(60) : .seconds(2)) {
            return known.template
        }
        let asked = ContinuousClock.now
        let chain = LocaleChain.of(key.locale, fallback: defaultLocale)
        // A read that began before the last change must not answer a caller that comes after it.
        let source = try await read("template:\(generation):\(key.locale):\(name)") { [pool] in
            try await pool.withConnection { connection in
                // Perhaps no other process with the compiler is running.
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

    /// Hears of changes until cancelled, as long as notifications arrive, and compiles newly published versions.
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
