import Foundation
import Postgres
import Synchronization
import TestSupport
import Testing

/// 95 lessons go, ten at a time, while a worker is at their documents.
@Suite struct BatchDeleteTests {
    private static let lessons = 95

    @Test func `95 lessons with documents under way: none is half deleted, the feed is complete, no blob is left`()
        async throws
    {
        try await withDatabase { database in
            let app = try await database.connect()
            try await Self.fill(on: app)
            let runs = try await Self.claim(on: app)
            #expect(runs.count == 2 * Self.lessons)
            let isOver = Mutex(false)
            let worker = try await database.connect()
            async let worked = Self.work(runs, on: worker) { isOver.withLock { $0 } }
            for start in stride(from: 0, to: Self.lessons, by: 10) {
                let ids = (start..<min(Self.lessons, start + 10)).map { "lesson-\($0)" }.joined(separator: ",")
                let rows = try await app.records(
                    "select deleted, documents from millrace.lesson_delete('{\(ids)}', actor => 'anna')")
                #expect(rows == Array(repeating: "(t,2)", count: min(10, Self.lessons - start)))
            }
            isOver.withLock { $0 = true }
            let refused = try await worked
            try await Self.expectNothingLeft(on: app)
            try await Self.expectCompleteFeed(on: app)
            print("\(runs.count) documents were under way; the worker got through \(runs.count - refused) runs")
            for connection in [app, worker] { await connection.close() }
        }
    }

    /// Two documents for each lesson, one of which has been read, with a file of each.
    private static func fill(on connection: Connection) async throws {
        try await connection.run(
            """
            select count(millrace.blob_put(sha256(convert_to('file ' || n, 'UTF8')), convert_to('file ' || n, 'UTF8'))) from generate_series(0, \(2 * lessons - 1)) n;
            select count(millrace.lesson_put('lesson-' || n, 'Lesson ' || n, actor => 'anna')) from generate_series(0, \(lessons - 1)) n;
            select count(millrace.document_register('blob:' || encode(sha256(convert_to('file ' || n, 'UTF8')), 'hex'), lesson_id => 'lesson-' || n / 2, actor => 'anna'))
              from generate_series(0, \(2 * lessons - 1)) n
            """)
    }

    /// Document and token of each run that a worker has begun.
    private static func claim(on connection: Connection) async throws -> [(document: String, token: String)] {
        try await connection.run(
            "select millrace.session_open(1, 'worker', 'host', 1, '0', null, array(select id from millrace.kind), 10, false)"
        )
        return try await connection.query(
            .pasted(
                """
                select c.args ->> 'document', '1-' || c.number || '-' || c.id from millrace.claim(1, 8, array(select id from millrace.kind),
                    (select array_agg(q.id order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(l order by l, q.id) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(0::bigint) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(9223372036854775807) from millrace.queue q, generate_series(0, 39) l),
                    (select array_agg(500) from millrace.queue q, generate_series(0, 39) l), 500, '{}', '{}') c
                 where c.number is not null
                """)
        ) { row throws(PostgresError) in (document: try row.string(0), token: try row.string(1)) }
    }

    /// The stages of a run as a worker writes them, each in a transaction of its own. Returns how many runs found that there is nothing to do any more.
    private static func work(
        _ runs: [(document: String, token: String)], on connection: Connection, until isOver: @Sendable () -> Bool
    ) async throws -> Int {
        var random = SeededRandom(95)
        var stopped = 0
        for run in runs.shuffled(using: &random) {
            let call = "'\(run.token)', '\(run.document)', 1"
            let stages = [
                "select document from (select count(*) as document from millrace.document_take(\(call))) x where document > 0",
                "select 1 where millrace.document_received(\(call), (select blob from millrace.document where id = '\(run.document)'), (select size from millrace.document where id = '\(run.document)')) = 'taken'",
                "select 1 where millrace.document_inspected(\(call), '{}', 'application/pdf', 1, false, false, '[]', 5) = 'taken'",
                """
                select 1 where millrace.document_pages_put(\(call), '[{"page": 1, "status": "done", "text": "words", "content": {}, "words": 1}]', 5, false)
                """,
                "select 1 where millrace.document_ended(\(call), 'completed', null, null, '[]', 5)",
            ]
            for stage in stages.prefix(2 + random.below(4)) where try await connection.column(stage).isEmpty {
                stopped += 1
                break
            }
            if isOver() && stopped > 20 { break }
        }
        return stopped
    }

    private static func expectNothingLeft(on connection: Connection) async throws {
        #expect(
            try await connection.column("select distinct status from millrace.document") == ["deleted"])
        for table in [
            "lesson", "lesson_progress", "document_page", "document_content", "document_output", "document_secret",
            "blob_reference",
        ] {
            #expect(try await connection.int("select count(*) from millrace.\(table)") == 0, "\(table)")
        }
        #expect(
            try await connection.int(
                "select count(*) from millrace.document where blob is not null or title is not null or source is not null"
            ) == 0)
        #expect(try await connection.int("select count(*) from millrace.ready") == 0)
        let swept = "select millrace.blob_forget(b.id, '0') from millrace.blobs_forsaken('0') b"
        #expect(try await connection.column(swept).count == 2 * lessons)
        #expect(
            try await connection.int(
                "(select count(*) from millrace.blob) + (select count(*) from millrace.blob_piece)") == 0)
    }

    /// Of each lesson: made first, deleted last and once, and complete only in between. Of each document the same.
    private static func expectCompleteFeed(on connection: Connection) async throws {
        var changes: [String: [String]] = [:]
        var since = 0
        while true {
            let page = try await connection.query(
                .pasted(
                    "select seq, ref, change from millrace.feed_mine(\(since), '{lessons, documents}', 500, 'anna')")
            ) { row throws(PostgresError) in
                (seq: Int(try row.int(0)), ref: try row.string(1), change: try row.string(2))
            }
            guard let last = page.last else { break }
            for row in page { changes[row.ref, default: []].append(row.change) }
            since = last.seq
        }
        #expect(changes.count == 3 * lessons)
        for (name, told) in changes {
            #expect(told.first == "created" && told.last == "deleted", "\(name): \(told)")
            #expect(told.count { $0 == "deleted" } == 1, "\(name): \(told)")
        }
        #expect(
            try await connection.int("select count(*) from millrace.event where type = 'com.classnotes.lesson.deleted'")
                == lessons)
    }
}
