import Calendars
import FoundationEssentials
import Listeners

/// How a reader wants the pages: a cookie of theirs says it, and no script is needed.
struct ReaderChoices: Sendable, Equatable {
    enum Theme: String, CaseIterable, Sendable {
        /// As the system is.
        case auto
        case light
        case dark
    }

    var theme = Theme.auto
    /// Of local times; empty: none was given.
    var zoneName = ""
    /// Times are shown in that zone, else in UTC.
    var isLocal = false

    /// Those of the request that is being answered.
    @TaskLocal static var current = ReaderChoices()

    static let cookie = "millrace_look"
    private static let lasts = 365 * 86_400

    init() {}

    init(_ request: Request) {
        guard let text = SessionCookie.value(of: Self.cookie, in: request.headers["Cookie"]) else { return }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        guard parts.count == 3 else { return }
        theme = Theme(rawValue: parts[0]) ?? .auto
        zoneName = Self.known(parts[2]) ?? ""
        isLocal = parts[1] == "local" && !zoneName.isEmpty
    }

    /// With what a form says; what it does not name stays.
    func changed(by form: [String: String]) -> ReaderChoices {
        var choices = self
        if let theme = form["theme"].flatMap(Theme.init) { choices.theme = theme }
        if let clock = form["clock"] {
            if let zone = form["zone"].flatMap(Self.known) { choices.zoneName = zone }
            choices.isLocal = clock == "local" && !choices.zoneName.isEmpty
        }
        return choices
    }

    /// A name of the system's zones; nil for any other.
    private static func known(_ name: String) -> String? {
        let isPlain = name.utf8.allSatisfy {
            Character(Unicode.Scalar($0)).isLetter || Character(Unicode.Scalar($0)).isNumber || "/_+-".utf8.contains($0)
        }
        guard !name.isEmpty, name.utf8.count <= 64, isPlain else { return nil }
        return (try? ZoneFiles.system.zone(name)) == nil ? nil : name
    }

    var zone: Zone { isLocal ? (try? ZoneFiles.system.zone(zoneName)) ?? .utc : .utc }

    func header(isSecure: Bool) -> Header {
        Header(
            "Set-Cookie",
            "\(Self.cookie)=\(theme.rawValue):\(isLocal ? "local" : "utc"):\(zoneName); Path=\(ConsolePlace.home); "
                + "Max-Age=\(Self.lasts); HttpOnly; SameSite=Strict" + (isSecure ? "; Secure" : ""))
    }
}

extension ConsoleService {
    /// Takes over what the reader chose, and shows the page again. It concerns nobody else, so nobody has to be signed in.
    func choose(_ request: Request) async -> Response {
        if let refusal = options.access.refusalFromElsewhere(request) { return errorPage(refusal, for: nil) }
        do {
            let form = try await Self.form(of: request)
            let choices = ReaderChoices.current.changed(by: form)
            var response = Self.redirect(to: Self.ownPath(form["back"]))
            let isSecure = request.headers["X-Forwarded-Proto"]?.lowercased() == "https"
            response.headers.append(choices.header(isSecure: isSecure))
            return response
        } catch {
            return errorPage(refusal(of: error), for: nil)
        }
    }
}
