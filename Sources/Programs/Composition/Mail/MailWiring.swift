package import Mail
import MillraceMail
package import Postgres
package import Supervision
package import Telemetry
package import Templates
package import Workers

/// The mail room as this executable puts it together.
package struct MailWiring {
    package let post: MailService
    private let templates: TemplateStore

    package init(
        carriers: [any MailProvider], templates: TemplateStore, settings: Settings, pool: Pool, supervisor: Supervisor,
        log: Log
    ) {
        self.templates = templates
        post = MailService(
            pool: pool, options: settings.mailOptions, carriers: carriers, renderer: TemplateWords(store: templates),
            supervisor: supervisor, log: log)
    }

    /// The mail kinds, and templates that are rendered for others.
    package func handlers(slots: Int) -> [Handler] {
        MailHandlers.of(post, slots: slots) + [TemplateHandlers.render(templates)]
    }

    /// What goes on beside the jobs, until cancelled: silent messages are asked about, and templates that change are heard of.
    package func run() async {
        async let _: Void = templates.run()
        await post.watch()
    }
}
