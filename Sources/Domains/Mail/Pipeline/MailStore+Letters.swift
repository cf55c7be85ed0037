import Blobs
import FoundationEssentials
import Postgres

/// A frozen message with everything that decides about its route.
package struct RoutedLetter: Sendable {
    package var letter: Letter
    package var kind: String
    package var isUrgent: Bool
    package var mayRepeat: Bool
    /// False where Supabase's own token would break the link.
    package var mayUseSupabase: Bool
    /// The result of one of its attempts is unknown.
    package var wasUnknown: Bool
    package var id: String { letter.id.uuidString.lowercased() }
}

extension MailStore {
    func messages(_ ids: [String]) async throws -> [RoutedLetter] {
        guard !ids.isEmpty else { return [] }
        return try await ask(
            """
            select message::text, kind, priority, on_unknown, fallback, receipt, created_at, recipients, cc, bcc, reply_to,
                   coalesce(subject, ''), body_text, body_html, headers, attachments, tags, coalesce(from_address, ''), from_name, was_unknown, purpose
              from millrace.mail_letters($1)
            """, [.texts(ids)]
        ) { row throws(PostgresError) in
            guard let id = UUID(uuidString: try row.string(0)) else {
                throw .undecodable(column: 0, expected: "a UUID")
            }
            var letter = Letter(
                id: id, date: try row.date(6),
                from: Mailbox(name: row.optionalString(18), address: try row.string(17)),
                to: try row.strings(7).map(Mailbox.init(taken:)), subject: try row.string(11))
            letter.cc = try row.strings(8).map(Mailbox.init(taken:))
            letter.bcc = try row.strings(9).map(Mailbox.init(taken:))
            letter.replyTo = row.optionalString(10).map(Mailbox.init(taken:))
            letter.text = row.optionalString(12)
            letter.html = row.optionalString(13)
            letter.headers = try Self.pairs(row, 14).map { Letter.Header($0.key, $0.value) }
            if try row.bool(5) {
                letter.headers.append(Letter.Header("Disposition-Notification-To", letter.from.address))
            }
            letter.attachments = try Self.attachments(row, 15)
            letter.tags = try Self.pairs(row, 16).map { Letter.Tag($0.key, $0.value) }
            letter.isAlarm = try row.string(20) == "alarm"
            let kind = try row.string(1)
            let mayUseSupabase = try row.bool(4)
            // Supabase's own token would make the link in our mail worthless.
            if mayUseSupabase, kind.hasPrefix("mail.") {
                letter.purpose = Letter.Purpose(rawValue: String(kind.dropFirst(5)))
            }
            return RoutedLetter(
                letter: letter, kind: kind, isUrgent: ["urgent", "high"].contains(try row.string(2)),
                mayRepeat: try row.string(3) == "again", mayUseSupabase: mayUseSupabase, wasUnknown: try row.bool(19))
        }
    }

    /// Sorted by name, so that a letter has one form.
    private static func pairs(_ row: Row, _ column: Int) throws(PostgresError) -> [(key: String, value: String)] {
        do {
            return try JSONDecoder().decode([String: String].self, from: Data(try row.json(column)))
                .sorted { $0.key < $1.key }
        } catch {
            throw .undecodable(column: column, expected: "an object of texts")
        }
    }

    private struct Kept: Decodable {
        var filename: String
        var content_type: String
        var content_id: String?
        var blob: String
        var size: Int
    }

    private static func attachments(_ row: Row, _ column: Int) throws(PostgresError) -> [Letter.Attachment] {
        do {
            return try JSONDecoder().decode([Kept].self, from: Data(try row.json(column))).map { kept in
                guard let blob = BlobID(kept.blob) else {
                    throw PostgresError.undecodable(column: column, expected: "a hash")
                }
                return Letter.Attachment(
                    filename: kept.filename, contentType: kept.content_type, contentID: kept.content_id, blob: blob,
                    size: kept.size)
            }
        } catch {
            throw .undecodable(column: column, expected: "attachments")
        }
    }
}

extension Mailbox {
    /// An address as it was enqueued. An unreadable one is kept: the provider's check then names the mistake, and the message fails with
    /// that sentence.
    init(taken text: String) {
        do {
            self = try .parse(text)
        } catch {
            self.init(address: text)
        }
    }
}
