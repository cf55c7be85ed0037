package import Mail
import MillraceMail
package import Postgres
package import Supervision
package import Telemetry
package import Templates

/// The mail room as this executable puts it together.
package struct MailWiring {
    package let service: MailService
    private let templates: TemplateStore

    package init(
        providers: [any MailProvider], templates: TemplateStore, settings: Settings, pool: Pool, supervisor: Supervisor,
        log: Log
    ) {
        self.templates = templates
        service = MailService(
            pool: pool, options: settings.mailOptions, providers: providers, renderer: TemplateWords(store: templates),
            supervisor: supervisor, log: log)
    }

    /// What goes on beside the jobs, until cancelled: silent messages are asked about, and templates that change are heard of.
    package func run() async {
        async let _: Void = templates.run()
        await service.watch()
    }
}
