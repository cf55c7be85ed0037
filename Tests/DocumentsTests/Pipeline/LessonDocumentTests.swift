import Blobs
import Documents
import Foundation
import Postgres
import TestSupport
import Testing

/// Lessons go while the programs of a worker read their documents.
@Suite struct LessonDocumentTests {
    @Test func `lessons that are deleted while their documents are read leave no file and no page`() async throws {
        try await withDocuments { bench in
            let connection = bench.connection
            for lesson in 0..<6 {
                try await connection.run(
                    "select millrace.lesson_put('lesson-\(lesson)', 'Lesson \(lesson)', actor => 'anna')")
                for part in 0..<2 {
                    try await bench.submit(
                        try await scannedPNG(2 * lesson + part), "lesson_id => 'lesson-\(lesson)', actor => 'anna'")
                }
            }
            // Some have been read, some are being read, others wait.
            try await eventually("two documents have been read") {
                try await connection.int("select count(*) from millrace.document where status = 'completed'") >= 2
            }
            let ids = (0..<6).map { "lesson-\($0)" }.joined(separator: ",")
            let deleted = try await connection.records(
                "select deleted, documents from millrace.lesson_delete('{\(ids)}', actor => 'anna')")
            #expect(deleted == Array(repeating: "(t,2)", count: 6))
            try await eventually("no job of theirs is left") {
                try await connection.int(
                    "select count(*) from millrace.jobs where state not in ('succeeded', 'cancelled', 'dead')") == 0
            }
            #expect(try await connection.column("select distinct status from millrace.document") == ["deleted"])
            #expect(try await connection.int("select count(*) from millrace.jobs where state = 'dead'") == 0)
            for table in [
                "lesson", "lesson_progress", "document_page", "document_content", "document_output", "blob_reference",
            ] {
                #expect(try await connection.int("select count(*) from millrace.\(table)") == 0, "\(table)")
            }
            let swept = try await connection.column(
                "select millrace.blob_forget(b.id, '0') from millrace.blobs_forsaken('0') b")
            #expect(swept.count >= 12)
            #expect(try await connection.int("select count(*) from millrace.blob") == 0)
            let ends = try await connection.column(
                "select ref || ' ' || count(*) from millrace.feed_mine(0, '{lessons}', 500, 'anna') where change = 'deleted' group by ref order by 1"
            )
            #expect(ends == (0..<6).map { "lesson-\($0) 1" })
        }
    }
}
