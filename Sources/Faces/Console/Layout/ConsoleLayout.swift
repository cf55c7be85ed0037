import Calendars
import FoundationEssentials
import Listeners
import PageKit
import Templates

/// Makes HTML of pages.
struct ConsoleLayout: Sendable {
    /// Of the console that answers the request.
    static var base: String { ConsolePlace.current.base }

    let version: String
    private let navigation: Navigation
    private let isStart: Bool
    /// Which sites may show the console in a frame.
    let frameAncestors: String
    private let page: Template
    private let partials: Partials

    /// - Parameter databases: of the start page of several.
    init(
        version: String, frameAncestors: String, added: [AddedPage] = [], databases: [String]? = nil
    ) throws(TemplateError) {
        self.version = version
        isStart = databases != nil
        navigation = Navigation(
            added: added.map { .init(path: $0.page.path, label: $0.page.label) },
            databases: databases.map { $0.map { .init(path: "/\($0)", label: $0) } })
        self.frameAncestors = frameAncestors
        var limits = Limits()
        limits.output = 8 << 20
        limits.time = .seconds(5)
        page = try Template(PackageResources.layout_html, mode: .plain, limits: limits)
        partials = Partials([
            "part": String(decoding: PackageResources.part_html, as: UTF8.self),
            "verdict": String(decoding: PackageResources.verdict_html, as: UTF8.self),
            "cell": String(decoding: PackageResources.cell_html, as: UTF8.self),
            "field": String(decoding: PackageResources.field_html, as: UTF8.self),
        ])
    }

    func response(
        _ content: ConsolePage, for visitor: Visitor?, token: String, at path: String,
        _ facts: NavigationFacts.Facts = NavigationFacts.Facts()
    ) -> Response {
        let choices = ReaderChoices.current
        func chosen(_ options: [(value: String, label: String)], _ current: String) -> TemplateValue {
            .list(
                options.map {
                    .object([
                        "value": .string($0.value), "label": .string($0.label),
                        "chosen": .string($0.value == current ? "true" : "false"),
                    ])
                })
        }
        let data: TemplateValue = .object([
            "title": .string(content.title), "base": .string(Self.base), "home": .string(ConsolePlace.home),
            "database": ConsolePlace.current.database.map { .string($0) } ?? .null,
            "searches": .bool(visitor != nil && !isStart), "version": .string(version),
            "nav": visitor == nil ? .list([]) : navigation.value(current: content.entry, facts),
            "known": .bool(visitor != nil), "here": .string(path),
            "theme": choices.theme == .auto ? .null : .string(choices.theme.rawValue),
            "scheme": .string(choices.theme == .auto ? "light dark" : choices.theme.rawValue),
            "themes": chosen([("auto", "System"), ("light", "Light"), ("dark", "Dark")], choices.theme.rawValue),
            "clocks": chosen([("utc", "UTC"), ("local", "Local")], choices.isLocal ? "local" : "utc"),
            "zone": .string(choices.zoneName), "times": .string(choices.zone.name),
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
