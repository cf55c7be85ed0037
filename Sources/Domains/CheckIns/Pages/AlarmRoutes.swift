import JSON
package import Listeners
package import PageKit
package import Postgres
package import Signatures
package import Telemetry

/// What a contact sees and answers by a signed link. A GET changes nothing: programs that fetch links on the way to a mailbox must not
/// answer an alarm.
package struct AlarmRoutes: Sendable {
    package let pool: Pool
    package let log: Log
    package let links: Links
    /// Who asks, as the pages say.
    package let host: PageHost

    package init(pool: Pool, log: Log, links: Links, host: PageHost = PageHost()) {
        self.pool = pool
        self.log = log
        self.links = links
        self.host = host
    }

    package var all: [Route] {
        [
            Route(.get, "/v1/alarms/{token}", access: .verified) { request in try await show(request) },
            Route(.post, "/v1/alarms/{token}", access: .verified, limit: 4096) { request in try await act(request) },
        ]
    }

    private func show(_ request: Listeners.Request) async throws -> Listeners.Response {
        if request.parameter("token") == LinkPage.stylesheet.name { return LinkPage.stylesheet.response }
        guard let link = links.openedAlarm(request.parameter("token")) else { return unknownLink(request) }
        return try await page(link, request)
    }

    private func act(_ request: Listeners.Request) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let link = links.openedAlarm(request.parameter("token")) else { return unknownLink(request) }
        let answer = Self.answer(in: body)
        do {
            if let alarm = link.alarm {
                guard let facts = try await facts(link, request), let contact = facts["contact"]?.text else {
                    return unknownLink(request)
                }
                if answer == AlarmPage.asksWhetherSafe {
                    return AlarmPage.safetyQuestion(frame(facts, request), back: address(request))
                }
                guard let answer, AlarmPage.isAnswer(answer) else {
                    return LinkPage.unknownAnswer(frame(facts, request), back: address(request))
                }
                let state = try await pool.withConnection { connection throws(PostgresError) in
                    try await CheckInAdmin.respond(alarm, contact: contact, answer: answer, on: connection)
                }
                log.info("an alarm was answered by a link", [("alarm.id", alarm), ("alarm.state", state ?? "?")])
            } else {
                guard ["yes", "no", "never", "again", AlarmPage.asksWhetherNever].contains(answer) else {
                    guard let facts = try await facts(link, request) else { return unknownLink(request) }
                    return LinkPage.unknownAnswer(frame(facts, request), back: address(request))
                }
                if answer == AlarmPage.asksWhetherNever {
                    guard let facts = try await facts(link, request) else { return unknownLink(request) }
                    return AlarmPage.neverQuestion(frame(facts, request), back: address(request))
                }
                try await pool.withConnection { connection throws(PostgresError) in
                    switch answer {
                    case "never": try await CheckInAdmin.never(link.contact, on: connection)
                    case "again": try await CheckInAdmin.mayAskAgain(link.contact, on: connection)
                    default: try await CheckInAdmin.consent(link.contact, agrees: answer == "yes", on: connection)
                    }
                }
            }
        } catch let error as PostgresError where error.sqlState == "P0002" {
            return unknownLink(request)
        } catch let error as PostgresError where error.sqlState == "55000" && link.alarm == nil {
            // Yes, after never again: the page says how it stands.
        }
        return try await page(link, request)
    }

    /// Nobody's profile says which language this reader has.
    private func unknownLink(_ request: Listeners.Request) -> Listeners.Response {
        LinkPage.unknownLink(PageFrame(PageWords(accepting: request.headers["Accept-Language"]), host: host))
    }

    /// What surrounds a page: in the language that the reader has chosen there.
    private func frame(_ facts: JSONValue, _ request: Listeners.Request) -> PageFrame {
        let words = PageWords(
            facts, chosen: request.query("language"), accepting: request.headers["Accept-Language"])
        return PageFrame(words, host: host, path: request.path)
    }

    /// Of the page itself, in the language that was chosen.
    private func address(_ request: Listeners.Request) -> String {
        request.path + (chosen(request).map { "?language=\($0)" } ?? "")
    }

    private func chosen(_ request: Listeners.Request) -> String? {
        request.query("language").flatMap { PageWords.languages.contains($0) ? $0 : nil }
    }

    private func facts(
        _ link: (alarm: String?, contact: String), _ request: Listeners.Request
    ) async throws -> JSONValue? {
        let language = chosen(request)
        let bytes = try await pool.withConnection { connection throws(PostgresError) in
            try await CheckInAdmin.page(
                alarm: link.alarm, contact: link.contact, language: language, on: connection)
        }
        return try bytes.map { try JSONValue.read($0) }
    }

    private func page(
        _ link: (alarm: String?, contact: String), _ request: Listeners.Request
    ) async throws -> Listeners.Response {
        guard let facts = try await facts(link, request) else { return unknownLink(request) }
        let around = frame(facts, request)
        return link.alarm == nil ? AlarmPage.consent(facts, around) : AlarmPage.alarm(facts, around)
    }

    /// The answer in a form's body. Only our own names come back, so nothing needs decoding.
    package static func answer(in body: [UInt8]) -> String? {
        for pair in String(decoding: body, as: UTF8.self).split(separator: "&") where pair.hasPrefix("answer=") {
            return String(pair.dropFirst(7))
        }
        return nil
    }
}
