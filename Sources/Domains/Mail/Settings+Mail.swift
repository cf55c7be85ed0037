import FoundationEssentials
import MillraceJobs
package import PageKit
package import RoomKit
import Signatures
import Supervision

extension Setting {
    package static let mail: [Setting] = [
        emailProvider, emailFrom, emailFromName, appName, emailFallback, resendKey, resendEnabled, resendDomain,
        resendBaseURL,
        resendWebhookSecret, supabaseURL, supabaseAnonKey, supabaseServiceKey, supabaseHookSecret, mailSMTP,
        mailFallbacks, mailRollout, mailInternal, mailExercise, mailTimeout, mailTotal, mailTries, mailDelay,
        mailSenderRate, mailDomainRate, mailResetURL, mailVerifyURL, mailOutbox,
        mailSessions, mailKeep, mailQuota,
    ]

    package static let emailProvider = Setting(
        "email-service-provider", environment: "EMAIL_SERVICE_PROVIDER",
        .choice(["resend", "smtp", "supabase", "outbox"]),
        valueName: "NAME",
        help:
            "Which service sends mail; chosen by what is configured if not given. RESEND_EMAIL_ENABLED wins over resend."
    )
    package static let emailFrom = Setting(
        "email-from-address", environment: "EMAIL_FROM_ADDRESS",
        .custom(expects: "an address such as shop@example.com") { text in
            let parts = text.split(separator: "@", omittingEmptySubsequences: false)
            let isPlain = text.utf8.allSatisfy { $0 > 0x20 && $0 != 0x7f && !"<>(),;:\"\\[]".utf8.contains($0) }
            return parts.count == 2 && !parts[0].isEmpty && parts[1].contains(".") && isPlain
                ? nil : "takes one address such as shop@example.com, without a name"
        }, valueName: "ADDRESS", help: "The sender's address.")
    package static let emailFromName = Setting(
        "email-from-name", environment: "EMAIL_FROM_NAME",
        .custom(expects: "a name without control characters") { text in
            text.utf8.contains { $0 < 0x20 || $0 == 0x7f } || text.contains("<") || text.contains(">")
                ? "takes a name without control characters and angle brackets" : nil
        }, valueName: "NAME", help: "The name shown with that address.")
    package static let appName = Setting(
        "app-name",
        .custom(expects: "a name of at most 100 characters") { text in
            text.count > 100 || text.utf8.contains { $0 < 0x20 || $0 == 0x7f }
                ? "takes a name of at most 100 characters, without control characters" : nil
        }, valueName: "NAME",
        help: "The app's name in templates and on pages behind links; EMAIL_FROM_NAME if not given.")
    package static let emailFallback = Setting(
        "email-fallback-enabled", environment: "EMAIL_FALLBACK_ENABLED", .text, valueName: "true",
        help: "Whether a second service is used when the first one fails; only the value true switches it on.")
    package static let resendKey = Setting(
        "resend-api-key", environment: "RESEND_API_KEY", .text, secrecy: .hidden, valueName: "KEY",
        help: "The key of Resend.")
    package static let resendEnabled = Setting(
        "resend-email-enabled", environment: "RESEND_EMAIL_ENABLED", .text, valueName: "true",
        help: "Whether Resend is used; only the value true switches it on.")
    package static let resendDomain = Setting(
        "resend-domain", environment: "RESEND_DOMAIN", .text, valueName: "DOMAIN",
        help: "The domain that Resend has verified; the sender's address must be in it.")
    package static let resendBaseURL = Setting(
        "resend-base-url", environment: "RESEND_BASE_URL",
        .custom(expects: "a URL such as https://api.resend.com", complaint: webComplaint),
        fallback: "https://api.resend.com", valueName: "URL", help: "The address of Resend.")
    package static let resendWebhookSecret = Setting(
        "resend-webhook-secret", environment: "RESEND_WEBHOOK_SECRET", .text, secrecy: .hidden, valueName: "SECRET",
        help: "The secret with which Resend signs its webhooks: whsec_….")
    package static let supabaseURL = Setting(
        "supabase-url", environment: "SUPABASE_URL",
        .custom(expects: "a URL such as https://x.supabase.co", complaint: webComplaint), valueName: "URL",
        help: "The address of Supabase.")
    package static let supabaseAnonKey = Setting(
        "supabase-anon-key", environment: "SUPABASE_ANON_KEY", .text, secrecy: .hidden, valueName: "KEY",
        help: "The public key of Supabase.")
    package static let supabaseServiceKey = Setting(
        "supabase-service-role-key", environment: "SUPABASE_SERVICE_ROLE_KEY", .text, secrecy: .hidden,
        valueName: "KEY", help: "Supabase's service-role key, which may do everything.")
    package static let supabaseHookSecret = Setting(
        "supabase-hook-secret", environment: "SUPABASE_HOOK_SECRET", .text, secrecy: .hidden, valueName: "SECRET",
        help: "The secret with which Supabase signs its requests to send mail.")
    package static let mailSMTP = Setting(
        "mail-smtp-url",
        .custom(expects: SMTPAddress.expectation) { text in
            SMTPAddress(text) == nil ? "takes \(SMTPAddress.expectation)" : nil
        }, secrecy: .hidden, valueName: "URL", help: "The mail server to send through.")
    package static let mailFallbacks = Setting(
        "mail-fallbacks",
        .custom(expects: "services such as smtp,supabase") { text in
            ListText.items(text).allSatisfy { ["resend", "smtp", "supabase"].contains($0) }
                ? nil : "takes a list of resend, smtp and supabase"
        }, fallback: "smtp,supabase", valueName: "NAMES",
        help: "The services to use when the first one fails, in order.")
    package static let mailRollout = Setting(
        "mail-rollout", .integer(0...100), fallback: "100", valueName: "PERCENT",
        help:
            "The share of recipients whose mail goes through the chosen service, the rest through the fallbacks; the flag mail.rollout in the database wins."
    )
    package static let mailInternal = Setting(
        "mail-internal", .text, valueName: "ADDRESSES",
        help: "Addresses whose mail goes through the chosen service at any share, separated by commas.")
    package static let mailExercise = Setting(
        "mail-exercise", .integer(0...50), fallback: "1", valueName: "PERCENT",
        help:
            "The share of mail that goes through the fallback although nothing is wrong; only between resend and smtp.")
    package static let mailTimeout = Setting(
        "mail-timeout", .duration(.milliseconds(100) ... .seconds(600)), fallback: "30s", valueName: "DURATION",
        help: "How long one request may take.")
    package static let mailTotal = Setting(
        "mail-total", .duration(.milliseconds(100) ... .seconds(3600)), fallback: "60s", valueName: "DURATION",
        help: "How long one run may work on a message.")
    package static let mailKeep = Setting(
        "mail-keep", .duration(.seconds(3600) ... .seconds(315_360_000)), fallback: "90d", valueName: "DURATION",
        help: "How long the contents of messages and the providers' events about them are kept.")
    package static let mailQuota = Setting(
        "mail-quota", .integer(1...1_000_000_000), valueName: "N",
        help:
            "Messages that the provider takes in a day (or month, if it counts so); the last tenth is kept for high and urgent mail."
    )
    package static let mailTries = Setting(
        "mail-tries", .integer(1...20), fallback: "3", valueName: "N",
        help: "Attempts within one run; the job's own attempts come on top.")
    package static let mailDelay = Setting(
        "mail-delay", .duration(.milliseconds(1) ... .seconds(600)), fallback: "2s", valueName: "DURATION",
        help: "The pause between the attempts of a run.")
    package static let mailSenderRate = rate(
        "mail-sender-rate", fallback: "60/1m",
        "Messages that one sender may have sent; those that say none are not counted.")
    package static let mailDomainRate = rate(
        "mail-domain-rate", fallback: nil, "Messages to one domain of recipients.")
    package static let mailResetURL = link("mail-reset-url", "The page that takes a password reset's token.")
    package static let mailVerifyURL = link("mail-verify-url", "The page that takes an account verification's token.")
    package static let mailOutbox = Setting(
        "mail-outbox", .path, valueName: "DIR",
        help: "The directory for the outbox's .eml files; the folder outbox in MILLRACE_DIR if not given.")
    package static let mailSessions = Setting(
        "mail-smtp-sessions", .integer(1...100), fallback: "4", valueName: "N",
        help: "How many messages one worker sends to the mail server at a time.")

    private static func rate(_ name: String, fallback: String?, _ help: String) -> Setting {
        Setting(
            name,
            .custom(expects: "a count and a span such as 60/1m") { text in
                RateText.read(text) == nil ? "takes a count and a span such as 60/1m" : nil
            }, fallback: fallback, valueName: "N/SPAN", help: help)
    }

    private static func link(_ name: String, _ help: String) -> Setting {
        Setting(
            name,
            .custom(expects: "a URL with {token} in it") { text in
                webComplaint(text) == nil && text.contains("{token}")
                    ? nil : "takes a URL with {token} in it, such as https://app.example.com/reset?token={token}"
            }, valueName: "URL", help: help)
    }
}

extension Settings {
    /// Which service sends mail, and why that one.
    package var mailChoice: (provider: String, why: String) {
        if let given = text(.emailProvider) {
            guard given == "resend", isResendSwitchedOff else { return (given, "EMAIL_SERVICE_PROVIDER says so") }
            let why = "RESEND_EMAIL_ENABLED is not exactly true, which wins over EMAIL_SERVICE_PROVIDER=resend"
            let other = ListText.items(text(.mailFallbacks) ?? "").first { $0 != "resend" && isUsable($0) }
            return (other ?? "outbox", why)
        }
        if text(.resendKey) != nil, text(.resendEnabled) == "true" {
            return ("resend", "RESEND_API_KEY is set and RESEND_EMAIL_ENABLED is true")
        }
        if text(.mailSMTP) != nil { return ("smtp", "MILLRACE_MAIL_SMTP_URL is there") }
        if hasSupabase { return ("supabase", "Supabase's keys are set") }
        return ("outbox", "no other service is configured")
    }

    /// The flag counts only if it is exactly true, whatever else is set.
    private var isResendSwitchedOff: Bool { text(.resendEnabled) != "true" }

    /// The share of the chosen service; below 100 some recipients go by the fallbacks.
    private var rolloutPercent: Int { text(.mailRollout).flatMap { Int($0) } ?? 100 }

    package var outboxDirectory: String { text(.mailOutbox) ?? (text(.directory) ?? ".millrace") + "/outbox" }

    package var hasSupabase: Bool {
        text(.supabaseURL) != nil && (text(.supabaseServiceKey) ?? text(.supabaseAnonKey)) != nil
    }

    /// Those that can be used as well, in the order in which they were given; none unless the flag says exactly true.
    package var mailFallbackNames: [String] {
        guard text(.emailFallback) == "true" else { return [] }
        return ListText.items(text(.mailFallbacks) ?? "").filter { isUsable($0) }
    }

    private func isUsable(_ name: String) -> Bool {
        switch name {
        case "resend": text(.resendKey) != nil && text(.resendEnabled) == "true"
        case "smtp": text(.mailSMTP) != nil
        case "supabase": hasSupabase
        default: false
        }
    }

    /// Warns of settings that may be meant differently; a mistake that would stop mail is a problem.
    package mutating func judgeMail() {
        if text(.resendKey) != nil, text(.resendEnabled) != "true" {
            warnings.append(
                "RESEND_API_KEY is set, and Resend is not used: RESEND_EMAIL_ENABLED is not exactly true")
        }
        if let flag = text(.emailFallback), flag != "true", flag != "false" {
            warnings.append("EMAIL_FALLBACK_ENABLED is neither true nor false: only exactly true is on")
        }
        let choice = mailChoice.provider
        if text(.emailProvider) == "resend", isResendSwitchedOff {
            if choice == "outbox" {
                problems.append(
                    "EMAIL_SERVICE_PROVIDER is resend, RESEND_EMAIL_ENABLED is not exactly true, and no other service is configured: set RESEND_EMAIL_ENABLED=true, or configure smtp or supabase"
                )
            } else {
                warnings.append(
                    "EMAIL_SERVICE_PROVIDER is resend, and RESEND_EMAIL_ENABLED is not exactly true: mail goes through \(choice)"
                )
            }
        }
        judgeRollout()
        if choice == "resend", text(.resendKey) == nil {
            problems.append("EMAIL_SERVICE_PROVIDER is resend, and RESEND_API_KEY is not set")
        }
        if choice == "smtp", text(.mailSMTP) == nil {
            problems.append("EMAIL_SERVICE_PROVIDER is smtp, and MILLRACE_MAIL_SMTP_URL is not set")
        }
        if choice == "supabase", !hasSupabase {
            problems.append("EMAIL_SERVICE_PROVIDER is supabase, and SUPABASE_URL or its keys are not set")
        }
        if ["resend", "smtp"].contains(choice), text(.emailFrom) == nil {
            problems.append("mail goes through \(choice), and EMAIL_FROM_ADDRESS is not set")
        }
        if choice == "resend", let domain = text(.resendDomain), let from = text(.emailFrom),
            !from.lowercased().hasSuffix("@\(domain.lowercased())")
        {
            problems.append("EMAIL_FROM_ADDRESS is not in RESEND_DOMAIN, and Resend refuses that")
        }
        if text(.publicURL) != nil, text(.secret) == nil {
            warnings.append(
                "MILLRACE_PUBLIC_URL is set without MILLRACE_SECRET: links cannot be signed, and marketing mail fails")
        }
    }

    private mutating func judgeRollout() {
        let percent = rolloutPercent  // what is not a number is a problem already
        guard percent < 100 else { return }
        let choice = mailChoice.provider
        let fallbacks = mailFallbackNames.filter { $0 != choice }
        if fallbacks.isEmpty {
            warnings.append(
                "MILLRACE_MAIL_ROLLOUT is \(percent), and there is no fallback: all mail goes through \(choice)"
            )
        } else if fallbacks == ["supabase"] {
            warnings.append(
                "MILLRACE_MAIL_ROLLOUT is \(percent), and Supabase, the only fallback, sends password resets and verifications alone: all other mail goes through \(choice)"
            )
        }
    }

    /// Who runs the service, as the people behind a link read it.
    package var pageHost: PageHost {
        PageHost(
            name: text(.appName) ?? text(.emailFromName), contact: text(.contactAddress),
            emergency: text(.emergencyNumber))
    }

    /// The options of the mail service.
    package var mailOptions: MailOptions {
        var options = MailOptions()
        let choice = mailChoice.provider
        options.from = Mailbox(
            name: text(.emailFromName), address: text(.emailFrom) ?? "millrace@localhost.invalid")
        options.appName = text(.appName) ?? text(.emailFromName)
        options.resetURL = text(.mailResetURL)
        options.verifyURL = text(.mailVerifyURL)
        options.timeout = duration(.mailTimeout)
        options.total = duration(.mailTotal)
        options.keep = duration(.mailKeep)
        options.quota = text(.mailQuota).flatMap { Int64($0) }
        options.sendRules.tries = integer(.mailTries)
        options.sendRules.delay = duration(.mailDelay)
        options.senderRate = text(.mailSenderRate).flatMap(Self.rate)
        options.domainRate = text(.mailDomainRate).flatMap(Self.rate)
        options.routes = Routes(chosen: choice, fallbacks: mailFallbackNames)
        options.routes.rollout.percent = integer(.mailRollout)
        options.routes.rollout.always = Set(
            ListText.items(text(.mailInternal) ?? "").map { $0.lowercased() })
        options.routes.exercise.percent = integer(.mailExercise)
        options.links = links
        return options
    }

    private static func rate(_ text: String) -> MailOptions.Rate? {
        RateText.read(text).map { MailOptions.Rate(count: $0.count, span: $0.per) }
    }
}
