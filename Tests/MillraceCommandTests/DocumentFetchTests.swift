import BlobKit
import Blobs
import Postgres
import TestSupport
import Testing

@testable import Documents

/// Copies of documents from elsewhere, and when none are made.
@Suite struct DocumentFetchTests {
    @Test func `while nothing may be fetched a fetch says when it may, and the document has not failed`() async throws {
        try await withDatabase(.movableClock) { database in
            let connection = try await database.connect()
            let pool = Pool(database.options, size: 2)
            let outage = try await ProviderOutage(of: "documents", in: database, on: connection)
            let fetch = DocumentFetch(supervisor: outage.supervisor, directories: DocumentDirectories())
            let store = BlobPlace.postgres.store(pool: pool)
            let refusal = await #expect(throws: FetchRefusal.self) {
                _ = try await fetch("https://nowhere.invalid/x", 10, store)
            }
            #expect(refusal.map { $0.wait > .zero && $0.wait <= .seconds(60) } == true)
            await pool.close()
            await connection.close()
        }
    }
}
