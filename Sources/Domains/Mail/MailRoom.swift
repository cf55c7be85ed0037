import MillraceQueues
import Postgres
package import RoomKit
import RoomSchemas
import Telemetry

extension Room {
    /// Mails and what became of them.
    /// - Parameter files: who makes files of templates in this worker; nil: nobody.
    package static func mail(files: @escaping @Sendable (RoomContext) -> TemplateFiles?) -> Room {
        Room(
            RoomSchemas.mail, settings: Setting.mail, judge: { $0.judgeMail() },
            nouns: ["mail": "Send mail, see what became of it, and who gets none"],
            verbs: [
                .mailSend, .mailList, .mailShow, .mailAudit, .mailPreview, .mailCancel, .mailResolve, .mailSuppress,
                .mailReconcile, .mailErase, .mailDoctor,
            ], status: .mail
        ) { context in
            let settings = context.settings
            let wiring = try MailWiring(
                settings, pool: Pool(context.database, size: 8), hearing: context.hearing,
                supervisor: context.supervisor, log: context.log, files: files(context))
            context.tellOfMailFiles()
            return RoomParts(
                handlers: wiring.handlers(slots: settings.slots), bounds: MailHandlers.bounds(slots: settings.slots),
                routes: try MailRoutes(pool: context.pool, settings: settings, log: context.log).all,
                run: { await wiring.run() }, gauges: { await wiring.service.tally.gauges },
                serves: [
                    "mail": settings.lacksMailService ? RoomRow.filesByDefault : settings.mailChoice.provider
                ])
        }
    }

    /// Texts of mails, and their versions.
    package static let templates = Room(
        RoomSchemas.templates, nouns: ["templates": "Write, check, publish and render mail templates"],
        verbs: [
            .templatesList, .templatesShow, .templatesRender, .templatesLint, .templatesPublish, .templatesUse,
            .templatesDiff,
        ])
}

extension Settings {
    /// Nobody has said by which service mail goes.
    package var lacksMailService: Bool { mailChoice.provider == "outbox" && text(.emailProvider) == nil }
}

extension RoomContext {
    /// Logs at the start where mail goes when no service takes it: as a warning, unless that was configured.
    fileprivate func tellOfMailFiles() {
        guard settings.mailChoice.provider == "outbox" else { return }
        let place = ("mail.outbox", settings.outboxDirectory)
        guard settings.lacksMailService else {
            return log.info("messages are written to files, as EMAIL_SERVICE_PROVIDER says", [place])
        }
        log.warning(
            "no mail service is configured: messages are written to files and reach nobody",
            [
                place,
                (
                    "hint",
                    "set RESEND_API_KEY, MILLRACE_MAIL_SMTP_URL or EMAIL_SERVICE_PROVIDER; outbox if you want files"
                ),
            ])
    }
}
