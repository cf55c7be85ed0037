import PageKit
package import Signatures

/// The words that a person reads or hears.
package struct NoticeWords: Sendable, Equatable {
    package var title: String
    package var body: String
    /// A link to more, or to the place to answer.
    package var link: String?

    package init(title: String, body: String, link: String? = nil) {
        self.title = title
        self.body = body
        self.link = link
    }

    /// For channels without a title, where the link is part of the text.
    package var line: String { [title, text].filter { !$0.isEmpty }.joined(separator: "\n") }

    /// The body with the link below, unless the body contains it already.
    var text: String { textParted(by: "\n") }

    func textParted(by gap: String) -> String {
        [body, link.map { body.contains($0) ? "" : $0 } ?? ""].filter { !$0.isEmpty }.joined(separator: gap)
    }

    /// The words of a notice, by kind and locale. `title` and `body` in its data override the built-in words. A notice of an unknown kind
    /// uses its data's `text`. In alarms, consent requests and questions the link is the reader's own, to answer by.
    /// Words that an operator has published for a kind override all of these; the link is always included.
    package static func of(
        _ sending: Sending, app: String, defaultLocale: String, links: Links? = nil,
        phrases: PublishedPhrases = PublishedPhrases()
    ) -> NoticeWords {
        let language = NoticeLanguage(sending.locale ?? defaultLocale)
        let known = language.words(sending.kind, sending.data, person: sending.person)
        let title = sending.data["title"] ?? known?.title ?? app
        let body = sending.data["body"] ?? known?.body ?? sending.data["text"] ?? language.plain
        var words = NoticeWords(
            title: clean(title, 200), body: clean(body, 1500),
            link: link(sending.data["url"] ?? answerLink(sending, links)))
        if let own = phrases.of(sending, words) {
            (words.title, words.body) = (clean(own.title, 200), clean(own.body, 1500))
        }
        words.title = language.dated(words.title, sending.kind)
        words.body = language.dated(words.body, sending.kind)
        // A rehearsal must never look like a real alarm.
        if sending.data.isTrue("test") || sending.data.isTrue("drill"), !words.title.hasPrefix("TEST") {
            words.title = clean("\(language.test) \(words.title)", 200)
        }
        return words
    }

    /// Only for notices that the check-ins or questions to people make: a client's own notice never gets a signed link.
    private static func answerLink(_ sending: Sending, _ links: Links?) -> String? {
        guard let links, let ref = sending.data["ref"] else { return nil }
        if sending.kind.hasPrefix("alarm.") { return links.alarm(sending.data["alarm"], contact: ref) }
        guard sending.kind.hasPrefix("approval.") else { return nil }
        return sending.data["approval"].flatMap { links.approval($0, ref: ref) }
    }

    /// Without control characters except line ends, and cut to the allowed length.
    private static func clean(_ text: String, _ most: Int) -> String {
        var out = String.UnicodeScalarView()
        for scalar in text.unicodeScalars.prefix(most) {
            switch scalar.value {
            case 0x0a: out.append(scalar)
            case 0..<0x20, 0x7f..<0xa0, 0x2028, 0x2029, 0x202a...0x202e, 0x2066...0x2069: out.append(" ")
            default: out.append(scalar)
            }
        }
        return String(out)
    }

    private static func link(_ text: String?) -> String? {
        guard let text, text.hasPrefix("https://") || text.hasPrefix("http://"), text.utf8.count <= 2000,
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7f })
        else { return nil }
        return text
    }
}

/// The words of the built-in kinds. Languages that are not here get English.
enum NoticeLanguage {
    case english, german, arabic

    init(_ locale: String) {
        switch locale.lowercased().prefix(while: { $0 != "-" && $0 != "_" }) {
        case "de": self = .german
        case "ar": self = .arabic
        default: self = .english
        }
    }

    /// Days and times of our own kinds as the language writes them. In the data they stand as `2026-11-28 19:03 (Europe/Vienna)`, for templates and apps.
    func dated(_ text: String, _ kind: String) -> String {
        let words =
            switch self {
            case .english: PageWords(language: "en")
            case .german: PageWords(language: "de")
            case .arabic: PageWords(language: "ar")
            }
        if kind.hasPrefix("alarm.") || kind.hasPrefix("approval.") { return words.saying(timesOf: text) }
        guard kind.hasPrefix("subscription.") else { return text }
        return text.replacing(/\d{4}-\d\d-\d\d/) { words.day($0.0) ?? String($0.0) }
    }

    var plain: String {
        switch self {
        case .english: "There is something new for you."
        case .german: "Es gibt etwas Neues für dich."
        case .arabic: "هناك جديد لك."
        }
    }

    var test: String {
        switch self {
        case .english: "[TEST]"
        case .german: "[TEST, kein Notfall]"
        case .arabic: "[TEST، ليست حالة طوارئ]"
        }
    }

    func words(_ kind: String, _ data: Facts, person: String) -> NoticeWords? {
        let name = data["name"] ?? data["person"] ?? person
        let by = data["by"] ?? data["contact"]
        switch self {
        case .english:
            return Self.english(kind, data, name, by) ?? Self.englishQuestion(kind, data)
                ?? englishSubscription(kind, data)
        case .german:
            return Self.german(kind, data, name, by) ?? Self.germanQuestion(kind, data)
                ?? germanSubscription(kind, data)
        case .arabic: return arabicAlarm(kind, data, name, by) ?? arabicOther(kind, data)
        }
    }

    /// What a person reads whom a job asks.
    private static func englishQuestion(_ kind: String, _ data: Facts) -> NoticeWords? {
        let asks = data["asks"] ?? "Somebody"
        let question = data["step"].map { "The question: \($0)." } ?? "There is a question for you."
        let until = data["due"].map { " Please answer by \($0)." } ?? ""
        switch kind {
        case "approval.asked":
            return NoticeWords(title: "\(asks) asks for your answer", body: question + until)
        case "approval.reminder":
            return NoticeWords(
                title: "\(asks) still waits for an answer", body: "\(question) Nobody has answered yet.\(until)")
        case "approval.escalated":
            return NoticeWords(
                title: "\(asks) now asks for your answer",
                body: "\(question) Nobody has answered yet, so you are asked.\(until)")
        default: return nil
        }
    }

    private static func germanQuestion(_ kind: String, _ data: Facts) -> NoticeWords? {
        let asks = data["asks"] ?? "Jemand"
        let question = data["step"].map { "Die Frage: \($0)." } ?? "Es gibt eine Frage an dich."
        let until = data["due"].map { " Bitte antworte bis \($0)." } ?? ""
        switch kind {
        case "approval.asked":
            return NoticeWords(title: "\(asks) bittet um deine Antwort", body: question + until)
        case "approval.reminder":
            return NoticeWords(
                title: "\(asks) wartet noch auf eine Antwort",
                body: "\(question) Es hat noch niemand geantwortet.\(until)")
        case "approval.escalated":
            return NoticeWords(
                title: "\(asks) bittet jetzt um deine Antwort",
                body: "\(question) Es hat noch niemand geantwortet, darum wirst du gefragt.\(until)")
        default: return nil
        }
    }

    private static func english(_ kind: String, _ data: Facts, _ name: String, _ by: String?) -> NoticeWords? {
        let note = data["note"].map { " \($0)" } ?? ""
        switch kind {
        case "alarm.warning":
            return NoticeWords(
                title: "Please check in",
                body: "Your check-in is due. Check in now, or your contacts will be told that you may need help.")
        case "alarm.raised":
            return NoticeWords(
                title: "\(name) may need help",
                body: "\(name) has not checked in as expected. Please find out whether all is well.\(note)")
        case "alarm.escalated":
            return NoticeWords(
                title: "\(name) may still need help",
                body:
                    "\(name) has not checked in, and nobody has answered yet. Please find out whether all is well.\(note)"
            )
        case "alarm.acknowledged":
            return NoticeWords(
                title: "Somebody is looking after \(name)",
                body: by.map { "\($0) has answered the alarm about \(name).\(note)" }
                    ?? "The alarm about \(name) has been answered.\(note)")
        case "alarm.resolved":
            return NoticeWords(
                title: "The alarm about \(name) is over", body: "\(name) is safe, as far as we know.\(note)")
        case "summary":
            return NoticeWords(
                title: "While we were away", body: "\(data["count"] ?? "Several") notices waited for you.")
        case "quest_available": return NoticeWords(title: "New quest available!", body: "Have a look at today's quest.")
        case "quest_summary":
            return NoticeWords(title: "New quest available!", body: "Some days have passed. Have a look.")
        case "daily_reminder": return NoticeWords(title: "How was your day?", body: "Don't forget to log your mood")
        case "streak_at_risk":
            return NoticeWords(
                title: "Your streak is at risk", body: "\(data["streak"] ?? "Many") days in a row: keep them going.")
        case "mood_buffer": return NoticeWords(title: "Your mood", body: "Your mood is ready to share")
        case "chat.message":
            return NoticeWords(
                title: by.map { "\($0) wrote to you" } ?? "New messages", body: "Have a look at the chat.")
        default: return nil
        }
    }

    private static func german(_ kind: String, _ data: Facts, _ name: String, _ by: String?) -> NoticeWords? {
        let note = data["note"].map { " \($0)" } ?? ""
        switch kind {
        case "alarm.warning":
            return NoticeWords(
                title: "Bitte melde dich",
                body:
                    "Deine Meldung ist fällig. Melde dich jetzt, sonst erfahren deine Kontakte, dass du vielleicht Hilfe brauchst."
            )
        case "alarm.raised":
            return NoticeWords(
                title: "\(name) braucht vielleicht Hilfe",
                body:
                    "\(name) hat sich nicht wie erwartet gemeldet. Bitte finde heraus, ob alles in Ordnung ist.\(note)")
        case "alarm.escalated":
            return NoticeWords(
                title: "\(name) braucht vielleicht noch Hilfe",
                body:
                    "\(name) hat sich nicht gemeldet, und niemand hat geantwortet. Bitte finde heraus, ob alles in Ordnung ist.\(note)"
            )
        case "alarm.acknowledged":
            return NoticeWords(
                title: "Jemand kümmert sich um \(name)",
                body: by.map { "\($0) hat auf den Alarm um \(name) geantwortet.\(note)" }
                    ?? "Auf den Alarm um \(name) wurde geantwortet.\(note)")
        case "alarm.resolved":
            return NoticeWords(
                title: "Der Alarm um \(name) ist vorbei", body: "\(name) ist in Sicherheit, soweit wir wissen.\(note)")
        case "summary":
            return NoticeWords(
                title: "Während wir weg waren", body: "\(data["count"] ?? "Mehrere") Nachrichten warteten auf dich.")
        case "quest_available": return NoticeWords(title: "Neue Aufgabe!", body: "Schau dir die Aufgabe von heute an.")
        case "quest_summary":
            return NoticeWords(title: "Neue Aufgabe!", body: "Einige Tage sind vergangen. Schau vorbei.")
        case "daily_reminder":
            return NoticeWords(title: "Wie war dein Tag?", body: "Vergiss nicht, deine Stimmung einzutragen")
        case "streak_at_risk":
            return NoticeWords(
                title: "Deine Serie ist in Gefahr", body: "\(data["streak"] ?? "Viele") Tage am Stück: mach weiter.")
        case "mood_buffer": return NoticeWords(title: "Deine Stimmung", body: "Deine Stimmung kann geteilt werden")
        case "chat.message":
            return NoticeWords(
                title: by.map { "\($0) hat dir geschrieben" } ?? "Neue Nachrichten", body: "Schau in den Chat.")
        default: return nil
        }
    }
}
