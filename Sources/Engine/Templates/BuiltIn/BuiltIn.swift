/// The templates that exist before any is published: one layout, and the words of each in each language.
package enum BuiltIn {
    package static let names = [
        "account_notification", "account_verification", "email_change", "invite", "magic_link", "password_reset",
        "reauthentication", "welcome",
    ]
    package static let locales = ["ar", "de", "en"]

    private static let sources: [String: MailSource] = {
        var sources: [String: MailSource] = [:]
        for language in TemplateLanguage.all {
            for name in names {
                guard let wording = language.wordings[name] else { continue }
                sources["\(name)/\(language.locale)"] = source(name, wording, language)
            }
        }
        return sources
    }()

    /// In the first of the locales that it exists in.
    package static func source(_ name: String, locales wanted: [String]) -> MailSource? {
        for locale in wanted {
            if let source = sources["\(name)/\(locale)"] { return source }
        }
        return nil
    }

    private static func variables(_ name: String) -> String {
        let app = #""app_name": {"type": "text", "required": true, "max": 100}"#
        let url = #""url": {"type": "url", "required": true, "max": 2000}"#
        return switch name {
        case "password_reset": #"{\#(app), \#(url), "expires": {"type": "text", "max": 100}}"#
        case "welcome": #"{\#(app), "user_name": {"type": "text", "required": true, "max": 100}}"#
        case "account_verification", "invite": "{\(app), \(url)}"
        case "magic_link": #"{\#(app), \#(url), "code": {"type": "text", "max": 100}}"#
        case "email_change": #"{\#(app), \#(url), "email": {"type": "text", "required": true, "max": 320}}"#
        case "reauthentication": #"{\#(app), "code": {"type": "text", "required": true, "max": 100}}"#
        default:
            #"{\#(app), "title": {"type": "text", "required": true, "max": 200}, "body": {"type": "text", "required": true, "max": 10000}, "url": {"type": "url", "max": 2000}}"#
        }
    }

    private static func source(_ name: String, _ wording: Wording, _ language: TemplateLanguage) -> MailSource {
        MailSource(
            name: name, locale: language.locale, version: 0, subject: wording.subject,
            html: html(wording, language), plain: plain(wording, language), variables: Array(variables(name).utf8))
    }

    private static func html(_ wording: Wording, _ language: TemplateLanguage) -> String {
        let side = LocaleChain.isRightToLeft(language.locale) ? "right" : "left"
        func paragraphs(_ texts: [String]) -> String {
            texts.map { text in
                let (opening, inner, closing) = parted(text)
                return opening
                    + #"<p class="text" style="margin:0 0 16px; font-size:16px; line-height:24px; color:#2c3742; white-space:pre-line;">"#
                    + isolated(inner) + "</p>" + closing + "\n"
            }.joined()
        }
        var action = ""
        if let button = wording.button {
            action = filled(
                String(decoding: PackageResources.action_html, as: UTF8.self),
                ["button": button, "hint": language.hint, "side": side])
            if wording.mayLackAddress { action = "{{#url}}\n" + action + "{{/url}}\n" }
        }
        return filled(
            String(decoding: PackageResources.layout_html, as: UTF8.self),
            [
                "lang": language.locale, "dir": side == "right" ? "rtl" : "ltr", "side": side,
                "title": wording.subject, "preheader": isolated(wording.preheader),
                // Without the padding, mail lists would show the beginning of the mail after a short preheader.
                "padding": String(repeating: "&#847;&zwnj;&nbsp;", count: 40),
                "heading": isolated(wording.heading), "before": paragraphs(wording.before), "action": action,
                "after": paragraphs(wording.after), "footer": isolated(wording.footer ?? language.footer),
            ])
    }

    private static func plain(_ wording: Wording, _ language: TemplateLanguage) -> String {
        var blocks = [wording.heading] + wording.before
        if wording.button != nil { blocks.append(wording.mayLackAddress ? "{{#url}}{{url}}{{/url}}" : "{{url}}") }
        return (blocks + wording.after).map { block in
            let (opening, inner, closing) = parted(block)
            // On lines of their own, a section's tags leave no empty line behind.
            return opening.isEmpty ? inner + "\n\n" : "\(opening)\n\(inner)\n\n\(closing)\n"
        }.joined() + "-- \n" + (wording.footer ?? language.footer) + "\n"
    }

    /// Splits a text that is one section as a whole, so that the section's tags surround the paragraph.
    private static func parted(_ text: String) -> (opening: String, inner: String, closing: String) {
        guard text.hasPrefix("{{#"), text.hasSuffix("}}"), let end = text.firstRange(of: "}}"),
            let close = text.ranges(of: "{{/").last
        else { return ("", text, "") }
        return (
            String(text[..<end.upperBound]), String(text[end.upperBound..<close.lowerBound]),
            String(text[close.lowerBound...])
        )
    }

    /// Names may be in any script: isolated, they do not change the direction of the sentence.
    private static func isolated(_ text: String) -> String {
        ["app_name", "user_name", "title", "body", "expires", "email", "code"].reduce(text) {
            $0.replacing("{{\($1)}}", with: "<bdi>{{\($1)}}</bdi>")
        }
    }

    private static func filled(_ layout: String, _ values: [String: String]) -> String {
        values.reduce(layout) { $0.replacing("%\($1.key)%", with: $1.value) }
    }
}
