import Foundation
import Millrace
import Ported
import Synchronization
import Testing

private struct Broken: Error {}

private final class Noted: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
}

@Suite struct PortedTests {
    /// With TEST_DATABASE_URL, an empty database; without it only what needs none.
    private static let url = ProcessInfo.processInfo.environment["TEST_DATABASE_URL"]
    private let database = Database.url(Self.url ?? "postgresql:///unused")

    @Test func `a mail is sent, and the tidying is scheduled`() async throws {
        let noted = Noted()
        let worker = try workerOfMails(on: database, send: { noted.add($0.to) }, tidy: { noted.add("tidy") })
        let bench = try TestBench(worker: worker, database: database)
        #expect(try await bench.run(SendMail(to: "ellen", subject: "Hello", body: "Hi there!")) == .done)
        #expect(try await bench.run(TidyUp()) == .done)
        #expect(noted.all == ["ellen", "tidy"])
    }

    @Test(.enabled(if: url != nil))
    func `a message that fails is told of, tried again, and sent; a welcome is mailed once and gives its number`()
        async throws
    {
        let noted = Noted()
        let messages = workerOfMessages(on: database) { message in
            if noted.all.isEmpty { throw Broken() }
            noted.add("sent to \(message.to)")
        } failed: { kind, attempt, _ in
            noted.add("\(kind) failed, attempt \(attempt)")
        }
        let bench = try TestBench(worker: messages, database: database)
        try await bench.prepare()
        let client = try Client(database: database)
        try await remind("ada", in: .seconds(300), by: client)
        try await bench.advance(by: .seconds(360))
        _ = try await bench.drain()
        try await bench.advance(by: .seconds(3600))
        _ = try await bench.drain()
        #expect(noted.all == ["message.send failed, attempt 1", "sent to ada"])
        await bench.close()

        let welcomes = workerOfWelcomes(on: database) { address, _ in
            noted.add("welcomed \(address)")
            return "mail-1"
        }
        async let report = welcomes.run(handlesSignals: false)
        #expect(try await welcome("eve@example.com", by: client) == "mail-1")
        #expect(try await welcome("eve@example.com", by: client) == "mail-1")
        #expect(noted.all.count { $0 == "welcomed eve@example.com" } == 1)
        welcomes.drain()
        _ = try await report
        await client.close()
    }
}
