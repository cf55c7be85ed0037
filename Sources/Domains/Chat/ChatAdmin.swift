package import Postgres

/// The operators' side of chats: threads, and what a person would see and do. Rows are the functions' own, as JSON.
package enum ChatAdmin {
    /// Threads without what is written in them; with a person those that it is in.
    package static func threads(
        of person: String?, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            "select to_jsonb(t) from millrace.chat_threads_shown($1, $2, $3) t",
            [.text(after), .int4(Int32(clamping: page)), .text(person)], decode: row)
    }

    /// What the person reads there, newest first.
    package static func messages(
        in thread: String, as person: String, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            "select to_jsonb(m) from millrace.chat_messages($1::text::uuid, $2, $3, actor => $4) m",
            [.text(thread), .text(after), .int4(Int32(clamping: page)), .text(person)], decode: row)
    }

    package static func search(
        _ query: String, as person: String, after: String?, page: Int, on connection: Connection
    ) async throws(PostgresError) -> [[UInt8]] {
        try await connection.query(
            "select to_jsonb(m) from millrace.chat_search($1, $2, $3, $4) m",
            [.text(query), .text(after), .int4(Int32(clamping: page)), .text(person)], decode: row)
    }

    /// Without a family and members: the whole family of the person.
    package static func begin(
        as person: String, members: [String]?, title: String?, on connection: Connection
    ) async throws(PostgresError) -> String {
        try await connection.query(
            "select millrace.chat_thread_create($1, title => $2, actor => $3)::text",
            [.texts(members), .text(title), .text(person)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    package static func send(
        _ text: String, to thread: String, as person: String, id: String?, on connection: Connection
    ) async throws(PostgresError) -> String {
        try await connection.query(
            "select millrace.chat_send($1::text::uuid, $2, id => $3::text::uuid, actor => $4)::text",
            [.text(thread), .text(text), .text(id), .text(person)]
        ) { row throws(PostgresError) in try row.string(0) }.first ?? ""
    }

    /// Returns how many are still unread.
    package static func read(
        upTo message: String, in thread: String, as person: String, on connection: Connection
    ) async throws(PostgresError) -> Int {
        try await connection.query(
            "select millrace.chat_read($1::text::uuid, $2::text::uuid, $3)",
            [.text(thread), .text(message), .text(person)]
        ) { row throws(PostgresError) in Int(try row.int(0)) }.first ?? 0
    }

    /// Any message; it is written into the audit.
    package static func remove(_ message: String, on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.chat_remove($1::text::uuid)", [.text(message)])
    }

    /// - Parameter rules: a JSON object.
    package static func setRules(_ rules: [UInt8], on connection: Connection) async throws(PostgresError) -> Bool {
        try await connection.truth("select millrace.chat_rules_set($1)", [.json(rules)])
    }

    private static let row: Connection.Decode<[UInt8]> = { row throws(PostgresError) in try row.json(0) }
}
