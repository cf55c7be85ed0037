import Listeners
import PageKit

/// The page behind the link to unsubscribe. The link has no address in it, so the page names none.
enum UnsubscribePage {
    static func question(_ frame: PageFrame) -> Response {
        let words = frame.words
        return page(
            words.stopQuestion(frame.host.name.map { LinkPage.escaped($0) }), words.stopQuestion(sender(frame)),
            "<p>\(words.whatStops)</p><p>\(words.whatStays)</p>"
                + LinkPage.answers([LinkPage.button("stop", words.unsubscribe, .first)]), frame)
    }

    static func unsubscribed(_ frame: PageFrame) -> Response {
        let words = frame.words
        return page(
            words.unsubscribed, words.unsubscribed,
            "<p>\(words.noMore)</p><section class=\"aside\"><p class=\"quiet\">\(words.byMistake)</p>"
                + LinkPage.answers([LinkPage.button("again", words.subscribeAgain)]) + "</section>", frame)
    }

    static func subscribed(_ frame: PageFrame) -> Response {
        page(frame.words.subscribed, frame.words.subscribed, "<p>\(frame.words.onceMore)</p>", frame)
    }

    private static func page(_ title: String, _ heading: String, _ body: String, _ frame: PageFrame) -> Response {
        LinkPage.html(title, "<h1>\(heading)</h1>" + body, frame)
    }

    /// Whose messages they are; nil: nobody has configured a name.
    private static func sender(_ frame: PageFrame) -> String? { frame.host.name.map { LinkPage.shown($0) } }
}

extension PageWords {
    var unsubscribe: String { say("Unsubscribe", "Abbestellen", "إلغاء الاشتراك") }
    func stopQuestion(_ sender: String?) -> String {
        guard let sender else {
            return say(
                "Stop these messages?", "Diese Nachrichten abbestellen?", "هل تريد إيقاف هذه الرسائل؟")
        }
        return say(
            "Stop messages from \(sender)?", "Nachrichten von \(sender) abbestellen?", "هل تريد إيقاف رسائل \(sender)؟")
    }
    var whatStops: String {
        say(
            "The address that this link was sent to will get no more news and offers.",
            "An die Adresse, die diesen Link bekommen hat, kommen dann keine Neuigkeiten und Angebote mehr.",
            "لن تصل الأخبار والعروض بعد ذلك إلى العنوان الذي أُرسل إليه هذا الرابط.")
    }
    var whatStays: String {
        say(
            "Messages about an account, such as a new password, still arrive.",
            "Nachrichten zu einem Konto, etwa ein neues Passwort, kommen weiterhin an.",
            "تستمر الرسائل المتعلقة بالحساب، مثل كلمة مرور جديدة.")
    }
    var unsubscribed: String { say("You are unsubscribed", "Abbestellt", "تم إلغاء الاشتراك") }
    var noMore: String {
        say(
            "You will get no more of these messages.", "Du bekommst keine dieser Nachrichten mehr.",
            "لن تصلك هذه الرسائل بعد الآن.")
    }
    var byMistake: String {
        say("Pressed by mistake?", "Aus Versehen gedrückt?", "ضغطت بالخطأ؟")
    }
    var subscribeAgain: String { say("Subscribe again", "Wieder abonnieren", "الاشتراك مجددًا") }
    var subscribed: String { say("You are subscribed again", "Wieder abonniert", "عاد اشتراكك") }
    var onceMore: String {
        say(
            "Messages will come again. This link unsubscribes at any time.",
            "Die Nachrichten kommen wieder. Mit diesem Link kannst du sie jederzeit abbestellen.",
            "ستصلك الرسائل مجددًا. يمكنك إلغاء الاشتراك بهذا الرابط في أي وقت.")
    }
}
