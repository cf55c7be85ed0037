package import FoundationEssentials
package import Postgres

/// The operators' and links' side of check-ins. Rows come as JSON, with the views' own column names.
package enum CheckInAdmin {
    /// The figures for `status`.
    package struct State: Sendable, Equatable {
        package var watches = 0
        package var overdue = 0
        /// How long the oldest due watch has been due, in seconds.
        package var oldest: Double = 0
        /// Seconds since a check-in service last reported; nil: never.
        package var beat: Double?
        package var open = 0
        package var unreachable = 0
        package var broken = 0

        package init() {}
    }

    package static func state(on connection: Connection, deadline: Duration) async throws(PostgresError) -> State {
        try await connection.query(
            "select watches, overdue, oldest, beat, open, unreachable, broken from millrace.check_in_state()",
            deadline: deadline
        ) { row throws(PostgresError) in
            var state = State()
            state.watches = Int(try row.int(0))
            state.overdue = Int(try row.int(1))
            state.oldest = try row.double(2)
            state.beat = row.optionalDouble(3)
            state.open = Int(try row.int(4))
            state.unreachable = Int(try row.int(5))
            state.broken = Int(try row.int(6))
            return state
        }.first ?? State()
    }

    /// Whether there is any watch at all.
    package static func isWanted(on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.query("select millrace.watch_wanted()") { row throws(PostgresError) in try row.bool(0) }
            .first ?? false
    }

    package static func watches(
        state: String?, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await rows(
            """
            select to_jsonb(v) from millrace.check_ins v
             where v.person > $1 and ($2::text is null or v.state = $2) order by v.person limit $3
            """, [.text(after ?? ""), .text(state), .int4(Int32(clamping: page))], on: connection)
    }

    /// The person's watch, contacts and open alarms; nil when there is none of these.
    package static func watch(_ person: String, on connection: Connection) async throws(PostgresError) -> [UInt8]? {
        try await connection.query("select millrace.check_in_show($1, actor => $1)", [.text(person)]) {
            row throws(PostgresError) in row.optionalJSON(0)
        }.first ?? nil
    }

    package static func contacts(of person: String, on connection: Connection) async throws(PostgresError) -> [[UInt8]]
    {
        try await rows(
            "select e from jsonb_array_elements(millrace.watch_contacts($1)) e", [.text(person)], on: connection)
    }

    /// Where a person is, in degrees and metres.
    package struct GivenPlace: Sendable, Equatable {
        package var latitude: Double
        package var longitude: Double
        package var accuracy: Double?

        package init(latitude: Double, longitude: Double, accuracy: Double? = nil) {
            (self.latitude, self.longitude, self.accuracy) = (latitude, longitude, accuracy)
        }
    }

    /// Checks in for a person; returns the new expiry.
    package static func checkIn(
        _ person: String, at: Date?, place: GivenPlace?, on connection: Connection
    ) async throws(PostgresError) -> String? {
        try await call(
            """
            select to_json(millrace.check_in($1, $2, actor => $1, place => case when $3::float8 is not null then
                   jsonb_build_object('latitude', $3::float8, 'longitude', $4::float8, 'accuracy', $5::float8) end)) #>> '{}'
            """,
            [
                .text(person), .timestamp(at), .float8(place?.latitude), .float8(place?.longitude),
                .float8(place?.accuracy),
            ], on: connection)
    }

    /// Calls for help in a person's name; returns the alarm and who is told.
    package static func help(
        _ person: String, note: String?, place: GivenPlace?, on connection: Connection
    ) async throws(PostgresError) -> [UInt8]? {
        try await connection.query(
            """
            select millrace.check_in_help($1, $2, actor => $1, place => case when $3::float8 is not null then
                   jsonb_build_object('latitude', $3::float8, 'longitude', $4::float8, 'accuracy', $5::float8) end)
            """,
            [
                .text(person), .text(note), .float8(place?.latitude), .float8(place?.longitude),
                .float8(place?.accuracy),
            ]
        ) { row throws(PostgresError) in row.optionalJSON(0) }.first ?? nil
    }

    package static func alarms(
        person: String?, all: Bool, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await rows(
            """
            select to_jsonb(v) from millrace.alarms v
             where ($1::text is null or v.person = $1) and ($2 or v.state <> 'resolved') order by v.raised_at desc limit $3
            """, [.text(person), .bool(all), .int4(Int32(clamping: page))], on: connection)
    }

    /// The history of one alarm, by its id, or of all alarms of a person.
    package static func history(
        of alarmOrPerson: String, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await rows(
            """
            select to_jsonb(h) from millrace.alarm_history h
             where h.alarm = any (array(select a.id from millrace.alarms a where a.person = $1 or a.id::text = $1))
             order by h.id limit $2
            """, [.text(alarmOrPerson), .int4(Int32(clamping: page))], on: connection)
    }

    /// Calls one of the check-ins' functions and returns its answer as text.
    package static func call(
        _ sql: SQL, _ parameters: [Parameter], on connection: Connection
    ) async throws(PostgresError) -> String? {
        try await connection.query(sql, parameters) { row throws(PostgresError) in row.optionalString(0) }.first ?? nil
    }

    private static func rows(
        _ sql: SQL, _ parameters: [Parameter], on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(sql, parameters) { row throws(PostgresError) in try row.json(0) }
    }

    // MARK: links

    /// What a contact sees behind its link; nil: the alarm or the contact is gone.
    package static func page(
        alarm: String?, contact: String, language: String? = nil, on connection: Connection
    ) async throws(PostgresError) -> [UInt8]? {
        try await connection.query(
            "select millrace.alarm_page($1::text::uuid, $2::text::uuid, $3)",
            [.text(alarm), .text(contact), .text(language)]
        ) { row throws(PostgresError) in row.optionalJSON(0) }.first ?? nil
    }

    package static func respond(
        _ alarm: String, contact: String, answer: String, on connection: Connection
    ) async throws(PostgresError) -> String? {
        try await call(
            "select millrace.check_in_respond($1::text::uuid, $2, $3)", [.text(alarm), .text(contact), .text(answer)],
            on: connection)
    }

    package static func consent(
        _ ref: String, agrees: Bool, on connection: Connection
    ) async throws(PostgresError) {
        _ = try await call(
            "select millrace.check_in_consent($1::text::uuid, $2)::text", [.text(ref), .bool(agrees)], on: connection)
    }

    /// Stops all further requests to this address.
    package static func never(_ ref: String, on connection: Connection) async throws(PostgresError) {
        _ = try await call("select millrace.check_in_never($1::text::uuid)::text", [.text(ref)], on: connection)
    }

    /// Takes that back.
    package static func mayAskAgain(_ ref: String, on connection: Connection) async throws(PostgresError) {
        _ = try await call("select millrace.check_in_never_undo($1::text::uuid)::text", [.text(ref)], on: connection)
    }

    // MARK: limits

    /// False: it was so already.
    package static func block(
        _ channel: String, address: String, lifting: Bool, on connection: Connection
    ) async throws(PostgresError) -> Bool {
        let sql: SQL =
            lifting
            ? "select millrace.consent_unblock($1, $2)" : "select millrace.consent_block($1, $2)"
        return try await connection.truth(sql, [.text(channel), .text(address)])
    }

    package static func setRules(_ json: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.check_in_rules_set($1)", [.json(json)])
    }
}
