package import Mail
package import MillraceMail
package import Postgres
package import Supervision
package import Telemetry
package import Templates
package import Workers

/// The mail room as this executable puts it together.
package struct MailWiring {
    package let service: MailService
    private let templates: TemplateStore
    /// Who makes files of templates; nil where documents are not read either.
    private let files: TemplateFiles?

    package init(
        providers: [any MailProvider], templates: TemplateStore, files: TemplateFiles? = nil, settings: Settings,
        pool: Pool, supervisor: Supervisor, log: Log
    ) {
        self.templates = templates
        self.files = files
        service = MailService(
            pool: pool, options: settings.mailOptions, providers: providers, renderer: TemplateWords(store: templates),
            supervisor: supervisor, log: log)
    }

    /// The mail kinds, and templates that are rendered for others.
    package func handlers(slots: Int) -> [Handler] {
        MailHandlers.of(service, slots: slots) + [TemplateHandlers.render(templates, files: files)]
    }

    /// The work beside the jobs, until cancelled: asks about silent messages, and follows changes of templates.
    package func run() async {
        async let _: Void = templates.run()
        await service.run()
    }
}
