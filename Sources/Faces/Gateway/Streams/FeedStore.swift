import Listeners
import Postgres
import Threads

/// The SQL of streams. What concerns a caller is asked as the caller; the cursor reads with the gateway's own login.
struct FeedStore: Sendable {
    let database: GatewayDatabase
    private let turns = Turns(atOnce: 1, waiting: 64, patience: Self.patience)
    private let allTurns = Turns(atOnce: 4, waiting: .max, patience: Self.patience)
    /// Of a catch-up.
    static let page = 200
    /// Of the cursor.
    static let cursorPage = 1000
    /// How long a catch-up waits for its turn: a person has one at a time, and all persons together have a few.
    static let patience = Duration.seconds(60)

    init(database: GatewayDatabase) {
        self.database = database
    }

    /// The last number given out, and the lowest position from which nothing is lost.
    struct Bounds: Sendable {
        var newest: Int64
        var oldest: Int64
    }

    /// What came after a position, of everybody.
    func new(after position: Int64, on connection: Connection) async throws(PostgresError) -> [FeedEntry] {
        try await connection.query(
            """
            select f.seq, to_char(f.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), f.topic, f.ref, f.change, f.data::text, f.lesson, f.at > now() - interval '1 min', f.persons, f.tenant
              from millrace.feed_next($1, $2) f order by f.seq
            """, [.int8(position), .int4(Int32(Self.cursorPage))], deadline: .seconds(30)
        ) { row throws(PostgresError) in
            let tenant = row.optionalString(9)
            guard !row.isNull(8) else {
                return try Self.entry(
                    row, owners: tenant.map { [FeedOwner(kind: .tenant, name: $0)] } ?? [], tenant: nil)
            }
            return try Self.entry(
                row, owners: try row.strings(8).map { FeedOwner(kind: .person, name: $0) }, tenant: tenant)
        }
    }

    /// The bounds as any person would be told them.
    func bounds(on connection: Connection) async throws -> Bounds {
        // Nobody in particular: it is asked in the clients' role, which needs a person.
        let nobody = Statement(
            "select set_config('role', $1, true), set_config('request.jwt.claims', $2, true)",
            [.text(database.role), .text(#"{"sub":"gateway"}"#)])
        let found = try await connection.transaction(of: [nobody, Self.bounds]) { index, row throws(PostgresError) in
            index == 0 ? nil : try Self.bounds(row)
        }
        guard let bounds = found.last?.first ?? nil else { throw ErrorAnswer.awayFeed }
        return bounds
    }

    /// The caller's own entries after a position, at most a page.
    func mine(
        after position: Int64, topics: [String]?, as caller: GatewayCaller
    ) async throws -> (entries: [FeedEntry], bounds: Bounds) {
        enum Found: Sendable {
            case bounds(Bounds)
            case entry(FeedEntry)
        }
        let rows = Statement(
            """
            select f.seq, to_char(f.at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), f.topic, f.ref, f.change, f.data::text, f.lesson, true
              from millrace.feed_mine($1, $2, $3) f order by f.seq
            """, [.int8(position), .texts(topics), .int4(Int32(Self.page))])
        let owner = FeedOwner(kind: .person, name: caller.subject)
        let found = try await turns.withTurn(of: caller.subject) {
            try await allTurns.withTurn(of: "") {
                try await database.run([Self.bounds, rows], as: caller) { index, row throws(PostgresError) -> Found in
                    index == 0
                        ? .bounds(try Self.bounds(row)) : .entry(try Self.entry(row, owners: [owner], tenant: nil))
                }
            }
        }
        var bounds = Bounds(newest: 0, oldest: 0)
        var entries: [FeedEntry] = []
        for one in found.joined() {
            switch one {
            case .bounds(let found): bounds = found
            case .entry(let entry): entries.append(entry)
            }
        }
        return (entries, bounds)
    }

    /// Whether the caller may see this document.
    func sees(document id: String, as caller: GatewayCaller) async throws -> Bool {
        try await database.run(
            [Statement("select true from millrace.document(($1::text)::uuid)", [.text(id)])], as: caller
        ) { _, row throws(PostgresError) in try row.bool(0) }.first?.first ?? false
    }

    /// Whether the caller may see this job.
    func sees(job id: Int64, as caller: GatewayCaller) async throws -> Bool {
        try await database.run([Statement("select true from millrace.job($1)", [.int8(id)])], as: caller) {
            _, row throws(PostgresError) in try row.bool(0)
        }.first?.first ?? false
    }

    private static let bounds = Statement("select p.newest, p.oldest from millrace.feed_position() p")

    private static func bounds(_ row: Row) throws(PostgresError) -> Bounds {
        Bounds(newest: try row.int(0), oldest: try row.int(1))
    }

    private static func entry(_ row: Row, owners: [FeedOwner], tenant: String?) throws(PostgresError) -> FeedEntry {
        FeedEntry(
            seq: try row.int(0), at: try row.string(1), topic: try row.string(2), owners: owners, tenant: tenant,
            lesson: row.optionalString(6), ref: try row.string(3), change: try row.string(4),
            data: row.optionalString(5) ?? "null", isRecent: try row.bool(7))
    }
}
