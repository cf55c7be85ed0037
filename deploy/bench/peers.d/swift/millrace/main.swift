import Foundation
import Millrace

extension Note: Job {
    static let kind = "nothing"
}

struct MillracePeer: Peer {
    private let client: Client
    private let worker: Worker

    init(_ place: Place, handle: @escaping @Sendable (Note) async throws -> Void) async throws {
        let database = Database.url("postgresql://postgres@/\(place.database)?host=\(place.folder)")
        client = try Client(database: database)
        worker = Worker(database: database, slots: place.slots, log: .silent)
        worker.handle(Note.self) { note, _ in
            try await handle(note)
            return .done
        }
    }

    func prepare() async throws {
        try await client.migrate()
    }

    func enqueue(_ note: Note) async throws {
        try await client.enqueue(note)
    }

    func enqueue(many: Int) async throws {
        var left = many
        while left > 0 {
            let count = min(left, 1000)
            try await client.enqueue(contentsOf: Array(repeating: Note(), count: count))
            left -= count
        }
    }

    func work() async throws {
        try await worker.run()
    }

    func connected(_ body: @escaping @Sendable () async throws -> Void) async throws {
        try await body()
        await client.close()
    }
}

try await PeerProgram<MillracePeer>().run()
