import PageKit

/// The words of the pages of an alarm and of a contact.
extension PageWords {
    var alarm: String { say("Alarm", "Alarm", "إنذار") }
    var test: String { say("Test of an alarm", "Probe eines Alarms", "تجربة إنذار") }
    var answersSoFar: String { say("Answers so far", "Antworten bisher", "الردود حتى الآن") }

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
}
