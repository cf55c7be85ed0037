import PageKit

/// The words of the pages of an alarm and of a contact.
extension PageWords {
    var alarm: String { say("Alarm", "Alarm", "إنذار") }
    var test: String { say("Test of an alarm", "Probe eines Alarms", "تجربة إنذار") }
    var answersSoFar: String { say("Answers so far", "Antworten bisher", "الردود حتى الآن") }

    var isOver: String { say("Over", "Vorbei", "انتهى") }
    func note(by name: String) -> String { say("Note from \(name)", "Notiz von \(name)", "ملاحظة من \(name)") }
    func whyYou(_ name: String) -> String {
        say(
            "You get this because \(name) has named you as an emergency contact.",
            "Du bekommst das, weil \(name) dich als Notfallkontakt genannt hat.",
            "وصلتك هذه الرسالة لأنك جهة اتصال للطوارئ لدى \(name).")
    }
    var whoSeesIt: String {
        say(
            "Everybody who was told sees your answer. You can answer again.",
            "Alle, die benachrichtigt wurden, sehen deine Antwort. Du kannst noch einmal antworten.",
            "يرى ردك كل من أُبلغ. يمكنك الرد مرة أخرى.")
    }
    var onlyIfYouKnow: String {
        say(
            "Do you know that all is well? This ends the alarm for everybody; we will ask once more.",
            "Du weißt sicher, dass alles gut ist? Das beendet den Alarm für alle; wir fragen noch einmal nach.",
            "هل أنت متأكد أن كل شيء بخير؟ ينهي هذا الإنذار للجميع، وسنسألك مرة أخرى.")
    }

    var place: String { say("Place", "Ort", "المكان") }
    var openMap: String { say("Show on a map", "Auf einer Karte zeigen", "العرض على الخريطة") }

    func label(_ answer: String) -> String {
        switch answer {
        case "on_my_way": say("I am on my way", "Ich bin unterwegs", "أنا في الطريق")
        case "acknowledged": say("I’ll take care of it", "Ich kümmere mich", "سأتولى الأمر")
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

    var beingAContact: String { say("Emergency contact", "Notfallkontakt", "جهة اتصال للطوارئ") }
    func wantsYou(_ person: String) -> String {
        say(
            "\(person) wants you as an emergency contact", "\(person) möchte dich als Notfallkontakt",
            "طلب من \(person): كن جهة اتصال للطوارئ")
    }
    func asks(_ person: String) -> String {
        say(
            "\(person) checks in from time to time. We tell the contacts when a check-in is missed, or when \(person) asks for help.",
            "\(person) meldet sich regelmäßig. Bleibt eine Meldung aus oder bittet \(person) um Hilfe, benachrichtigen wir die Kontakte.",
            "يصل من \(person) تأكيد سلامة بانتظام. إذا لم يصل، أو إذا طُلبت المساعدة، نُبلغ جهات الاتصال.")
    }
    func ifYes(_ person: String) -> String {
        say(
            "Yes: you get a message then, and say whether you can help.",
            "Ja: Du bekommst dann eine Nachricht und sagst, ob du helfen kannst.",
            "نعم: تصلك رسالة حينها، وترد إن كان بإمكانك المساعدة.")
    }
    func ifNo(_ person: String) -> String {
        say(
            "No: you get no messages about \(person).", "Nein: Du bekommst keine Nachrichten über \(person).",
            "لا: لا تصلك أي رسائل عن \(person).")
    }
    var anyTime: String {
        say(
            "You can change your answer here at any time.", "Du kannst deine Antwort hier jederzeit ändern.",
            "يمكنك تغيير ردك هنا في أي وقت.")
    }
    var saidYes: String { say("You said yes", "Du hast ja gesagt", "كان ردك نعم") }
    var saidNo: String { say("You said no", "Du hast nein gesagt", "كان ردك لا") }
    var yesTellMe: String { say("Yes, tell me", "Ja, sagt mir Bescheid", "نعم، أبلغوني") }
    var never: String { say("You will not be asked again", "Niemand fragt dich mehr", "لن يسألك أحد بعد الآن") }
    var neverAgain: String {
        say("Never ask me again, for anybody", "Nie wieder fragen, egal für wen", "لا تسألوني مرة أخرى، من أجل أي شخص")
    }
    var whatNeverMeans: String {
        say(
            "“Never” applies to everybody who might name you: this address gets no more such questions, and everything you agreed to ends.",
            "„Nie wieder“ gilt für alle, die dich nennen könnten: An diese Adresse kommt keine solche Frage mehr, und alles, was du zugesagt hast, endet.",
            "«لا مرة أخرى» يعني الجميع: لن يصل إلى هذا العنوان أي سؤال كهذا، وينتهي كل ما وافقت عليه.")
    }
    var reallyNever: String {
        say(
            "Never ask you again, for anybody?", "Dich nie wieder fragen, egal für wen?",
            "ألا نسألك مرة أخرى، من أجل أي شخص؟")
    }
    var canTakeBack: String {
        say(
            "You can allow questions again with this link; what has already ended stays ended.",
            "Mit diesem Link kannst du Fragen wieder erlauben; was bis dahin beendet ist, bleibt beendet.",
            "يمكنك السماح بالأسئلة مجددًا بهذا الرابط، أما ما انتهى فيبقى منتهيًا.")
    }
    var yesNever: String { say("Never ask me again", "Nie wieder fragen", "لا تسألوني مرة أخرى") }
    var nobodyCanAsk: String {
        say(
            "No more questions come to this address, and what you had agreed to has ended.",
            "An diese Adresse kommt keine Frage mehr, und was du zugesagt hattest, ist beendet.",
            "لن يصل أي سؤال إلى هذا العنوان، وانتهى كل ما وافقت عليه.")
    }
    var askAgain: String { say("Allow questions again", "Fragen wieder erlauben", "السماح بالأسئلة مجددًا") }
    var operatorMustAllow: String {
        say(
            "Only those who run this service can change that: write to them.",
            "Das kann nur der Betreiber dieses Dienstes ändern: Schreib ihm.",
            "لا يغيّر ذلك إلا مشغّل الخدمة: اكتب إليه.")
    }
    var questionIsOver: String {
        say(
            "This question is no longer open: you are not named as a contact.",
            "Diese Frage ist nicht mehr offen: Du bist kein Kontakt mehr.",
            "لم يعد هذا السؤال مطروحًا: لم تعد جهة اتصال.")
    }
}
