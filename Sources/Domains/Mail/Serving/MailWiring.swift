import Postgres
import RoomKit
import Supervision
import Telemetry
import Templates
import Workers

/// How mail is sent in one worker.
struct MailWiring {
    let service: MailService
    private let templates: TemplateStore
    /// Who makes files of templates; nil where documents are not read either.
    private let files: TemplateFiles?

    init(
        _ settings: Settings, pool: Pool, hearing: NotificationHub? = nil, supervisor: Supervisor, log: Log,
        files: TemplateFiles? = nil
    ) throws {
        let templates = TemplateStore(pool: pool, hearing: hearing, defaultLocale: settings.string(.locale)) {
            key, load in try await supervisor.read(key, load)
        }
        let providers = try settings.mailProviders(pool: pool)
        self.templates = templates
        self.files = files
        service = MailService(
            pool: pool, options: settings.mailOptions, providers: providers, renderer: TemplateWords(store: templates),
            supervisor: supervisor, log: log)
    }

    /// The mail kinds, and templates that are rendered for others.
    func handlers(slots: Int) -> [Handler] {
        MailHandlers.of(service, slots: slots) + [TemplateHandlers.render(templates, files: files)]
    }

    /// The work beside the jobs, until cancelled: asks about silent messages, and follows changes of templates.
    func run() async {
        async let _: Void = templates.run()
        await service.run()
    }
}
