import JSON
package import Listeners
import MillraceQueues
package import PageKit
package import Postgres
package import Signatures
package import Telemetry

/// What a person sees and answers by a signed link of their own. A GET changes nothing: programs that fetch links on the way to a mailbox
/// must not answer.
package struct ApprovalRoutes: Sendable {
    private let pool: Pool
    private let log: Log
    private let links: Links
    /// Who asks, as the pages say.
    private let host: PageHost

    package init(pool: Pool, log: Log, links: Links, host: PageHost = PageHost()) {
        self.pool = pool
        self.log = log
        self.links = links
        self.host = host
    }

    package var all: [Route] {
        [
            Route(.get, "/v1/approvals/{token}", access: .verified) { request in try await show(request) },
            Route(.post, "/v1/approvals/{token}", access: .verified, limit: 16_384) { request in
                try await act(request)
            },
        ]
    }

    private func show(_ request: Listeners.Request) async throws -> Listeners.Response {
        if request.parameter("token") == LinkPage.stylesheet.name { return LinkPage.stylesheet.response }
        guard let link = links.openedApproval(request.parameter("token")), let facts = try await facts(link) else {
            return unknownLink(request)
        }
        return ApprovalPage.question(facts, frame(facts, request))
    }

    private func act(_ request: Listeners.Request) async throws -> Listeners.Response {
        let body = try await request.body.collect()
        guard let link = links.openedApproval(request.parameter("token")), let before = try await facts(link) else {
            return unknownLink(request)
        }
        let frame = frame(before, request)
        guard let answer = Answer(body) else { return LinkPage.unknownAnswer(frame, back: request.path) }
        var isLate = false
        do {
            let isNew = try await pool.withConnection { connection throws(PostgresError) in
                try await Queue.answer(
                    link.approval, ref: link.ref, approved: answer.approved, comment: answer.comment, on: connection)
            }
            if isNew { log.info("a question was answered by a link", [("approval.id", link.approval)]) }
        } catch let error as PostgresError where error.sqlState == "P0002" {
            return unknownLink(request)
        } catch let error as PostgresError where error.sqlState == "22023" {
            return LinkPage.problem(
                frame.words.unknownAnswer, frame.words.commentTooLong, frame, back: request.path)
        } catch let error as PostgresError where error.sqlState == "55000" {
            isLate = true  // another answer came first, or none counts any more: the page says how it stands
        }
        guard let facts = try await facts(link) else { return unknownLink(request) }
        return ApprovalPage.question(facts, frame, isLate: isLate)
    }

    /// What a form of ours sends.
    private struct Answer {
        let approved: Bool
        let comment: String?

        init?(_ body: [UInt8]) {
            guard let text = String(validating: body, as: UTF8.self), let pairs = Escapes.query(text) else {
                return nil
            }
            switch pairs.first(where: { $0.name == "answer" })?.value {
            case "yes": approved = true
            case "no": approved = false
            default: return nil
            }
            let comment = pairs.first { $0.name == "comment" }?.value.replacing("\r\n", with: "\n") ?? ""
            self.comment = comment.allSatisfy(\.isWhitespace) ? nil : comment
        }
    }

    private func unknownLink(_ request: Listeners.Request) -> Listeners.Response {
        LinkPage.unknownLink(PageFrame(PageWords(accepting: request.headers["Accept-Language"]), host: host))
    }

    private func frame(_ facts: JSONValue, _ request: Listeners.Request) -> PageFrame {
        let words = PageWords(
            facts, chosen: request.query("language"), accepting: request.headers["Accept-Language"])
        return PageFrame(words, host: host, path: request.path)
    }

    private func facts(_ link: (approval: String, ref: String)) async throws -> JSONValue? {
        let bytes = try await pool.withConnection { connection throws(PostgresError) in
            try await Queue.approvalPage(link.approval, ref: link.ref, on: connection)
        }
        return try bytes.map { try JSONValue.read($0) }
    }
}
