/// The words of the built-in kinds in Arabic.
extension NoticeLanguage {
    func arabicAlarm(_ kind: String, _ data: Facts, _ name: String, _ by: String?) -> NoticeWords? {
        let note = data["note"].map { " \($0)" } ?? ""
        switch kind {
        case "alarm.warning":
            return NoticeWords(
                title: "يرجى تأكيد السلامة",
                body: "حان وقت تأكيد السلامة. أكِّده الآن، وإلا فستُبلَّغ جهات الاتصال بأنك قد تحتاج إلى مساعدة.")
        case "alarm.raised":
            return NoticeWords(
                title: "قد تكون هناك حاجة إلى مساعدة: \(name)",
                body: "لم يصل تأكيد السلامة من \(name) كما كان منتظرًا. يرجى التحقق من أن كل شيء بخير.\(note)")
        case "alarm.escalated":
            return NoticeWords(
                title: "قد تكون هناك حاجة إلى مساعدة: \(name)",
                body:
                    "لم يصل تأكيد السلامة من \(name)، ولم يجب أحد بعد. يرجى التحقق من أن كل شيء بخير.\(note)")
        case "alarm.acknowledged":
            return NoticeWords(
                title: "هناك من يتابع أمر \(name)",
                body: by.map { "وصل رد من \($0) على الإنذار الخاص بـ \(name).\(note)" }
                    ?? "وصل رد على الإنذار الخاص بـ \(name).\(note)")
        case "alarm.resolved":
            return NoticeWords(
                title: "انتهى الإنذار الخاص بـ \(name)", body: "بحسب ما نعلم، كل شيء بخير: \(name).\(note)")
        default: return nil
        }
    }

    /// Among Arabic letters its numbers would change places; a mark that nobody sees keeps them in order.
    private static func time(_ text: String) -> String { "\u{200e}\(text)\u{200e}" }

    func arabicOther(_ kind: String, _ data: Facts) -> NoticeWords? {
        let question = data["step"].map { "السؤال: \($0)." } ?? "هناك سؤال لك."
        let asks = data["asks"] ?? "هناك من"
        let due = data["due"].map { " يرجى الرد حتى \(Self.time($0))." } ?? ""
        let (plan, until) = (data["plan"] ?? "", data["until"].map(Self.time) ?? "")
        switch kind {
        case "approval.asked": return NoticeWords(title: "\(asks): مطلوب ردك", body: question + due)
        case "approval.reminder":
            return NoticeWords(title: "\(asks): ما زال ردك مطلوبًا", body: "\(question) لم يجب أحد بعد.\(due)")
        case "approval.escalated":
            return NoticeWords(
                title: "\(asks): مطلوب ردك الآن", body: "\(question) لم يجب أحد بعد، ولذلك تُسأل أنت.\(due)")
        case "subscription.ending":
            return NoticeWords(title: "ينتهي اشتراكك في \(until)", body: "لن يُجدَّد \(plan)، وينتهي في \(until).")
        case "subscription.trial_ending":
            return NoticeWords(
                title: "تنتهي الفترة المجانية في \(until)", body: "يستمر \(plan) بعد \(until)، ثم يُحتسب ثمنه.")
        case "subscription.unpaid":
            return NoticeWords(
                title: "لم تنجح عملية الدفع", body: "يبقى \(plan) لك حتى \(until). يرجى مراجعة وسيلة الدفع.")
        case "summary":
            return NoticeWords(
                title: "أثناء غيابنا", body: "الإشعارات التي كانت في انتظارك: \(data["count"] ?? "عدة").")
        case "quest_available": return NoticeWords(title: "مهمة جديدة!", body: "ألقِ نظرة على مهمة اليوم.")
        case "quest_summary": return NoticeWords(title: "مهمة جديدة!", body: "مرت بضعة أيام. ألقِ نظرة.")
        case "daily_reminder": return NoticeWords(title: "كيف كان يومك؟", body: "لا تنسَ تسجيل مزاجك")
        case "streak_at_risk":
            return NoticeWords(title: "سلسلتك في خطر", body: "أيام متتالية: \(data["streak"] ?? "عدة"). واصل.")
        case "mood_buffer": return NoticeWords(title: "مزاجك", body: "يمكنك الآن مشاركة مزاجك")
        default: return nil
        }
    }
}
