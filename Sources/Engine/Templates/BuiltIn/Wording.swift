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
    /// nil: the language's usual one.
    var footer: String?
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
                    "If that was not you, you do not need to do anything: your password stays as it is. Do not share this link."
                ]),
            "welcome": Wording(
                subject: "Welcome to {{app_name}}!",
                preheader: "Your account is ready.",
                heading: "Welcome, {{user_name}}!",
                before: [
                    "It is good to have you here. Your {{app_name}} account is ready, and you can start right away.",
                    "If you have a question, just look at the app's help.",
                ]),
            "account_verification": Wording(
                subject: "Verify Your {{app_name}} Account",
                preheader: "One step is left: confirm your address.",
                heading: "Confirm your address",
                before: ["Please confirm that this address is yours. Your {{app_name}} account is then complete."],
                button: "Confirm this address",
                after: ["If you did not open an account, just ignore this mail: nothing will happen."]),
            "email_change": Wording(
                subject: "Confirm Your New Address for {{app_name}}",
                preheader: "The address of your {{app_name}} account is to be changed.",
                heading: "Confirm the new address",
                before: [
                    "Someone, hopefully you, wants the address of your {{app_name}} account to be {{email}}.",
                    "Please confirm it. If both addresses were asked, the change is made when both have confirmed it.",
                ],
                button: "Confirm the change",
                after: ["If that was not you, do not confirm it: everything stays as it is."],
                footer: "You receive this mail because a change of address at {{app_name}} concerns this address."),
            "magic_link": Wording(
                subject: "Sign In to {{app_name}}",
                preheader: "Your link to sign in to {{app_name}}.",
                heading: "Sign in",
                before: [
                    "With this link you sign in to {{app_name}} without a password. It works once.",
                    "{{#code}}If you are asked for a code, it is {{code}}.{{/code}}",
                ],
                button: "Sign in",
                after: ["If you did not ask for it, you do not need to do anything. Do not share this link."]),
            "invite": Wording(
                subject: "You Are Invited to {{app_name}}",
                preheader: "Accept the invitation to create your account.",
                heading: "You are invited",
                before: ["You have been invited to {{app_name}}. Accept the invitation to have an account there."],
                button: "Accept the invitation",
                after: ["If you do not want an account, just ignore this mail: nothing will happen."],
                footer: "You receive this mail because somebody invited this address to {{app_name}}."),
            "reauthentication": Wording(
                subject: "Your Code for {{app_name}}",
                preheader: "Confirm that it is you.",
                heading: "Confirm that it is you",
                before: [
                    "A change to your {{app_name}} account needs to be confirmed. Enter this code:",
                    "{{code}}",
                ],
                after: ["If that was not you, tell nobody this code, and choose a new password."]),
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
            "email_change": Wording(
                subject: "Bestätigen Sie Ihre neue Adresse bei {{app_name}}",
                preheader: "Die Adresse Ihres Kontos bei {{app_name}} soll geändert werden.",
                heading: "Neue Adresse bestätigen",
                before: [
                    "Jemand, hoffentlich Sie selbst, möchte, dass zu Ihrem Konto bei {{app_name}} die Adresse {{email}} gehört.",
                    "Bitte bestätigen Sie das. Wurden beide Adressen gefragt, gilt die Änderung, sobald beide sie bestätigt haben.",
                ],
                button: "Änderung bestätigen",
                after: ["Falls Sie das nicht waren, bestätigen Sie es nicht: Alles bleibt, wie es ist."],
                footer:
                    "Sie erhalten diese Nachricht, weil eine Änderung der Adresse bei {{app_name}} diese Adresse betrifft."
            ),
            "magic_link": Wording(
                subject: "Anmelden bei {{app_name}}",
                preheader: "Ihr Link zum Anmelden bei {{app_name}}.",
                heading: "Anmelden",
                before: [
                    "Mit diesem Link melden Sie sich ohne Passwort bei {{app_name}} an. Er gilt einmal.",
                    "{{#code}}Falls Sie nach einem Code gefragt werden: {{code}}.{{/code}}",
                ],
                button: "Anmelden",
                after: ["Falls Sie das nicht waren, müssen Sie nichts tun. Geben Sie diesen Link nicht weiter."]),
            "invite": Wording(
                subject: "Einladung zu {{app_name}}",
                preheader: "Nehmen Sie die Einladung an, und Ihr Konto wird angelegt.",
                heading: "Sie sind eingeladen",
                before: [
                    "Sie wurden zu {{app_name}} eingeladen. Nehmen Sie die Einladung an, um dort ein Konto zu haben."
                ],
                button: "Einladung annehmen",
                after: ["Falls Sie kein Konto möchten, antworten Sie einfach nicht: Es geschieht nichts."],
                footer: "Sie erhalten diese Nachricht, weil jemand diese Adresse zu {{app_name}} eingeladen hat."),
            "reauthentication": Wording(
                subject: "Ihr Code für {{app_name}}",
                preheader: "Bestätigen Sie, dass Sie es sind.",
                heading: "Bestätigen Sie, dass Sie es sind",
                before: [
                    "In Ihrem Konto bei {{app_name}} soll etwas geändert werden, das eine Bestätigung braucht. Geben Sie diesen Code ein:",
                    "{{code}}",
                ],
                after: [
                    "Falls Sie das nicht waren, geben Sie diesen Code nicht weiter, und wählen Sie ein neues Passwort."
                ]),
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
            "email_change": Wording(
                subject: "تأكيد عنوانك الجديد لدى {{app_name}}",
                preheader: "طُلب تغيير عنوان حسابك لدى {{app_name}}.",
                heading: "تأكيد العنوان الجديد",
                before: [
                    "طلب شخص ما، نأمل أن يكون أنت، أن يصبح عنوان حسابك لدى {{app_name}} هو {{email}}.",
                    "يرجى تأكيد ذلك. إذا سُئل العنوانان معًا، فلا يتم التغيير إلا بعد تأكيدهما كليهما.",
                ],
                button: "تأكيد التغيير",
                after: ["إذا لم تكن أنت، فلا تؤكد ذلك: سيبقى كل شيء كما هو."],
                footer: "تصلك هذه الرسالة لأن تغيير عنوان لدى {{app_name}} يتعلق بهذا العنوان."),
            "magic_link": Wording(
                subject: "تسجيل الدخول إلى {{app_name}}",
                preheader: "رابط تسجيل دخولك إلى {{app_name}}.",
                heading: "تسجيل الدخول",
                before: [
                    "بهذا الرابط تسجل دخولك إلى {{app_name}} بلا كلمة مرور. يعمل مرة واحدة فقط.",
                    "{{#code}}إذا طُلب منك رمز، فهو {{code}}.{{/code}}",
                ],
                button: "تسجيل الدخول",
                after: ["إذا لم تطلب ذلك، فلا داعي لفعل أي شيء. لا تشارك هذا الرابط مع أحد."]),
            "invite": Wording(
                subject: "دعوة إلى {{app_name}}",
                preheader: "اقبل الدعوة ليُنشأ حسابك.",
                heading: "أنت مدعو",
                before: ["تمت دعوتك إلى {{app_name}}. اقبل الدعوة ليكون لك حساب هناك."],
                button: "قبول الدعوة",
                after: ["إذا كنت لا تريد حسابًا، فتجاهل هذه الرسالة ولن يحدث شيء."],
                footer: "تصلك هذه الرسالة لأن شخصًا ما دعا هذا العنوان إلى {{app_name}}."),
            "reauthentication": Wording(
                subject: "رمزك لدى {{app_name}}",
                preheader: "أكد أنك أنت.",
                heading: "أكد أنك أنت",
                before: [
                    "طُلب في حسابك لدى {{app_name}} تغيير يحتاج إلى تأكيد. أدخل هذا الرمز:",
                    "{{code}}",
                ],
                after: ["إذا لم تكن أنت، فلا تخبر أحدًا بهذا الرمز، واختر كلمة مرور جديدة."]),
            "account_notification": Wording(
                subject: "إشعار بشأن حسابك",
                preheader: "{{title}}",
                heading: "{{title}}",
                before: ["{{body}}"],
                button: "عرض المزيد", mayLackAddress: true),
        ])
}
