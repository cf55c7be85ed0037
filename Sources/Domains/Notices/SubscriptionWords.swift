/// What a person reads of its subscription.
extension NoticeLanguage {
    func englishSubscription(_ kind: String, _ data: Facts) -> NoticeWords? {
        let (plan, until) = (data["plan"] ?? "", data["until"] ?? "")
        switch kind {
        case "subscription.ending":
            return NoticeWords(
                title: "Your subscription ends on \(until)", body: "\(plan) is not renewed, and ends on \(until).")
        case "subscription.trial_ending":
            return NoticeWords(
                title: "Your free trial ends on \(until)",
                body: "\(plan) continues after \(until), and will then be charged.")
        case "subscription.unpaid":
            return NoticeWords(
                title: "Your payment did not go through",
                body: "\(plan) stays yours until \(until). Please look at your payment method.")
        default: return nil
        }
    }

    func germanSubscription(_ kind: String, _ data: Facts) -> NoticeWords? {
        let (plan, until) = (data["plan"] ?? "", data["until"] ?? "")
        switch kind {
        case "subscription.ending":
            return NoticeWords(
                title: "Dein Abo endet am \(until)", body: "\(plan) wird nicht verlängert und endet am \(until).")
        case "subscription.trial_ending":
            return NoticeWords(
                title: "Deine Probezeit endet am \(until)",
                body: "\(plan) läuft nach dem \(until) weiter und wird dann berechnet.")
        case "subscription.unpaid":
            return NoticeWords(
                title: "Deine Zahlung ist fehlgeschlagen",
                body: "\(plan) bleibt dir bis zum \(until). Bitte sieh nach deiner Zahlungsart.")
        default: return nil
        }
    }
}
