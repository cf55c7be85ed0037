package import Postgres
import Synchronization
package import Telemetry
import Templates

/// Templates named `notice.<kind>`, all of them in memory: an alarm must not wait for a table that it can do without.
package final class NoticePhrases: Sendable {
    private struct Key: Hashable {
        var name: String
        var locale: String
    }

    private struct State {
        var templates: [Key: MailTemplate] = [:]
        /// The complaints that were logged, once each.
        var complaints: Set<String> = []
    }

    package static let prefix = "notice."

    private let pool: Pool
    private let defaultLocale: String
    private let log: Log
    private let state = Mutex(State())

    package init(pool: Pool, defaultLocale: String, log: Log) {
        self.pool = pool
        self.defaultLocale = defaultLocale
        self.log = log
    }

    package var phrases: PublishedPhrases {
        PublishedPhrases(
            prepare: { await self.prepare() }, run: { await self.run() },
            of: { sending, words in self.phrase(for: sending, instead: words) })
    }

    private func prepare() async {
        await withTaskGroup(of: Void.self) { group in
            group.addTask { try? await self.read() }  // without it the built-in words are there
            group.addTask { try? await Task.sleep(for: .seconds(2)) }  // cancelled: the other has ended
            await group.next()
            group.cancelAll()
        }
    }

    private func run() async {
        while !Task.isCancelled {
            try? await Task.sleep(for: .seconds(5))  // cancelled: the loop ends
            do {
                try await read()
            } catch {
                log.debug("cannot read the words of notices now", [("error", "\(error)")])
            }
        }
    }

    /// Those that have changed; a template that does not compile leaves the one before in its place.
    package func read() async throws {
        let known = state.withLock { $0.templates }
        let found = try await pool.withConnection { connection throws(PostgresError) -> [(Key, MailSource?)] in
            var found: [(Key, MailSource?)] = []
            try await TemplateStore.checkUnchecked(on: connection)
            for row in try await TemplateStore.list(on: connection) where row.live && row.name.hasPrefix(Self.prefix) {
                let key = Key(name: row.name, locale: row.locale)
                guard known[key]?.version != row.version else {
                    found.append((key, nil))
                    continue
                }
                found.append(
                    (key, try await TemplateStore.source(row.name, locales: [row.locale], on: connection)))
            }
            return found
        }
        var templates: [Key: MailTemplate] = [:]
        for (key, source) in found {
            templates[key] = known[key]
            guard let source else { continue }
            do {
                templates[key] = try MailTemplate(source)
            } catch {
                complain("\(key.name) \(key.locale) \(source.version)", error)
            }
        }
        state.withLock { $0.templates = templates }
    }

    package func phrase(for sending: Sending, instead words: NoticeWords) -> PublishedPhrases.Phrase? {
        let name = Self.prefix + sending.kind
        let chain = LocaleChain.of(sending.locale ?? defaultLocale, fallback: defaultLocale)
        let template = state.withLock { state in
            chain.compactMap { state.templates[Key(name: name, locale: $0)] }.first
        }
        guard let template else { return nil }
        do {
            let made = try template.render(try Self.data(sending, words))
            guard made.text.contains(where: { !$0.isWhitespace }) else {
                throw TemplateError(.data, "it has rendered to nothing")
            }
            return PublishedPhrases.Phrase(
                title: made.subject.isEmpty ? words.title : made.subject, body: Self.trimmed(made.text))
        } catch {
            complain("\(name) \(template.locale) \(template.version)", error)
            return nil
        }
    }

    /// The notice's data, plus the words without a template for what the data lack.
    private static func data(_ sending: Sending, _ words: NoticeWords) throws(TemplateError) -> TemplateValue {
        var members: [String: TemplateValue] = [
            "title": .string(words.title), "body": .string(words.body), "kind": .string(sending.kind),
            "channel": .string(sending.channel), "person": .string(sending.person),
        ]
        if case .object(let given) = try TemplateValue(json: sending.data.json) {
            members.merge(given) { _, given in given }
        }
        if let link = words.link { members["link"] = .string(link) }
        return .object(members)
    }

    private static func trimmed(_ text: String) -> String {
        var text = text[...]
        while let last = text.last, last.isWhitespace { text.removeLast() }
        return String(text.drop { $0.isWhitespace })
    }

    private func complain(_ what: String, _ error: any Error) {
        let isNew = state.withLock { state in
            if state.complaints.count > 1000 { state.complaints = [] }
            return state.complaints.insert(what).inserted
        }
        guard isNew else { return }
        log.warning(
            "cannot use a notice's template; sending the built-in words",
            [("template", what), ("reason", "\(error)")])
    }
}
