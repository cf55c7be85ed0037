import Foundation
import Millrace

/// A database of its own in the server of DATABASE_URL, which may be thrown away.
func withQueue(_ name: String, _ body: (Database, Client) async throws -> Void) async throws {
    guard let url = ProcessInfo.processInfo.environment["BESIDE_URL_\(name.uppercased())"] else {
        throw Missing(description: "BESIDE_URL_\(name.uppercased()) is not set")
    }
    let client = try Client(database: .url(url))
    try await client.migrate()
    try await body(.url(url), client)
    await client.close()
}

struct Missing: Error, CustomStringConvertible {
    let description: String
}

struct Receipt: Job {
    static let kind = "receipt.send"
    var order: Int
    var note = ""
}

extension Client {
    /// The job's state once it has ended.
    func end(of id: Int64) async throws -> JobState {
        try await wait(for: id, timeout: .seconds(120)).state
    }
}
