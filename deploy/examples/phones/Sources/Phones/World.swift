import Foundation
import MillraceApp

/// What the program was started with: where the gateway is, who may sign in, and where phones keep their files.
package struct World: Sendable {
    let url: URL
    let tokens: [String: String]
    let place: URL

    package init() throws {
        let environment = ProcessInfo.processInfo.environment
        guard let url = environment["PHONES_URL"].flatMap({ URL(string: $0) }), let place = environment["PHONES_PLACE"],
            let tokens = environment["PHONES_TOKENS"]
        else {
            throw Wrong("PHONES_URL, PHONES_PLACE or PHONES_TOKENS is not set: deploy/examples/phones/run sets them")
        }
        self.url = url
        self.place = URL(fileURLWithPath: place)
        self.tokens = try JSONDecoder().decode([String: String].self, from: Data(tokens.utf8))
    }

    /// The app of a person on a phone: with the files that the phone has, or with none, as after an installation.
    /// - Parameter piece: of a large file; nil: as apps have it.
    package func phone(_ person: String, _ name: String, piece: Int? = nil) async throws -> Phone {
        let token = tokens[person] ?? ""
        var configuration = AppConfiguration(url: url) { _ in token }
        // Times decide nothing here: a read waits for the gateway as long as it takes, and tries again soon.
        configuration.retry.attempts = 500
        configuration.retry.firstPause = .milliseconds(50)
        configuration.retry.longestPause = .milliseconds(250)
        configuration.breaker = .off
        configuration.patience = .seconds(60)
        configuration.shortPatience = .seconds(60)
        if let piece { configuration.uploadPiece = piece }
        let files = directory(person, name)
        let app = try await AppClient.live(configuration, person: person, offline: files, deviceName: name)
        guard let queue = app.queue else { throw Wrong("\(person)'s app has no queue") }
        return Phone(world: self, app: app, queue: queue, name: name)
    }

    func directory(_ person: String, _ name: String) -> URL { place.appendingPathComponent("\(person), \(name)") }
}

/// A phone with the app of a person who is signed in.
package struct Phone: Sendable {
    let world: World
    package let app: AppClient
    package let queue: OfflineQueue
    let name: String

    /// The app ends and starts again. What waits is copied, as a backup of the phone would do.
    package func restarted(copy: String) async throws -> Phone {
        await queue.close()
        let (here, there) = (world.directory(app.person, name), world.directory(app.person, copy))
        try FileManager.default.copyItem(at: here, to: there)
        return try await world.phone(app.person, name)
    }

    /// Tells the gateway all that waits, and returns what became of it.
    package func tell() async throws -> [OperationOutcome] {
        let waiting = await queue.pending.count
        var outcomes = await queue.outcomes().makeAsyncIterator()
        try await until("what \(app.person) did offline is told") { () async throws -> Bool? in
            do {
                return try await queue.drain().waiting == 0 ? true : nil
            } catch is AppError {
                return nil  // the gateway is not there yet
            }
        }
        var ended: [OperationOutcome] = []
        while ended.count < waiting, let outcome = await outcomes.next() { ended.append(outcome) }
        return ended
    }
}
