package import JSON

/// The words of the pages behind signed links, in English, German and Arabic. Other languages get English.
package struct PageWords {
    /// One of `languages`.
    package let language: String

    package static let languages = ["en", "de", "ar"]

    package init(_ facts: JSONValue?) {
        let said = facts?["language"]?.text ?? ""
        language = Self.languages.contains(said) ? said : "en"
    }

    /// - Parameter language: English where it is none of ours.
    package init(language: String) {
        self.language = Self.languages.contains(language) ? language : "en"
    }

    /// In the reader's own language if that is known, else in what the browser asks for.
    package init(_ facts: JSONValue, accepting languages: String?) {
        self = facts["language"]?.text == nil ? PageWords(accepting: languages) : PageWords(facts)
    }

    /// In what the reader has chosen on the page, else as above.
    package init(_ facts: JSONValue, chosen: String?, accepting languages: String?) {
        if let chosen, Self.languages.contains(chosen) {
            language = chosen
        } else {
            self = PageWords(facts, accepting: languages)
        }
    }

    /// For a reader of whom nothing is known but what the browser asks for (`Accept-Language`).
    package init(accepting languages: String?) {
        language = Self.preferred(among: Self.languages, by: languages ?? "")
    }

    /// The offered language with the highest weight; the first offered where none is asked for. Of equal weights the earlier one counts.
    package static func preferred(among offered: [String], by asked: String) -> String {
        var best = (language: offered[0], weight: 0.0)
        for item in asked.split(separator: ",").prefix(50) {
            let parts = item.split(separator: ";").map { $0.filter { !$0.isWhitespace } }
            guard let range = parts.first?.lowercased(), let main = range.split(separator: "-").first else { continue }
            let asked = parts.dropFirst().first { $0.hasPrefix("q=") }
            let weight = asked.map { Double($0.dropFirst(2)) ?? 0 } ?? 1
            let language = main == "*" ? offered[0] : String(main)
            if weight > best.weight, weight <= 1, offered.contains(language) { best = (language, weight) }
        }
        return best.language
    }

    /// Which way it is written.
    package var direction: String { language == "ar" ? "rtl" : "ltr" }

    package func say(_ english: String, _ german: String, _ arabic: String) -> String {
        switch language {
        case "de": german
        case "ar": arabic
        default: english
        }
    }

    /// Each in its own words.
    static func name(of language: String) -> String {
        switch language {
        case "de": "Deutsch"
        case "ar": "العربية"
        default: "English"
        }
    }

    private static let months = [
        "en": [
            "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
            "November", "December",
        ],
        "de": [
            "Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November",
            "Dezember",
        ],
        "ar": [
            "يناير", "فبراير", "مارس", "أبريل", "مايو", "يونيو", "يوليو", "أغسطس", "سبتمبر", "أكتوبر", "نوفمبر",
            "ديسمبر",
        ],
    ]

    /// A day as it is written: `28 November 2026`.
    package func day(_ year: Int, _ month: Int, _ day: Int) -> String {
        let name = Self.months[language]?[month - 1] ?? ""
        return say("\(day) \(name) \(year)", "\(day). \(name) \(year)", "\(day) \(name) \(year)")
    }

    /// `2026-11-28` as a day; nil: it is not one.
    package func day(_ text: some StringProtocol) -> String? {
        let parts = text.split(separator: "-").compactMap { Int($0) }
        return parts.count == 3 && (1...12).contains(parts[1]) ? day(parts[0], parts[1], parts[2]) : nil
    }

    /// Each `2026-11-28 19:03 (Europe/Vienna)` of a text as it is said behind “at” or “by”: `19:03 on 28 November 2026 (Europe/Vienna)`.
    package func saying(timesOf text: String) -> String {
        text.replacing(/(\d{4}-\d\d-\d\d) (\d\d:\d\d) (\([A-Za-z0-9_+\-\/]+\))/) { found in
            day(found.1).map { "\(found.2) \(say("on", "am", "يوم")) \($0) \(found.3)" } ?? String(found.0)
        }
    }

    /// A number with the signs of the language: `1,240.50`, `1.240,50`.
    package func number(_ digits: String) -> String {
        let halves = digits.split(separator: ".", omittingEmptySubsequences: false)
        guard let whole = halves.first, digits.allSatisfy({ $0.isASCII && ($0.isNumber || "-.".contains($0)) }) else {
            return digits
        }
        let (group, point) = language == "de" ? (".", ",") : (",", ".")
        var out = ""
        let size = whole.drop { $0 == "-" }
        for (index, digit) in size.enumerated() {
            if index > 0, (size.count - index).isMultiple(of: 3) { out += group }
            out.append(digit)
        }
        return (whole.hasPrefix("-") ? "-" : "") + out + (halves.count > 1 ? point + halves[1] : "")
    }

    package var skip: String { say("Skip to the content", "Zum Inhalt", "انتقل إلى المحتوى") }
    package var languages: String { say("Language", "Sprache", "اللغة") }
    package var personalPage: String {
        say("A page just for you", "Eine Seite nur für dich", "صفحة لك وحدك")
    }
    package var onlyForYou: String {
        say(
            "The link to this page is yours. Do not share it.",
            "Der Link zu dieser Seite gehört dir. Gib ihn nicht weiter.",
            "رابط هذه الصفحة خاص بك. لا تشاركه مع أحد.")
    }
    package var theOperator: String { say("those who run this service", "den Betreiber", "مشغّل الخدمة") }
    package func questionsTo(_ name: String) -> String {
        say("Questions? Write to \(name):", "Fragen? Schreib an \(name):", "لديك أسئلة؟ اكتب إلى \(name):")
    }
    package var ifInDanger: String {
        say(
            "If somebody is in danger, call for help first. This page does not call anybody.",
            "Ist jemand in Gefahr, ruf zuerst Hilfe. Von hier aus ruft niemand von selbst an.",
            "إذا كان أحد في خطر فاطلب النجدة أولًا. لا يتصل أحد من هنا تلقائيًا.")
    }
    package var call: String { say("Call", "Anrufen:", "اتصل:") }

    package var comma: String { say(", ", ", ", "، ") }
    package var no: String { say("No", "Nein", "لا") }
    package var yourAnswer: String { say("Your answer", "Deine Antwort", "ردك") }
    package var back: String { say("Back", "Zurück", "رجوع") }

    package var unknownLink: String { say("Unknown link", "Unbekannter Link", "رابط غير معروف") }
    package var notOurs: String {
        say(
            "This link is not one of ours, or it is no longer valid.",
            "Dieser Link ist nicht von uns, oder er gilt nicht mehr.", "هذا الرابط ليس من روابطنا، أو لم يعد صالحًا.")
    }
    package var unknownAnswer: String { say("Unknown answer", "Unbekannte Antwort", "رد غير معروف") }
    package var noAnswerOfOurs: String {
        say("We do not know this answer.", "Diese Antwort kennen wir nicht.", "لا نعرف هذا الرد.")
    }
}
