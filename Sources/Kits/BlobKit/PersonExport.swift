package import Blobs
package import JSON
package import Postgres

/// What is kept of a person, a page at a time: see `millrace.person_export`.
package enum PersonExport {
    package struct Row: Sendable {
        package let place: String
        /// Its room, its thing and its data.
        package let json: JSONValue

        /// Contents that belong to the row.
        package var files: [(blob: BlobID, name: String)] {
            (json["data"]?["files"]?.items ?? []).compactMap { file in
                guard let blob = file["blob"]?.text.flatMap({ BlobID($0) }) else { return nil }
                return (blob, file["name"]?.text ?? file["kind"]?.text ?? "file")
            }
        }
    }

    /// Without rows it is the last page.
    package static func page(of person: String, after: String?, on connection: Connection) async throws -> [Row] {
        let found = try await connection.query(
            """
            select e.place, json_build_object('room', e.room, 'thing', e.thing, 'data', e.data)::text
              from millrace.person_export($1, $2, 500) with ordinality e(place, room, thing, data, n) order by e.n
            """, [.text(person), .text(after)]
        ) { row throws(PostgresError) in (try row.string(0), Array(try row.string(1).utf8)) }
        return try found.map { Row(place: $0.0, json: try JSONValue.read($0.1)) }
    }
}
