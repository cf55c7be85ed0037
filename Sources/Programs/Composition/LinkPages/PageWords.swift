import JSON

/// The words of the pages behind signed links, in English, German and Arabic. Other languages get English.
struct PageWords {
    /// One of `languages`.
    let language: String

    static let languages = ["en", "de", "ar"]

    init(_ facts: JSONValue?) {
        let said = facts?["language"]?.text ?? ""
        language = Self.languages.contains(said) ? said : "en"
    }

    /// In the reader's own language if that is known, else in what the browser asks for.
    init(_ facts: JSONValue, accepting languages: String?) {
        self = facts["language"]?.text == nil ? PageWords(accepting: languages) : PageWords(facts)
    }

    /// For a reader of whom nothing is known but what the browser asks for (`Accept-Language`).
    init(accepting languages: String?) {
        language = Self.preferred(among: Self.languages, by: languages ?? "")
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

    /// Which way it is written.
    var direction: String { language == "ar" ? "rtl" : "ltr" }

    func say(_ english: String, _ german: String, _ arabic: String) -> String {
        switch language {
        case "de": german
        case "ar": arabic
        default: english
        }
    }

    var alarm: String { say("Alarm", "Alarm", "إنذار") }
    var test: String { say("Test of an alarm", "Probe eines Alarms", "تجربة إنذار") }
    var answersSoFar: String { say("Answers so far", "Antworten bisher", "الردود حتى الآن") }
    var yourAnswer: String { say("Your answer", "Deine Antwort", "ردك") }

    var place: String { say("Place", "Ort", "المكان") }
    var openMap: String { say("Show on a map", "Auf einer Karte zeigen", "العرض على الخريطة") }

    func label(_ answer: String) -> String {
        switch answer {
        case "on_my_way": say("I am on my way", "Ich bin unterwegs", "أنا في الطريق")
        case "acknowledged": say("I look after it", "Ich kümmere mich", "سأتولى الأمر")
        case "cannot": say("I cannot", "Ich kann nicht", "لا أستطيع")
        case "safe": say("They are safe", "Alles in Ordnung", "الشخص بخير")
        default: ""
        }
    }

    var isItTrue: String { say("Are they really safe?", "Ist wirklich alles in Ordnung?", "هل الشخص بخير فعلًا؟") }
    var thenItEnds: String {
        say(
            "This ends the alarm for everybody. Say so only if you know it.",
            "Damit endet der Alarm für alle. Antworte nur so, wenn du es sicher weißt.",
            "بهذا ينتهي الإنذار للجميع. اختر هذا الرد فقط إذا كنت متأكدًا.")
    }
    var yesSafe: String { say("Yes, they are safe", "Ja, alles in Ordnung", "نعم، الشخص بخير") }
    var back: String { say("Back", "Zurück", "رجوع") }

    var beingAContact: String { say("Being a contact", "Kontakt sein", "جهة اتصال") }
    func beingAContact(of person: String) -> String {
        say("Being a contact of \(person)", "Kontakt von \(person) sein", "جهة اتصال لـ \(person)")
    }
    func asks(_ person: String) -> String {
        say(
            "\(person) asks to name you as somebody to be told when they miss a check-in.",
            "\(person) möchte dich als Kontakt nennen, der erfährt, wenn eine Meldung ausbleibt.",
            "السؤال من \(person): هل تريد أن تُبلَّغ إذا لم يصل تأكيد السلامة؟")
    }
    var saidYes: String {
        say(
            "You have said yes. You can change your mind here at any time.",
            "Du hast ja gesagt. Hier kannst du es jederzeit ändern.", "كان ردك نعم. يمكنك تغييره هنا في أي وقت.")
    }
    var saidNo: String {
        say(
            "You have said no. You can change your mind here at any time.",
            "Du hast nein gesagt. Hier kannst du es jederzeit ändern.", "كان ردك لا. يمكنك تغييره هنا في أي وقت.")
    }
    var yesTellMe: String { say("Yes, tell me", "Ja, sagt mir Bescheid", "نعم، أبلغوني") }
    var no: String { say("No", "Nein", "لا") }
    var never: String { say("Never again", "Nie wieder", "لا مرة أخرى") }
    var neverAgain: String {
        say("Never ask me again, for anybody", "Nie wieder fragen, egal für wen", "لا تسألوني مرة أخرى، من أجل أي شخص")
    }
    var nobodyCanAsk: String {
        say(
            "Nobody can ask you here any more, and what you had agreed to has ended. If you change your mind, write to those who run this service.",
            "Hier kann dich niemand mehr fragen, und was du zugesagt hattest, ist beendet. Wenn du es dir anders überlegst, schreib dem Betreiber dieses Dienstes.",
            "لا يمكن لأحد أن يسألك هنا بعد الآن، وانتهى كل ما وافقت عليه. إذا غيّرت رأيك فاكتب إلى مشغّل هذه الخدمة.")
    }
    var questionIsOver: String {
        say(
            "This question is no longer open: you are not named as a contact.",
            "Diese Frage ist nicht mehr offen: Du bist kein Kontakt mehr.",
            "لم يعد هذا السؤال مطروحًا: لم تعد جهة اتصال.")
    }

    var unknownLink: String { say("Unknown link", "Unbekannter Link", "رابط غير معروف") }
    var notOurs: String {
        say(
            "This link is not one of ours, or it is no longer valid.",
            "Dieser Link ist nicht von uns, oder er gilt nicht mehr.", "هذا الرابط ليس من روابطنا، أو لم يعد صالحًا.")
    }
    var unknownAnswer: String { say("Unknown answer", "Unbekannte Antwort", "رد غير معروف") }
    var noAnswerOfOurs: String {
        say("We do not know this answer.", "Diese Antwort kennen wir nicht.", "لا نعرف هذا الرد.")
    }
}
