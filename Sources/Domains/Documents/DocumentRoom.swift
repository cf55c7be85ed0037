import Postgres
package import RoomKit
import RoomSchemas

extension Room {
    /// Files, their pages, and what was read on them.
    package static let documents = Room(
        RoomSchemas.documents, settings: Setting.documents,
        nouns: [
            "documents": "Hand in documents, follow how they are read, search and fetch what came of it",
            "documents defaults": "Say how a tenant's documents are read, where they say nothing themselves",
        ],
        verbs: [
            .documentsSubmit, .documentsList, .documentsShow, .documentsWatch, .documentsText, .documentsSearch,
            .documentsFetch, .documentsRetry, .documentsDelete, .documentsDefaultsShow, .documentsDefaultsSet,
            .documentsDefaultsClear,
        ],
        checks: [
            RoomCheck("documents", needsSchema: false) { (invocation, _) async throws(PostgresError) in
                DocumentCheck.judge(invocation.workshop)
            },
            RoomCheck("sandbox", needsSchema: false) { (invocation, _) async throws(PostgresError) in
                await DocumentCheck.judgeSandbox(invocation.workshop)
            },
        ], status: .documents
    ) { context in
        guard let wiring = context.documents() else { return RoomParts() }
        return RoomParts(
            handlers: wiring.handlers, bounds: DocumentWiring.bounds(slots: context.settings.slots),
            run: { await wiring.service.run() })
    }
}
