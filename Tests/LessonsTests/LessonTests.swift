import Foundation
import Postgres
import TestSupport
import Testing

extension Connection {
    /// What a person was told of its lessons.
    fileprivate func told(_ person: String, _ lesson: String? = nil) async throws(PostgresError) -> [String] {
        try await column(
            "select change from millrace.feed_mine(0, '{lessons}', 500, '\(person)') \(lesson.map { "where ref = '\($0)'" } ?? "")"
        )
    }

    fileprivate func register(
        _ lesson: String, _ source: String = "https://a.example/\(UUID().uuidString)", tenant: String? = nil,
        by person: String = "anna"
    ) async throws(PostgresError) -> String {
        try await value(
            "millrace.document_register('\(source)', lesson_id => '\(lesson)', tenant => \(tenant.map { "'\($0)'" } ?? "null"), actor => '\(person)')"
        )
            ?? ""
    }

    fileprivate func end(_ document: String, _ status: String = "completed") async throws(PostgresError) {
        try await run("select millrace.document_end('\(document)', '\(status)', null, null)")
    }
}

@Suite struct LessonTests {
    @Test func `one feed says created, updated, complete and deleted, and the outbox says it, too`() async throws {
        try await withConnection { connection in
            let put = "millrace.lesson_put('l1', #, tenant => 'school', actor => 'anna')"
            #expect(try await connection.value(put.replacing("#", with: "'Railways'")) == "created")
            #expect(try await connection.value(put.replacing("#", with: "'Railways'")) == "unchanged")
            #expect(try await connection.value(put.replacing("#", with: "null, '{\"room\": 3}'")) == "updated")
            let (one, two) = (
                try await connection.register("l1", tenant: "school"),
                try await connection.register("l1", tenant: "school")
            )
            _ = try await connection.register("l1")
            try await connection.end(one)
            #expect(try await connection.told("anna") == ["created", "updated"], "one is under way")
            try await connection.end(two, "failed")
            #expect(try await connection.told("anna") == ["created", "updated", "processing_complete"])
            #expect(
                try await connection.records(
                    "select documents, under_way, failed, completed_at is not null from millrace.lesson('l1', actor => 'anna')"
                )
                    == ["(2,0,1,t)"])
            try await connection.run("select millrace.document_retry('\(two)', actor => 'anna')")
            try await connection.end(two)
            #expect(
                try await connection.records("select * from millrace.lesson_delete('{l1, none}', actor => 'anna')")
                    == ["(l1,t,2)", "(none,f,0)"])
            #expect(
                try await connection.told("anna")
                    == ["created", "updated", "processing_complete", "processing_complete", "deleted"])
            #expect(
                try await connection.column(
                    "select type || ' ' || tenant from millrace.event where type like '%.lesson.%' order by at")
                    == ["created", "updated", "processed", "processed", "deleted"].map {
                        "com.classnotes.lesson.\($0) school"
                    })
            #expect(
                try await connection.int("select count(*) from millrace.document where status <> 'deleted'") == 1,
                "another's by name only: without the tenant")
        }
    }

    @Test func `of two documents that end at the same moment one is the last`() async throws {
        try await withDatabase { database in
            let (one, two, watcher) = (
                try await database.connect(), try await database.connect(), try await database.connect()
            )
            try await one.run("select millrace.lesson_put('l1', actor => 'anna')")
            let (first, second) = (try await one.register("l1"), try await one.register("l1"))
            try await one.run("begin")
            try await one.end(first)
            let process = try await two.process()
            async let ended: Void = two.end(second)
            try await waitUntilBlocked(process, seenBy: watcher)
            try await one.run("commit")
            try await ended
            #expect(try await watcher.told("anna") == ["created", "processing_complete"])
            for connection in [one, two, watcher] { await connection.close() }
        }
    }

    @Test func `a document is registered before a lesson is deleted or after, and not in between`() async throws {
        try await withDatabase { database in
            let (one, two, watcher) = (
                try await database.connect(), try await database.connect(), try await database.connect()
            )
            try await one.run("select millrace.lesson_put('l1', actor => 'anna')")
            try await one.run("begin")
            let document = try await one.register("l1")
            let process = try await two.process()
            async let deleted = two.records("select * from millrace.lesson_delete('{l1}', actor => 'anna')")
            try await waitUntilBlocked(process, seenBy: watcher)
            try await one.run("commit")
            #expect(try await deleted == ["(l1,t,1)"])
            #expect(
                try await watcher.value("select status from millrace.document where id = '\(document)'") == "deleted")
            for connection in [one, two, watcher] { await connection.close() }
        }
    }

    @Test func `a lesson is its owner's or its tenant's, and nobody else sees, changes or deletes it`() async throws {
        try await withConnection { connection in
            try await connection.run(
                """
                select millrace.lesson_put('l1', 'anna''s', actor => 'anna'), millrace.lesson_put('l1', 'ben''s', actor => 'ben'),
                       millrace.lesson_put('l2', 'the school''s', tenant => 'school', actor => 'anna')
                """)
            let document = try await connection.register("l2", tenant: "school", by: "cleo")
            #expect(try await connection.column("select title from millrace.lesson('l1', actor => 'ben')") == ["ben's"])
            #expect(
                try await connection.column("select title from millrace.lesson_list(actor => 'anna')")
                    == ["the school's", "anna's"])
            #expect(
                try await connection.refusal(
                    of: "select millrace.lesson_put('l2', 'mine', tenant => 'school', actor => 'ben')")?
                    .sqlState == "23505")
            #expect(
                try await connection.records("select * from millrace.lesson_delete('{l2}', 'school', 'ben')") == [
                    "(l2,f,0)"
                ])
            #expect(try await connection.told("ben") == ["created"])
            #expect(
                try await connection.refusal(of: "select * from millrace.lesson_delete('{l1}')")?.sqlState == "55000",
                "an operator says which")
            #expect(
                try await connection.records("select * from millrace.lesson_delete('{l2}', 'school', 'anna')") == [
                    "(l2,t,0)"
                ])
            #expect(
                try await connection.value("select status from millrace.document where id = '\(document)'")
                    == "processing",
                "another person's document stays")
            let lessons = (0..<11).map { "x\($0)" }.joined(separator: ",")
            #expect(
                try await connection.refusal(of: "select millrace.lesson_delete('{\(lessons)}', actor => 'anna')")?
                    .sqlState
                    == "53400")
            try await connection.run(
                "select millrace.quota_set('school', 'lessons', 2, 'day'), millrace.lesson_put('l3', tenant => 'school', actor => 'anna')"
            )
            let full = try await connection.refusal(
                of: "select millrace.lesson_put('l4', tenant => 'school', actor => 'anna')")
            #expect(full?.sqlState == "53400")
            try await connection.run("select millrace.person_erase('anna', 'anna')")
            #expect(try await connection.column("select owner from millrace.lesson") == ["ben"])
            #expect(
                try await connection.int(
                    "select count(*) from millrace.feed where person = 'anna' or data::text like '%anna%'") == 0)
        }
    }
}
