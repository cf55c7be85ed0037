import PageKit

/// The words of the page of a question.
extension PageWords {
    var question: String { say("Question", "Frage", "سؤال") }
    func isAsked(_ name: String, by kind: String) -> String {
        say(
            "\(name), \(kind) asks for your answer.", "\(name), \(kind) bittet um deine Antwort.",
            "\(name)، \(kind) يطلب ردك.")
    }

    var openQuestion: String { say("Needs your answer", "Braucht deine Antwort", "بانتظار ردك") }
    var isAnswered: String { say("Answered", "Beantwortet", "تم الرد") }
    var details: String { say("Details", "Einzelheiten", "التفاصيل") }
    var addComment: String { say("Add a comment", "Bemerkung hinzufügen", "إضافة تعليق") }

    var job: String { say("Job", "Auftrag", "مهمة") }
    var tenant: String { say("Tenant", "Mandant", "الجهة") }
    var since: String { say("Asked since", "Gefragt seit", "مطروح منذ") }
    var until: String { say("Answer by", "Antwort bis", "الرد حتى") }
    var subject: String { say("What it is about", "Worum es geht", "الموضوع") }
    var comment: String { say("Comment (optional)", "Bemerkung (wenn du magst)", "تعليق (إن أردت)") }
    var yes: String { say("Yes", "Ja", "نعم") }

    func answer(_ approved: Bool, by name: String, at time: String) -> String {
        let answer = approved ? yes : no
        return say(
            "Answered with “\(answer)” by \(name), \(time).", "Beantwortet mit „\(answer)“ von \(name), \(time).",
            "رد \(name) بـ «\(answer)»، \(time).")
    }
    var earlierAnswerCounts: String {
        say(
            "This question has already been answered. The first answer counts:",
            "Diese Frage war schon beantwortet. Es gilt die erste Antwort:",
            "سبق الرد على هذا السؤال. الرد الأول هو المعتمد:")
    }
    func tooLate(_ time: String) -> String {
        say(
            "The time for an answer ran out, \(time). Nobody had answered, and work goes on without an answer.",
            "Die Zeit für eine Antwort war um, \(time). Es hat niemand geantwortet, und es geht ohne Antwort weiter.",
            "انتهى وقت الرد، \(time). لم يرد أحد، ويستمر العمل بلا رد.")
    }
    var noLongerAsked: String {
        say(
            "No answer is needed any more: the job has ended.",
            "Es wird keine Antwort mehr gebraucht: Der Auftrag ist beendet.", "لم يعد الرد مطلوبًا: انتهت المهمة.")
    }
    var commentTooLong: String {
        say(
            "The comment is too long. It may have 500 characters at most.",
            "Die Bemerkung ist zu lang. Es gehen höchstens 500 Zeichen.", "التعليق طويل جدًا. الحد الأقصى 500 حرف.")
    }
}
