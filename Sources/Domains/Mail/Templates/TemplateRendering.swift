import Postgres
package import RoomKit
import Supervision
import Templates

extension RoomContext {
    /// What renders templates as jobs in a worker that sends no mail.
    /// - Parameter files: who makes files of them; nil: nobody.
    package func rendering(files: TemplateFiles?) -> RoomParts {
        let supervisor = supervisor
        let store = TemplateStore(
            pool: Pool(database, size: 2), hearing: hearing, defaultLocale: settings.string(.locale)
        ) { key, load in try await supervisor.read(key, load) }
        return RoomParts(handlers: [TemplateHandlers.render(store, files: files)], run: { await store.run() })
    }
}
