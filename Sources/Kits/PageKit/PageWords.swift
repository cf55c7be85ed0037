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

    /// In the reader's own language if that is known, else in what the browser asks for.
    package init(_ facts: JSONValue, accepting languages: String?) {
        self = facts["language"]?.text == nil ? PageWords(accepting: languages) : PageWords(facts)
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
