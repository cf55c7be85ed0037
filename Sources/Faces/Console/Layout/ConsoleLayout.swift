import FoundationEssentials
import Listeners
import PageKit
import Templates

/// Makes HTML of pages.
struct ConsoleLayout: Sendable {
    static let base = "/console"

    /// The navigation: address, label.
    static let entries: [(path: String, label: String)] = [
        ("", "Overview"), ("/queues", "Queues"), ("/jobs", "Jobs"), ("/failures", "Failures"),
        ("/approvals", "Approvals"), ("/schedules", "Schedules"), ("/workers", "Workers"), ("/versions", "Versions"),
        ("/limits", "Limits"),
        ("/providers", "Providers"), ("/mail", "Mail"), ("/templates", "Templates"), ("/documents", "Documents"),
        ("/checkins", "Check-ins"), ("/quests", "Quests"), ("/notices", "Notices"), ("/webhooks", "Webhooks"),
        ("/subscriptions", "Subscriptions"),
        ("/operations", "Operations"), ("/audit", "Audit"), ("/past", "The past"), ("/storage", "Storage"),
    ]

    let version: String
    /// Behind those of the console itself.
    private let added: [(path: String, label: String)]
    /// Which sites may show the console in a frame.
    let frameAncestors: String
    private let page: Template
    private let partials: Partials

    init(version: String, frameAncestors: String, added: [AddedPage] = []) throws(TemplateError) {
        self.version = version
        self.added = added.map { ($0.page.path, $0.page.label) }
        self.frameAncestors = frameAncestors
        var limits = Limits()
        limits.output = 8 << 20
        limits.time = .seconds(5)
        page = try Template(PackageResources.layout_html, mode: .plain, limits: limits)
        partials = Partials([
            "part": String(decoding: PackageResources.part_html, as: UTF8.self),
            "cell": String(decoding: PackageResources.cell_html, as: UTF8.self),
        ])
    }

    func response(_ content: ConsolePage, for visitor: Visitor?, token: String, at path: String) -> Response {
        let nav = (Self.entries + added).map { entry -> TemplateValue in
            .object([
                "href": .string(Self.base + entry.path), "label": .string(entry.label),
                "current": .bool(entry.label == content.entry),
            ])
        }
        let data: TemplateValue = .object([
            "title": .string(content.title), "base": .string(Self.base), "version": .string(version),
            "nav": visitor == nil ? .list([]) : .list(nav), "known": .bool(visitor != nil),
            "visitor": visitor.map { .string($0.name) } ?? .null,
            "role": visitor.map { .string($0.role.rawValue) } ?? .null,
            "session": .bool(visitor?.session != nil), "token": .string(token),
            "live": content.live.map { .string($0) } ?? .null,
            "parts": .list(content.parts.map { $0.value(token: token, back: path) }),
        ])
        do {
            return html(try page.render(data, partials: partials), status: content.status)
        } catch {
            return ErrorAnswer(.internal, "the page cannot be drawn: \(error)").response
        }
    }

    func html(_ bytes: [UInt8], status: Int = 200) -> Response {
        Response(
            status: status, headers: [Header("Content-Type", "text/html; charset=utf-8")] + headers,
            body: .bytes(bytes))
    }

    /// No script and no style but ours, nothing from elsewhere, forms only to us.
    var headers: [Header] {
        [
            Header(
                "Content-Security-Policy",
                "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
                    + "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors \(frameAncestors)"),
            // Without it a browser hides the origin of our own forms.
            Header("Referrer-Policy", "same-origin"),
        ]
    }
}
