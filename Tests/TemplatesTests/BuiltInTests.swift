import Templates
import Testing

@Suite struct BuiltInTests {
    static let data: TemplateValue = [
        "app_name": "Joanie & Co", "user_name": "Ada <Lovelace>", "url": "https://app.example/reset?token=a&b=1",
        "expires": "18:30", "title": "New sign-in", "body": "Somebody signed in.\nWas it you?", "code": "314159",
        "email": "ada@example.org",
    ]
    static let all = BuiltIn.names.flatMap { name in BuiltIn.locales.map { (name, $0) } }

    @Test(arguments: all) func `a built-in template is without findings and renders whole`(
        _ name: String, _ locale: String
    ) throws {
        let source = try #require(BuiltIn.source(name, locales: [locale]))
        #expect(source.name == name && source.locale == locale && source.version == 0)
        #expect(Lint.findings(source).isEmpty, "\(Lint.findings(source))")
        let mail = try MailTemplate(source).render(Self.data)
        let html = try #require(mail.html)
        #expect(html.utf8.count < 102 * 1024)
        let isRightToLeft = locale == "ar"
        #expect(html.contains("<html lang=\"\(locale)\" dir=\"\(isRightToLeft ? "rtl" : "ltr")\">"))
        #expect(html.contains("prefers-color-scheme: dark") && html.contains("name=\"color-scheme\""))
        #expect(html.contains("Joanie &amp; Co") && mail.text.contains("Joanie & Co"))
        #expect(!html.contains("{{") && !html.contains("%") || html.contains("width=\"100%\""))
        for rest in ["%lang%", "%dir%", "%side%", "%before%", "%after%", "%action%", "%hint%", "%button%", "%padding%"]
        {
            #expect(!html.contains(rest))
        }
        #expect(!mail.text.contains("<bdi>") && !mail.subject.contains("{") && !mail.text.contains("\n\n\n"))
        if !["reauthentication", "welcome"].contains(name) {
            #expect(html.contains("href=\"https://app.example/reset?token=a&amp;b=1\""))
            #expect(mail.text.contains("https://app.example/reset?token=a&b=1"))
        }
    }

    @Test func `the subjects are those that were promised`() throws {
        for (name, subject) in [
            ("password_reset", "Reset Your A Password"), ("welcome", "Welcome to A!"),
            ("account_verification", "Verify Your A Account"), ("account_notification", "Account Notification"),
            ("email_change", "Confirm Your New Address for A"), ("invite", "You Are Invited to A"),
            ("magic_link", "Sign In to A"), ("reauthentication", "Your Code for A"),
        ] {
            let template = try MailTemplate(try #require(BuiltIn.source(name, locales: ["fr", "en"])))
            let data: TemplateValue = [
                "app_name": "A", "user_name": "B", "url": "https://a.example", "title": "T", "body": "B",
                "code": "1", "email": "a@b.example",
            ]
            #expect(try template.render(data).subject == subject)
        }
    }

    @Test func `what is optional may be left out, and nothing else`() throws {
        let notice = try MailTemplate(try #require(BuiltIn.source("account_notification", locales: ["en"])))
        let mail = try notice.render(["app_name": "A", "title": "T", "body": "B"])
        #expect(mail.html?.contains("<a ") == false && !mail.text.contains("\n\n\n"))
        let reset = try MailTemplate(try #require(BuiltIn.source("password_reset", locales: ["en"])))
        let timeless = try reset.render(["app_name": "A", "url": "https://a.example"])
        #expect(!timeless.text.contains("until") && !timeless.text.contains("\n\n\n"))
        let link = try MailTemplate(try #require(BuiltIn.source("magic_link", locales: ["en"])))
        let codeless = try link.render(["app_name": "A", "url": "https://a.example"])
        #expect(!codeless.text.contains("code") && !codeless.text.contains("\n\n\n"))
        for (name, data, missing) in [
            ("password_reset", ["app_name": "A"], "url"), ("welcome", ["app_name": "A"], "user_name"),
            ("account_verification", ["url": "https://a.example"], "app_name"),
            ("account_notification", ["app_name": "A", "title": "T"], "body"),
            ("reauthentication", ["app_name": "A"], "code"),
            ("email_change", ["app_name": "A", "url": "https://a.example"], "email"),
        ] as [(String, TemplateValue, String)] {
            let error = #expect(throws: TemplateError.self) {
                try MailTemplate(try #require(BuiltIn.source(name, locales: ["en"]))).render(data)
            }
            #expect(error?.variable == missing)
        }
    }
}
