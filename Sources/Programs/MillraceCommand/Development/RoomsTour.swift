import Blobs
import Documents
import FoundationEssentials
import JSON
import Postgres

/// One of each room: a mail, a scanned page, a missed check-in, a family's day. It shows each until it has ended.
struct RoomsTour: Sendable {
    let console: Console
    let connection: Connection
    let store: any BlobStore
    /// Why no document can be read here; nil: one can.
    let lacksReaders: String?

    /// Names the people of this tour; each tour has its own.
    private let mark = String(UInt64.random(in: 0 ... .max), radix: 36)

    private struct Stop: Sendable {
        let room: String
        let what: String
        /// What the database says of it: a word, and whether that is its end.
        let state: @Sendable (Connection) async throws(PostgresError) -> (text: String, isOver: Bool)
    }

    init(console: Console, connection: Connection, store: any BlobStore, lacksReaders: String?) {
        self.console = console
        self.connection = connection
        self.store = store
        self.lacksReaders = lacksReaders
    }

    func run() async throws -> Bool {
        var stops = [try await mail()]
        if let lacksReaders {
            stops.append(
                Stop(room: "documents", what: "not shown: \(lacksReaders)") { _ throws(PostgresError) in ("–", true) })
        } else {
            stops.append(try await document())
        }
        stops.append(try await checkIn())
        stops.append(try await quest())
        let live = console.live(on: console.output)
        let began = ContinuousClock.now
        while true {
            var rows: [(stop: Stop, text: String, isOver: Bool)] = []
            for stop in stops {
                let (text, isOver) = try await stop.state(connection)
                rows.append((stop, text, isOver))
            }
            live.update(table(rows).lines(width: console.output.columns, colors: console.colorsOutput))
            if rows.allSatisfy(\.isOver) { break }
            guard began.duration(to: .now) < .seconds(120) else {
                live.finish()
                console.failure("not all rooms were done within two minutes; see the worker's log above")
                return false
            }
            try await Task.sleep(for: .milliseconds(200))
        }
        live.finish()
        return true
    }

    private func table(_ rows: [(stop: Stop, text: String, isOver: Bool)]) -> Table {
        var table = Table([.init("room"), .init("state"), .init("what it shows", shrinks: true)])
        for row in rows {
            table.add([
                .init(row.stop.room), .init(row.text, row.isOver ? .green : .cyan), .init(row.stop.what, .dim),
            ])
        }
        return table
    }

    private func text(_ sql: SQL, _ parameters: [Parameter]) async throws(PostgresError) -> String? {
        try await connection.query(sql, parameters) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
    }

    private static func state(
        _ sql: SQL, _ parameters: [Parameter], ends: Set<String>
    ) -> @Sendable (Connection) async throws(PostgresError) -> (text: String, isOver: Bool) {
        { connection throws(PostgresError) in
            let found = try await connection.query(sql, parameters) { row throws(PostgresError) in
                row.optionalString(0)
            }
            let text = (found.first ?? nil) ?? "waiting"
            return (text, ends.contains(text))
        }
    }

    private func mail() async throws -> Stop {
        let id = try await text(
            "select millrace.mail_send(array['ada-' || $1 || '@example.com'], template => 'welcome', data => '{\"app_name\": \"Millrace\", \"user_name\": \"Ada\"}')::text",
            [.text(mark)])
        return Stop(
            room: "mail", what: "a welcome from a template; without a mail service it lies in the outbox",
            state: Self.state(
                "select status from millrace.mail_messages where id = $1::text::uuid", [.text(id)],
                ends: ["accepted", "delivered", "failed", "bounced"]))
    }

    private func document() async throws -> Stop {
        let blob = try await store.put(OnePiece(bytes: PackageResources.tour_page_png), limit: 1 << 20).id
        let registration: JSONValue = [
            "storage_url": .string("blob:\(blob.description)"), "title": "A page of the tour",
            "options": ["policy": .null, "outputs": ["pdf", "preview"]],
        ]
        let id = try await DocumentAdmin.register(Array(registration.compact.utf8), on: connection)
        return Stop(
            room: "documents", what: "a scanned page is read, and becomes a PDF that can be searched",
            state: Self.state(
                "select status from millrace.documents where id = $1::text::uuid", [.text(id)],
                ends: ["completed", "failed"]))
    }

    private func checkIn() async throws -> Stop {
        let (person, contact) = ("ada-\(mark)", "ben-\(mark)")
        _ = try await text(
            "select millrace.check_in_contact($1, $2, 1, jsonb_build_object('mail', $2 || '@example.com'), actor => $1)::text",
            [.text(person), .text(contact)])
        // An operator's word stands for the contact's own yes, which it would give by a link.
        _ = try await text("select millrace.check_in_confirm($1, $2)::text", [.text(person), .text(contact)])
        _ = try await text(
            "select millrace.check_in_arm($1, every => '1 second', grace => '0', warnings => '{}', actor => $1)::text",
            [.text(person)])
        return Stop(
            room: "check-ins", what: "Ada does not check in; Ben, her contact, is told by mail",
            state: Self.state(
                """
                select case when h.notice_status = 'accepted' then 'Ben is told' when h.what = 'told' then 'telling Ben' else 'alarm' end
                  from millrace.alarms a join millrace.alarm_history h on h.alarm = a.id where a.person = $1 order by h.id desc limit 1
                """, [.text(person)], ends: ["Ben is told"]))
    }

    /// The family moves over the date line, so its day ends at once.
    private func quest() async throws -> Stop {
        let family = "family-\(mark)"
        _ = try await text("select millrace.family_create($1, 'Pacific/Pago_Pago')::text", [.text(family)])
        _ = try await text("select millrace.family_join($1, 'ada-' || $2, 'teen')::text", [.text(family), .text(mark)])
        let before =
            try await text("select today::text from millrace.families where family = $1", [.text(family)]) ?? ""
        _ = try await text("select millrace.family_zone($1, 'Pacific/Kiritimati')::text", [.text(family)])
        return Stop(
            room: "quests", what: "a family moves over the date line: its day \(before) ends, and the next begins",
            state: Self.state(
                "select case when today > $2::text::date then 'turned over' else 'waiting' end from millrace.families where family = $1",
                [.text(family), .text(before)], ends: ["turned over"]))
    }

    func cleanUp() async {
        // Ada would be missed for days otherwise.
        _ = try? await text(
            "select millrace.check_in_resolve(id, 'the tour is over')::text from millrace.alarms where person = $1 and state <> 'resolved'",
            [.text("ada-\(mark)")])
        _ = try? await text("select millrace.check_in_disarm($1, actor => $1)::text", [.text("ada-\(mark)")])
    }
}

/// Bytes as a sequence of one.
private struct OnePiece: AsyncSequence, Sendable {
    let bytes: [UInt8]

    struct Iterator: AsyncIteratorProtocol {
        var bytes: [UInt8]?

        mutating func next() async -> [UInt8]? {
            defer { bytes = nil }
            return bytes
        }
    }

    func makeAsyncIterator() -> Iterator { Iterator(bytes: bytes) }
}
