import JSON

/// The words of the pages behind signed links. Languages that are not here get English.
struct PageWords {
    let isGerman: Bool

    init(_ facts: JSONValue?) {
        isGerman = facts?["language"]?.text == "de"
    }

    /// In the reader's own language if that is known, else in what the browser asks for.
    init(_ facts: JSONValue, accepting languages: String?) {
        self = facts["language"]?.text == nil ? PageWords(accepting: languages) : PageWords(facts)
    }

    /// For a reader of whom nothing is known but what the browser asks for (`Accept-Language`).
    init(accepting languages: String?) {
        isGerman = Self.preferred(among: ["en", "de"], by: languages ?? "") == "de"
    }

    /// The offered language with the highest weight; the first offered where none is asked for. Of equal weights the earlier one counts.
    static func preferred(among offered: [String], by asked: String) -> String {
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

    var language: String { isGerman ? "de" : "en" }
    var alarm: String { isGerman ? "Alarm" : "Alarm" }
    var test: String { isGerman ? "Probe eines Alarms" : "Test of an alarm" }
    var answersSoFar: String { isGerman ? "Antworten bisher" : "Answers so far" }
    var yourAnswer: String { isGerman ? "Deine Antwort" : "Your answer" }

    func label(_ answer: String) -> String {
        switch answer {
        case "on_my_way": isGerman ? "Ich bin unterwegs" : "I am on my way"
        case "acknowledged": isGerman ? "Ich kümmere mich" : "I look after it"
        case "cannot": isGerman ? "Ich kann nicht" : "I cannot"
        case "safe": isGerman ? "Alles in Ordnung" : "They are safe"
        default: ""
        }
    }

    var isItTrue: String { isGerman ? "Ist wirklich alles in Ordnung?" : "Are they really safe?" }
    var thenItEnds: String {
        isGerman
            ? "Damit endet der Alarm für alle. Antworte nur so, wenn du es sicher weißt."
            : "This ends the alarm for everybody. Say so only if you know it."
    }
    var yesSafe: String { isGerman ? "Ja, alles in Ordnung" : "Yes, they are safe" }
    var back: String { isGerman ? "Zurück" : "Back" }

    var beingAContact: String { isGerman ? "Kontakt sein" : "Being a contact" }
    func beingAContact(of person: String) -> String {
        isGerman ? "Kontakt von \(person) sein" : "Being a contact of \(person)"
    }
    func asks(_ person: String) -> String {
        isGerman
            ? "\(person) möchte dich als Kontakt nennen, der erfährt, wenn eine Meldung ausbleibt."
            : "\(person) asks to name you as somebody to be told when they miss a check-in."
    }
    var saidYes: String {
        isGerman
            ? "Du hast ja gesagt. Hier kannst du es jederzeit ändern."
            : "You have said yes. You can change your mind here at any time."
    }
    var saidNo: String {
        isGerman
            ? "Du hast nein gesagt. Hier kannst du es jederzeit ändern."
            : "You have said no. You can change your mind here at any time."
    }
    var yesTellMe: String { isGerman ? "Ja, sagt mir Bescheid" : "Yes, tell me" }
    var no: String { isGerman ? "Nein" : "No" }
    var never: String { isGerman ? "Nie wieder" : "Never again" }
    var neverAgain: String { isGerman ? "Nie wieder fragen, egal für wen" : "Never ask me again, for anybody" }
    var nobodyCanAsk: String {
        isGerman
            ? "Hier kann dich niemand mehr fragen, und was du zugesagt hattest, ist beendet. Wenn du es dir anders überlegst, schreib dem Betreiber dieses Dienstes."
            : "Nobody can ask you here any more, and what you had agreed to has ended. If you change your mind, write to those who run this service."
    }
    var questionIsOver: String {
        isGerman
            ? "Diese Frage ist nicht mehr offen: Du bist kein Kontakt mehr."
            : "This question is no longer open: you are not named as a contact."
    }

    var unknownLink: String { isGerman ? "Unbekannter Link" : "Unknown link" }
    var notOurs: String {
        isGerman
            ? "Dieser Link ist nicht von uns, oder er gilt nicht mehr."
            : "This link is not one of ours, or it is no longer valid."
    }
    var unknownAnswer: String { isGerman ? "Unbekannte Antwort" : "Unknown answer" }
    var noAnswerOfOurs: String {
        isGerman ? "Diese Antwort kennen wir nicht." : "We do not know this answer."
    }
}
