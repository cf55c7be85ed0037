/// The words of the page of a question.
extension PageWords {
    var question: String { isGerman ? "Frage" : "Question" }
    func isAsked(_ name: String, by kind: String) -> String {
        isGerman ? "\(name), \(kind) bittet um deine Antwort." : "\(name), \(kind) asks for your answer."
    }

    var job: String { isGerman ? "Auftrag" : "Job" }
    var tenant: String { isGerman ? "Mandant" : "Tenant" }
    var since: String { isGerman ? "Gefragt seit" : "Asked since" }
    var until: String { isGerman ? "Antwort bis" : "Answer by" }
    var subject: String { isGerman ? "Worum es geht" : "What it is about" }
    var comment: String { isGerman ? "Bemerkung (wenn du magst)" : "Comment (if you like)" }
    var yes: String { isGerman ? "Ja" : "Yes" }

    func answer(_ approved: Bool, by name: String, at time: String) -> String {
        let answer = approved ? yes : no
        return isGerman
            ? "Beantwortet mit „\(answer)“ von \(name), \(time)."
            : "Answered with “\(answer)” by \(name), \(time)."
    }
    var earlierAnswerCounts: String {
        isGerman
            ? "Diese Frage war schon beantwortet. Es gilt die erste Antwort:"
            : "This question had been answered before. The first answer counts:"
    }
    func tooLate(_ time: String) -> String {
        isGerman
            ? "Die Zeit für eine Antwort war um, \(time). Es hat niemand geantwortet, und es geht ohne Antwort weiter."
            : "The time for an answer was over, \(time). Nobody had answered, and work goes on without an answer."
    }
    var noLongerAsked: String {
        isGerman
            ? "Es wird keine Antwort mehr gebraucht: Der Auftrag ist beendet."
            : "No answer is needed any more: the job has ended."
    }
    var commentTooLong: String {
        isGerman
            ? "Die Bemerkung ist zu lang. Es gehen höchstens 500 Zeichen."
            : "The comment is too long. It may have 500 characters at most."
    }
}
