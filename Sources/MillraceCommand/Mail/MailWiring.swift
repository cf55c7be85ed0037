import Mail
import MillraceMail
import Postgres
import Supervision
import Templates

/// The mail room as this executable puts it together.
struct MailWiring {
    let post: Post
    private let templates: TemplateStore

    init(carriers: [any Carrier], templates: TemplateStore, settings: Settings, pool: Pool, supervisor: Supervisor) {
        self.templates = templates
        post = Post(
            pool: pool, options: settings.mailOptions, carriers: carriers, renderer: TemplateWords(store: templates),
            supervisor: supervisor, log: settings.log)
    }

    /// What goes on beside the jobs, until cancelled: silent messages are asked about, and templates that change are heard of.
    func run() async {
        async let _: Void = templates.run()
        await post.watch()
    }
}
