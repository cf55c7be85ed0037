import FoundationEssentials
import MillraceQueues
import Postgres
import TestSupport

/// One operation, as a phone keeps it.
struct SyncOp: Sendable {
    var id: UUID
    var op: String
    /// Seconds before the test's beginning.
    var ago: Double?
    /// JSON.
    var args: String

    init(_ op: String, _ args: String, ago: Double? = nil, id: UUID = UUID()) {
        (self.id, self.op, self.args, self.ago) = (id, op, args, ago)
    }

    func json(base: Date) -> String {
        let at = ago.map {
            #", "at": "\#(base.addingTimeInterval(-$0).formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)))""#
        }
        return #"{"id": "\#(id.uuidString.lowercased())", "op": "\#(op)"\#(at ?? ""), "args": \#(args)}"#
    }
}

/// What came of one: `applied`, `same`, `refused invalid at`.
typealias SyncOutcome = String

/// A database with a clock that stands in the middle of a day, and pushes into it.
struct SyncWorld: Sendable {
    let database: TestDatabase
    let owner: Connection
    let base: Date

    static func with<Value>(_ body: (SyncWorld) async throws -> Value) async throws -> Value {
        try await withDatabase(.movableClock) { database in
            let owner = try await database.connect()
            try await owner.run(
                """
                select millrace.test_clock_advance(date_trunc('day', millrace.now(), 'UTC') + interval '36 hours' - millrace.now())
                """)
            let now = try await owner.value("extract(epoch from millrace.now())") ?? ""
            let base = Date(timeIntervalSince1970: Double(now) ?? 0)
            let value = try await body(SyncWorld(database: database, owner: owner, base: base))
            await owner.close()
            return value
        }
    }

    /// A connection that acts as the person, in its own tenant if none is given.
    func phone(of person: String, tenant: String? = nil) async throws -> Connection {
        let connection = try await database.connect()
        try await Self.act(as: person, tenant: tenant, on: connection)
        return connection
    }

    static func act(as person: String, tenant: String? = nil, on connection: Connection) async throws {
        let more = tenant.map { ", \"tenant\": \"\($0)\"" } ?? ""
        try await connection.run(
            "select set_config('request.jwt.claims', '{\"sub\": \"\(person)\"\(more)}', false)")
    }

    func push(_ ops: [SyncOp], device: String = "phone", on connection: Connection) async throws -> [SyncOutcome] {
        try await push(
            json: "[\(ops.map { $0.json(base: base) }.joined(separator: ", "))]", device: device, on: connection)
    }

    func push(json: String, device: String = "phone", on connection: Connection) async throws -> [SyncOutcome] {
        try await connection.column(
            """
            select concat_ws(' ', s.outcome, s.class, s.field, case when s.result ? 'superseded' then 'superseded' end)
              from millrace.sync_push('\(device)', '\(json.replacing("'", with: "''"))') s
            """)
    }

    /// A watch that is armed, and on which the person last checked in some hours ago.
    func arm(_ person: String, checkedIn hours: Int = 3, every: String = "12 hours") async throws {
        try await owner.run(
            """
            select millrace.check_in_contact('\(person)', 'bob', 1, '{"mail": "bob@example.com"}', actor => '\(person)'),
                   millrace.check_in_confirm('\(person)', 'bob', '{mail}'), millrace.check_in_arm('\(person)', '\(every)', actor => '\(person)');
            update millrace.watch set last_checked_in = millrace.now() - interval '\(hours) hours', expires_at = millrace.now() - interval '\(hours) hours' + every where person = '\(person)';
            delete from millrace.checkin_change where person = '\(person)'
            """)
    }
}
