public import Foundation
public import GRDB
public import MillraceApp

/// A document as a list shows it, with or without a network.
public struct CachedDocument: Codable, Sendable, Hashable, Identifiable, FetchableRecord, PersistableRecord {
    /// Its table.
    public static let databaseTableName = "document"

    /// As at the gateway.
    public let id: UUID
    /// What people call it.
    public var title: String?
    /// How far it is.
    public var status: String
    /// How many it has.
    public var pages: Int?
    /// When it was registered.
    public var createdAt: Date?

    init(_ document: Document) {
        (id, title, status) = (document.id, document.title, document.status.rawValue)
        (pages, createdAt) = (document.pages, document.createdAt)
    }
}

/// One person's documents, which the feed keeps as the gateway has them.
///
/// The state is read once, when the stream says that it is open. From then on each change and its position are one transaction, so that a
/// cache whose app was killed goes on behind the last change that is in it. A change is read again rather than applied: then it does not
/// matter that one may come twice.
public struct DocumentCache: Sendable {
    /// For the app's own reads, and for observing them.
    public let database: any DatabaseWriter

    /// Makes the tables that are missing.
    public init(_ database: any DatabaseWriter) throws {
        self.database = database
        var migrator = DatabaseMigrator()
        migrator.registerMigration("1") { db in
            try db.create(table: "document") { table in
                table.primaryKey("id", .blob)
                table.column("title", .text)
                table.column("status", .text).notNull()
                table.column("pages", .integer)
                table.column("createdAt", .datetime)
            }
            // One row: up to where the feed is in the tables.
            try db.create(table: "place") { table in
                table.primaryKey("one", .integer).check { $0 == 1 }
                table.column("position", .integer).notNull()
            }
        }
        try migrator.migrate(database)
    }

    /// The newest first, now and after each change.
    public func documents() -> some AsyncSequence<[CachedDocument], any Error> {
        ValueObservation.tracking { db in
            try CachedDocument.order(Column("createdAt").desc, Column("id")).fetchAll(db)
        }.removeDuplicates().values(in: database)
    }

    /// Until it is cancelled. The stream connects again by itself, for as long as there is no network.
    public func follow(_ client: AppClient) async throws {
        let known = try await position()
        for try await event in client.feed.changes(.documents, since: known) {
            switch event {
            case .ready(let position):
                if known == nil { try await readAll(client, upTo: position) }
            case .reset(let position): try await readAll(client, upTo: position)
            case .change(let change): try await take(change, client)
            }
        }
    }

    func position() async throws -> Int64? {
        try await database.read { db in try Int64.fetchOne(db, sql: "select position from place") }
    }

    private func readAll(_ client: AppClient, upTo position: Int64) async throws {
        var found: [Document] = []
        var filter = DocumentFilter()
        while true {
            let page = try await client.documents.documents(filter)
            found += page
            guard page.count == filter.limit, let last = page.last else { break }
            filter.after = last.id
        }
        let documents = found.map(CachedDocument.init)
        try await database.write { db in
            try CachedDocument.deleteAll(db)
            for document in documents { try document.upsert(db) }
            try Self.note(position, db)
        }
    }

    private func take(_ change: FeedChange, _ client: AppClient) async throws {
        guard change.topic == FeedTopic.documents.rawValue, let id = UUID(uuidString: change.ref) else { return }
        let now = try await document(id, client)
        try await database.write { db in
            if let now, now.status != .deleted {
                try CachedDocument(now).upsert(db)
            } else {
                try CachedDocument.deleteOne(db, key: id)
            }
            try Self.note(change.seq, db)
        }
    }

    /// nil: it is not there any more.
    private func document(_ id: UUID, _ client: AppClient) async throws -> Document? {
        do {
            return try await client.documents.document(id)
        } catch let error as AppError where error.kind == .notFound {
            return nil
        }
    }

    private static func note(_ position: Int64, _ db: Database) throws {
        try db.execute(
            sql:
                "insert into place (one, position) values (1, ?) on conflict (one) do update set position = excluded.position",
            arguments: [position])
    }
}
