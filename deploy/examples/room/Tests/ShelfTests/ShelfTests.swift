import Foundation
import MillraceWorker
import Shelf
import Testing

/// With TEST_DATABASE_URL set to an empty database.
@Suite(.serialized, .enabled(if: ProcessInfo.processInfo.environment["TEST_DATABASE_URL"] != nil))
struct ShelfTests {
    private let place = Database.url(ProcessInfo.processInfo.environment["TEST_DATABASE_URL"] ?? "")

    /// A bench with the room, and the database to call its functions in.
    private func ground() async throws -> (bench: TestBench, database: RoomDatabase) {
        let worker = try Worker(rooms: [.shelf], database: place, keys: .none, log: .silent)
        let bench = try TestBench(worker: worker, database: place)
        try await bench.prepare(rooms: [.shelf])
        return (bench, try RoomDatabase(place))
    }

    @Test func `who borrows a book is reminded when it is due, and once`() async throws {
        let (bench, database) = try await ground()
        let rows = try await database.rows(
            "select millrace.shelf_borrow($1, 14, actor => $2) as loan", "Flatland", "ada")
        let loan = try #require(rows.first?["loan"].flatMap { Int($0) })
        #expect(try await bench.enqueued(RemindOfBook.self).contains { $0.job.loan == loan && $0.state == .scheduled })
        #expect(try await bench.drain().finished == 0)
        try await bench.advance(by: .seconds(1_296_000))
        #expect(try await bench.drain().finished == 1)
        let loans = try await database.rows(
            "select * from millrace.shelf_loans() l where l.loan = $1::bigint", "\(loan)")
        #expect(loans.first?["reminded"] != nil && loans.first?["returned"] == nil)
        #expect(
            try await database.rows("select millrace.shelf_remind($1::bigint) as r", "\(loan)").first?["r"] == "false")
        await bench.close()
    }

    @Test func `a loan goes when its person is erased, and no other does`() async throws {
        let (bench, database) = try await ground()
        for person in ["bea", "cyn"] {
            try await database.rows("select millrace.shelf_borrow($1, 7, actor => $2) as loan", "Middlemarch", person)
        }
        let kept = try await database.rows(
            "select thing, data ->> 'book' as book from millrace.person_export($1) where room = 'shelf'", "bea")
        #expect(kept.map { $0["book"] } == ["Middlemarch"] && kept.first?["thing"] == "loan")
        let answer = try await database.rows("select millrace.person_erase($1, actor => $1) ->> 'shelf' as gone", "bea")
        #expect(answer.first?["gone"] == "1")
        let left = try await database.rows(
            "select l.person from millrace.shelf_loans() l where l.person in ($1, $2)", "bea", "cyn")
        #expect(left.compactMap { $0["person"] } == ["cyn"])
        await bench.close()
    }

    @Test func `a book without a title is not lent`() async throws {
        let (bench, database) = try await ground()
        await #expect(throws: (any Error).self) {
            try await database.rows("select millrace.shelf_borrow('', 7, actor => $1) as loan", "ada")
        }
        await bench.close()
    }
}
