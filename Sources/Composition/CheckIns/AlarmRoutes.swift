import CheckIns
package import Listeners
package import Postgres
package import Signatures
package import Telemetry

/// What a contact sees and says by a signed link. Looking changes nothing: programs that fetch links on the way to a mailbox must not
/// answer an alarm.
package struct AlarmRoutes: Sendable {
    package let pool: Pool
    package let log: Log
    package let links: Links

    package init(pool: Pool, log: Log, links: Links) {
        self.pool = pool
        self.log = log
        self.links = links
    }

    package var all: [Route] {
        [
            Route(.get, "/v1/alarms/{token}", access: .verified) { request in try await show(request) },
            Route(.post, "/v1/alarms/{token}", access: .verified, limit: 4096) { request in try await act(request) },
        ]
    }

    private static let answers: [(name: String, label: String)] = [
        ("on_my_way", "I am on my way"), ("acknowledged", "I look after it"), ("cannot", "I cannot"),
        ("safe", "They are safe"),
    ]

    private func show(_ request: Listeners.Request) async throws -> Listeners.Response {
        guard let link = links.openedAlarm(request.parameter("token")) else { return Self.unknownLink }
        return try await page(link)
    }

    private func act(_ request: Listeners.Request) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let link = links.openedAlarm(request.parameter("token")) else { return Self.unknownLink }
        let answer = Self.answer(in: body)
        do {
            if let alarm = link.alarm {
                guard Self.answers.contains(where: { $0.name == answer }), let answer else { return Self.unknownAnswer }
                guard let contact = try await facts(link)?["contact"]?.text else { return Self.unknownLink }
                let state = try await pool.withConnection { connection throws(PostgresError) in
                    try await CheckInOffice.respond(alarm, contact: contact, answer: answer, on: connection)
                }
                log.info("an alarm was answered by a link", [("alarm.id", alarm), ("alarm.state", state ?? "?")])
            } else {
                guard answer == "yes" || answer == "no" || answer == "never" else { return Self.unknownAnswer }
                try await pool.withConnection { connection throws(PostgresError) in
                    if answer == "never" {
                        try await CheckInOffice.never(link.contact, on: connection)
                    } else {
                        try await CheckInOffice.consent(link.contact, agrees: answer == "yes", on: connection)
                    }
                }
            }
        } catch let error as PostgresError where error.sqlState == "P0002" {
            return Self.unknownLink
        } catch let error as PostgresError where error.sqlState == "55000" && link.alarm == nil {
            // Yes, after never again: the page says how it stands.
        }
        return try await page(link)
    }

    private func facts(_ link: (alarm: String?, contact: String)) async throws -> JSONValue? {
        let bytes = try await pool.withConnection { connection throws(PostgresError) in
            try await CheckInOffice.page(alarm: link.alarm, contact: link.contact, on: connection)
        }
        return try bytes.map { try JSONValue.read($0) }
    }

    private func page(_ link: (alarm: String?, contact: String)) async throws -> Listeners.Response {
        guard let facts = try await facts(link) else { return Self.unknownLink }
        return link.alarm == nil ? Self.consentPage(facts) : Self.alarmPage(facts)
    }

    package static func consentPage(_ facts: JSONValue) -> Listeners.Response {
        let consent = facts["consent"]?.text
        if consent == "never" {
            return html(
                "Being a contact",
                "<h1>Never again</h1><p>Nobody can ask you here any more, and what you had agreed to has ended. If you change your mind, write to whoever runs this service.</p>"
            )
        }
        let never = (name: "never", label: "Never ask me again, whoever it is")
        if consent == "over" {
            return html(
                "Being a contact",
                "<h1>Being a contact</h1><p>This question is open no more: you are not named as a contact.</p>"
                    + form([never]))
        }
        let person = escaped(facts["person"]?.text ?? "")
        let said =
            switch consent {
            case "given": "<p>You have said yes. You can change your mind here at any time.</p>"
            case "declined": "<p>You have said no. You can change your mind here at any time.</p>"
            default: ""
            }
        return html(
            "Being a contact",
            "<h1>Being a contact of \(person)</h1><p>\(person) asks to name you as somebody to be told when they miss a check-in.</p>"
                + said + form([("yes", "Yes, tell me"), ("no", "No"), never]))
    }

    package static func alarmPage(_ facts: JSONValue) -> Listeners.Response {
        var body = "<h1>\(escaped(facts["title"]?.text ?? ""))</h1><p>\(escaped(facts["body"]?.text ?? ""))</p>"
        if case .array(let answers)? = facts["answers"], !answers.isEmpty {
            body += "<h2>Answers so far</h2><ul>"
            for one in answers {
                let label = Self.answers.first { $0.name == one["answer"]?.text }?.label ?? ""
                body +=
                    "<li>\(escaped(one["contact"]?.text ?? "")): \(label) (\(escaped(one["at"]?.text ?? "")))</li>"
            }
            body += "</ul>"
        }
        if facts["state"]?.text != "resolved" { body += "<h2>Your answer</h2>" + form(Self.answers) }
        return html(facts["test"] == .bool(true) ? "Test of an alarm" : "Alarm", body)
    }

    private static func form(_ answers: [(name: String, label: String)]) -> String {
        "<form method=\"post\">"
            + answers.map { "<p><button name=\"answer\" value=\"\($0.name)\">\($0.label)</button></p>" }.joined()
            + "</form>"
    }

    /// Of a form's body: only names that we gave come back, so that nothing needs decoding.
    package static func answer(in body: [UInt8]) -> String? {
        for pair in String(decoding: body, as: UTF8.self).split(separator: "&") where pair.hasPrefix("answer=") {
            return String(pair.dropFirst(7))
        }
        return nil
    }

    private static let unknownLink: Listeners.Response = html(
        "Unknown link", "<p>This link is not one of ours, or not any more.</p>", status: 404)
    private static let unknownAnswer: Listeners.Response = html(
        "Unknown answer", "<p>This is no answer that we know.</p>", status: 400)

    package static func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing(">", with: "&gt;")
            .replacing("\"", with: "&quot;").replacing("'", with: "&#39;")
    }

    private static func html(_ title: String, _ body: String, status: Int = 200) -> Listeners.Response {
        var response = Response.text(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">"
                + "<title>\(title)</title><body>\(body)</body></html>",
            status: status, type: "text/html; charset=utf-8")
        response.headers.append(
            Header("Content-Security-Policy", "default-src 'none'; form-action 'self'; frame-ancestors 'none'"))
        return response
    }
}
