/// The words of one mail in one language. Plain text with variables; nothing in it needs an escape in HTML.
struct Wording {
    var subject: String
    /// The text that a list of mails shows after the subject.
    var preheader: String
    var heading: String
    var before: [String]
    var button: String?
    var mayLackAddress = false
    var after: [String] = []
}

struct TemplateLanguage {
    var locale: String
    /// The line above the full address.
    var hint: String
    var footer: String
    var wordings: [String: Wording]

    static let all = [english, german, arabic]
}

extension TemplateLanguage {
    static let english = TemplateLanguage(
        locale: "en",
        hint: "If the button does not work, copy this address into your browser:",
        footer: "You receive this mail because this address belongs to an account with {{app_name}}.",
        wordings: [
            "password_reset": Wording(
                subject: "Reset Your {{app_name}} Password",
                preheader: "Choose a new password for your {{app_name}} account.",
                heading: "Choose a new password",
                before: [
                    "Someone, hopefully you, asked for a new password for your {{app_name}} account.",
                    "{{#expires}}The link below can be used until {{expires}}.{{/expires}}",
                ],
                button: "Set a new password",
                after: [
                    "If that was not you, you need do nothing: your password stays as it is. Do not pass this link on."
                ]),
            "welcome": Wording(
                subject: "Welcome to {{app_name}}!",
                preheader: "Your account is ready.",
                heading: "Welcome, {{user_name}}!",
                before: [
                    "It is good to have you here. Your {{app_name}} account is ready, and you can begin at once.",
                    "Whenever you have a question, simply look into the help of the app.",
                ]),
            "account_verification": Wording(
                subject: "Verify Your {{app_name}} Account",
                preheader: "One step is left: confirm your address.",
                heading: "Confirm your address",
                before: ["Please confirm that this address is yours. Your {{app_name}} account is then complete."],
                button: "Confirm this address",
                after: ["If you did not open an account, leave this mail unanswered: nothing will happen."]),
            "account_notification": Wording(
                subject: "Account Notification",
                preheader: "{{title}}",
                heading: "{{title}}",
                before: ["{{body}}"],
                button: "See more", mayLackAddress: true),
        ])

    static let german = TemplateLanguage(
        locale: "de",
        hint: "Falls die Schaltfläche nicht geht, kopieren Sie diese Adresse in Ihren Browser:",
        footer: "Sie erhalten diese Nachricht, weil diese Adresse zu einem Konto bei {{app_name}} gehört.",
        wordings: [
            "password_reset": Wording(
                subject: "Ihr neues Passwort für {{app_name}}",
                preheader: "Wählen Sie ein neues Passwort für Ihr Konto bei {{app_name}}.",
                heading: "Neues Passwort wählen",
                before: [
                    "Jemand, hoffentlich Sie selbst, hat für Ihr Konto bei {{app_name}} ein neues Passwort angefordert.",
                    "{{#expires}}Der Link unten gilt bis {{expires}}.{{/expires}}",
                ],
                button: "Neues Passwort setzen",
                after: [
                    "Falls Sie das nicht waren, müssen Sie nichts tun: Ihr Passwort bleibt, wie es ist. Geben Sie diesen Link nicht weiter."
                ]),
            "welcome": Wording(
                subject: "Willkommen bei {{app_name}}!",
                preheader: "Ihr Konto ist bereit.",
                heading: "Willkommen, {{user_name}}!",
                before: [
                    "Schön, dass Sie da sind. Ihr Konto bei {{app_name}} ist bereit, und Sie können gleich beginnen.",
                    "Wenn Sie Fragen haben, schauen Sie einfach in die Hilfe der App.",
                ]),
            "account_verification": Wording(
                subject: "Bestätigen Sie Ihr Konto bei {{app_name}}",
                preheader: "Ein Schritt fehlt noch: Bestätigen Sie Ihre Adresse.",
                heading: "Adresse bestätigen",
                before: [
                    "Bitte bestätigen Sie, dass diese Adresse Ihnen gehört. Danach ist Ihr Konto bei {{app_name}} fertig."
                ],
                button: "Diese Adresse bestätigen",
                after: ["Falls Sie kein Konto eröffnet haben, antworten Sie einfach nicht: Es geschieht nichts."]),
            "account_notification": Wording(
                subject: "Nachricht zu Ihrem Konto",
                preheader: "{{title}}",
                heading: "{{title}}",
                before: ["{{body}}"],
                button: "Mehr ansehen", mayLackAddress: true),
        ])

    static let arabic = TemplateLanguage(
        locale: "ar",
        hint: "إذا لم يعمل الزر، فانسخ هذا العنوان إلى متصفحك:",
        footer: "تصلك هذه الرسالة لأن هذا العنوان مرتبط بحساب لدى {{app_name}}.",
        wordings: [
            "password_reset": Wording(
                subject: "إعادة تعيين كلمة مرور {{app_name}}",
                preheader: "اختر كلمة مرور جديدة لحسابك لدى {{app_name}}.",
                heading: "اختر كلمة مرور جديدة",
                before: [
                    "طلب شخص ما، نأمل أن يكون أنت، كلمة مرور جديدة لحسابك لدى {{app_name}}.",
                    "{{#expires}}يمكن استخدام الرابط أدناه حتى {{expires}}.{{/expires}}",
                ],
                button: "تعيين كلمة مرور جديدة",
                after: ["إذا لم تكن أنت، فلا داعي لفعل أي شيء: ستبقى كلمة مرورك كما هي. لا تشارك هذا الرابط مع أحد."]),
            "welcome": Wording(
                subject: "مرحبًا بك في {{app_name}}!",
                preheader: "حسابك جاهز.",
                heading: "مرحبًا {{user_name}}!",
                before: [
                    "يسعدنا انضمامك إلينا. حسابك لدى {{app_name}} جاهز، ويمكنك البدء الآن.",
                    "إذا كان لديك أي سؤال، فاطلع على المساعدة داخل التطبيق.",
                ]),
            "account_verification": Wording(
                subject: "تأكيد حسابك لدى {{app_name}}",
                preheader: "بقيت خطوة واحدة: أكد عنوانك.",
                heading: "أكد عنوانك",
                before: ["يرجى تأكيد أن هذا العنوان لك، وبذلك يكتمل حسابك لدى {{app_name}}."],
                button: "تأكيد هذا العنوان",
                after: ["إذا لم تفتح حسابًا، فتجاهل هذه الرسالة ولن يحدث شيء."]),
            "account_notification": Wording(
                subject: "إشعار بشأن حسابك",
                preheader: "{{title}}",
                heading: "{{title}}",
                before: ["{{body}}"],
                button: "عرض المزيد", mayLackAddress: true),
        ])
}
