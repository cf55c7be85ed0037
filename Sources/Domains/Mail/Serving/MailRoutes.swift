import Encodings
import FoundationEssentials
import JSON
package import Listeners
package import PageKit
package import Postgres
import SettingsKit
package import Signatures
package import Telemetry

/// The HTTP routes for providers and recipients of mail.
package struct MailRoutes: Sendable {
    /// The id of a webhook that is signed as it should be; nil for any other.
    package typealias Check = @Sendable (_ body: [UInt8], _ headers: [Header]) -> String?

    package let pool: Pool
    package let log: Log
    package var links: Links?
    /// Whose messages they are, as the page says.
    package var host = PageHost()
    /// nil: its secret is not configured, and there is no such route.
    package var resend: Check?
    package var supabase: Check?

    package init(pool: Pool, log: Log, links: Links?, resend: Check?, supabase: Check?) {
        self.pool = pool
        self.log = log
        self.links = links
        self.resend = resend
        self.supabase = supabase
    }

    package var all: [Route] {
        var routes: [Route] = []
        if let links {
            routes += [
                Route(.get, "/v1/unsubscribe/{token}", access: .verified) { request in page(request, links) },
                Route(.post, "/v1/unsubscribe/{token}", access: .verified) { request in
                    try await unsubscribe(request, links)
                },
            ]
        }
        if let resend {
            routes.append(
                Route(.post, "/v1/webhooks/resend", access: .verified, limit: 262_144) { request in
                    try await hear(request, resend)
                })
        }
        if let supabase {
            routes.append(
                Route(.post, "/v1/webhooks/supabase-email", access: .verified, limit: 262_144) { request in
                    try await send(request, supabase)
                })
        }
        return routes
    }

    /// Looking changes nothing: programs that fetch links on the way to a mailbox must not unsubscribe anybody.
    private func page(_ request: Listeners.Request, _ links: Links) -> Listeners.Response {
        if request.parameter("token") == LinkPage.stylesheet.name { return LinkPage.stylesheet.response }
        guard links.opened(request.parameter("token")) != nil else { return LinkPage.unknownLink(frame(request)) }
        return UnsubscribePage.question(frame(request))
    }

    /// Mail programs post it by themselves, with a body of their own, when their reader asks them to.
    private func unsubscribe(_ request: Listeners.Request, _ links: Links) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let hash = links.opened(request.parameter("token")) else { return LinkPage.unknownLink(frame(request)) }
        if body.elementsEqual("answer=again".utf8) {
            let isNew = try await pool.withConnection { connection throws(PostgresError) in
                try await MailAdmin.subscribeAgain(hash, on: connection)
            }
            log.debug("subscribed again by a link", [("new", "\(isNew)")])
            return UnsubscribePage.subscribed(frame(request))
        }
        let isNew = try await pool.withConnection { connection throws(PostgresError) in
            try await MailAdmin.unsubscribe(hash, on: connection)
        }
        log.debug("unsubscribed by a link", [("new", "\(isNew)")])
        return UnsubscribePage.unsubscribed(frame(request))
    }

    private func frame(_ request: Listeners.Request) -> PageFrame {
        let words = PageWords(
            .null, chosen: request.query("language"), accepting: request.headers["Accept-Language"])
        return PageFrame(words, host: host, path: request.path)
    }

    private struct Told: Decodable {
        var type: String
        var created_at: String?
    }

    private func hear(_ request: Listeners.Request, _ check: Check) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let id = check(body, request.headers) else { return .text("the signature is wrong\n", status: 401) }
        guard let told = try? JSONDecoder().decode(Told.self, from: Data(body)),
            case .object? = (try? JSONValue.read(body))?["data"], let data = try JSONValue.read(body)["data"]
        else { return .text("this is not an event\n", status: 400) }
        guard told.type.hasPrefix("email.") else { return Response(status: 204) }
        let at = told.created_at.flatMap { try? InstantText.read($0) }
        let isNew = try await pool.withConnection { connection throws(PostgresError) in
            try await MailAdmin.event(
                provider: "resend", id: id, type: told.type, at: at, recipient: nil, data: Array(data.compact.utf8),
                on: connection)
        }
        return .json("{\"new\":\(isNew)}\n")
    }

    /// Supabase asks us to send its mail. The link contains Supabase's token, so this mail is never sent through Supabase.
    private func send(_ request: Listeners.Request, _ check: Check) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let id = check(body, request.headers) else { return .text("the signature is wrong\n", status: 401) }
        guard let hook = SupabaseHook(body) else { return Self.hookError(400, "this is not a request to send mail") }
        guard let messages = hook.messages else { return Self.hookError(400, "this kind of mail is not known here") }
        do {
            try await hand(in: messages, id: id, user: hook.user.id)
        } catch let error as PostgresError where error.sqlState == "23505" {
            return Self.hookError(409, "another mail was asked for under this id")
        }
        return .json("{}")
    }

    private static func hookError(_ status: Int, _ message: String) -> Listeners.Response {
        .json("{\"error\":{\"http_code\":\(status),\"message\":\"\(message)\"}}", status: status)
    }

    /// All of a request, or nothing. A user whose profile is here reads the mail in its own language, if this login may name persons.
    private func hand(in messages: [SupabaseHook.Message], id: String, user: String?) async throws {
        let person = user.flatMap { UUID(uuidString: $0) == nil ? nil : $0 }
        do {
            try await put(messages, id: id, user: user, person: person)
        } catch let error as PostgresError where error.sqlState == "42501" && person != nil {
            try await put(messages, id: id, user: user, person: nil)
        }
    }

    private func put(
        _ messages: [SupabaseHook.Message], id: String, user: String?, person: String?
    ) async throws {
        try await pool.withConnection { connection throws(PostgresError) in
            try await connection.transaction { connection throws(PostgresError) in
                for (index, message) in messages.enumerated() {
                    // Another request under this id meets the first message of this one.
                    let own = JSONValue.string(Self.uuid(of: index == 0 ? id : "\(id) \(index)"))
                    let data = JSONValue.object(message.data.map { .init(key: $0.key, value: .string($0.value)) })
                    let options: JSONValue = ["token_from": "supabase", "data": data, "id": own]
                    switch message.kind {
                    case .recovery(let token):
                        _ = try await connection.query(
                            "select millrace.mail_password_reset($1, $2, $3, $4)",
                            [
                                .text(message.recipient), .text(token), .text(user),
                                .json(Array(options.compact.utf8)),
                            ]
                        ) { _ throws(PostgresError) in true }
                    case .verification(let token):
                        _ = try await connection.query(
                            "select millrace.mail_account_verification($1, $2, $3)",
                            [.text(message.recipient), .text(token), .json(Array(options.compact.utf8))]
                        ) { _ throws(PostgresError) in true }
                    case .template(let name):
                        let letter: JSONValue = [
                            "recipients": .array([.string(message.recipient)]), "template": .string(name), "data": data,
                            "priority": "high", "purpose": "security", "id": own, "person": JSONValue(person),
                        ]
                        _ = try await MailAdmin.send(Array(letter.compact.utf8), on: connection)
                    }
                }
            }
        }
    }

    /// The same for the same request, so that a repeated one makes no second message.
    private static func uuid(of id: String) -> String {
        Hexadecimal.uuid(HMAC.sha256(Array(id.utf8), key: Array("supabase-email".utf8)).prefix(16))
    }
}
