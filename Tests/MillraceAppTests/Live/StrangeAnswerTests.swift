import Fakes
import Foundation
import Postgres
import TestSupport
import Testing
import Threads

@testable import MillraceApp

/// Stands between an app and the gateway, and answers in its place as proxies, hotels' networks and servers in repair do.
final class StrangeProxy: Sendable {
    enum Deed: Sendable {
        /// The gateway answers.
        case pass
        /// The gateway hears nothing.
        case answer(Int)
        /// The gateway does it, and its answer is lost behind another, or altogether.
        case hide(Int)
        case cut
        /// The app is killed, before the gateway hears of it or after it has done it.
        case kill(isDone: Bool)
    }

    /// What an app may read of them.
    static let statuses = [200, 204, 302] + Array(400...431) + Array(500...504) + [511]

    private let server: RawServer
    let deeds: Locked<[Deed]>
    /// The app, which a deed may kill.
    let app: Locked<pid_t>

    let url: URL

    init(to gateway: Int) throws {
        let (deeds, app) = (Locked<[Deed]>([]), Locked<pid_t>(0))
        (self.deeds, self.app) = (deeds, app)
        server = try RawServer { connection in
            while let request = Self.request(on: connection) {
                let deed = deeds.withLock { $0.isEmpty ? .pass : $0.removeFirst() }
                switch deed {
                case .pass: if !Self.pass(request, to: gateway, on: connection) { return }
                case .answer(let status): Self.answer(status, on: connection)
                case .hide(let status):
                    _ = Self.pass(request, to: gateway, on: nil)
                    Self.answer(status, on: connection)
                case .cut:
                    _ = Self.pass(request, to: gateway, on: nil)
                    return
                case .kill(let isDone):
                    if isDone { _ = Self.pass(request, to: gateway, on: nil) }
                    app.withLock { if $0 > 0 { _ = kill($0, SIGKILL) } }
                    return
                }
            }
        }
        url = try #require(URL(string: "http://127.0.0.1:\(server.port)"))
    }

    func stop() { server.stop() }

    /// The bytes of a whole request; nil when there is none any more.
    private static func request(on connection: RawConnection) -> [UInt8]? {
        guard let head = connection.readHead() else { return nil }
        let length = head.lowercased().components(separatedBy: "content-length: ").dropFirst().first?
            .prefix { $0.isNumber }
        guard let body = connection.read(exactly: Int(length ?? "0") ?? 0) else { return nil }
        return Array(head.utf8) + body
    }

    /// False when the connection is over.
    private static func pass(_ request: [UInt8], to gateway: Int, on connection: RawConnection?) -> Bool {
        guard let other = try? RawConnection(to: gateway) else { return false }
        other.write(request)
        guard let head = other.readHead() else { return false }
        let length = head.lowercased().components(separatedBy: "content-length: ").dropFirst().first?
            .prefix { $0.isNumber }
        guard let body = other.read(exactly: Int(length ?? "0") ?? 0) else { return false }
        return connection?.write(Array(head.utf8) + body) ?? true
    }

    private static func answer(_ status: Int, on connection: RawConnection) {
        let page = "<!doctype html><title>\(status)</title><p>Sign in to the network, or come back later."
        let location = status == 302 ? "Location: /sign-in\r\n" : ""
        connection.answer(
            status == 204 ? "" : page, status: "\(status) Something", headers: "Content-Type: text/html\r\n\(location)")
    }
}

@Suite(.timeLimit(.minutes(240))) struct StrangeAnswerTests {
    private static let runs = ProcessInfo.processInfo.environment["MILLRACE_RUNS"].flatMap { Int($0) } ?? 6
    private static let seed = ProcessInfo.processInfo.environment["MILLRACE_SEED"].flatMap { Int($0) } ?? 4711
    private static let lanes = 4

    @Test func `nothing is forgotten when something else answers in the gateway's place, whatever it answers`()
        async throws
    {
        try await AppWorld.with { world in
            try await world.serving {
                let proxy = try StrangeProxy(to: try #require(world.url.port))
                for status in StrangeProxy.statuses {
                    let calls = world.calls("anna", at: proxy.url)
                    try await world.withQueue("anna", calls) { anna, queue, _ in
                        for isRegistered in [false, true] {
                            if isRegistered { try await queue.register() }
                            for isHidden in [false, true] {
                                let deed: StrangeProxy.Deed = isHidden ? .hide(status) : .answer(status)
                                // As often as the queue asks, with a token of the device and without one.
                                proxy.deeds.withLock { $0 = Array(repeating: deed, count: 50) }
                                let mood = NewMood(.calm)
                                #expect(try await anna.moods.log(mood).isQueued, "\(deed)")
                                await #expect(throws: AppError.self, "\(deed)") { try await queue.drain() }
                                #expect(await queue.pending.map(\.id) == [mood.id], "\(deed)")
                                proxy.deeds.withLock { $0 = [] }
                                #expect(try await queue.drain() == OfflineQueue.Report(ended: 1, waiting: 0), "\(deed)")
                            }
                        }
                    }
                    try await world.owner.run("delete from millrace.sync_device")
                }
                proxy.stop()
                let moods = try await world.owner.int("select count(*) from millrace.mood where person = 'anna'")
                #expect(moods == 4 * StrangeProxy.statuses.count)
            }
        }
    }

    @Test func `a stream goes on behind whatever answers in the gateway's place`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let proxy = try StrangeProxy(to: try #require(world.url.port))
                let refusals = StrangeProxy.statuses.filter { $0 >= 400 }
                proxy.deeds.withLock { $0 = refusals.map { .answer($0) } }
                var reader = FeedReader(calls: world.calls("anna", at: proxy.url), path: "v1/me/events")
                reader.polls = true  // which this proxy can pass on
                var events = reader.events(since: 0).makeAsyncIterator()
                _ = try await world.client("anna").moods.log(.calm)
                while let event = try await events.next() {
                    if case .change = event { break }
                }
                #expect(proxy.deeds.value.isEmpty)
                // What the gateway itself refuses ends it.
                let refused = FeedReader(calls: world.calls("anna"), path: "v1/documents/\(UUID())/events")
                let error = try await failure(as: AppError.self) { for try await _ in refused.events(since: nil) {} }
                #expect(error?.kind == .notFound && error?.isFromGateway == true && error?.field == "id")
                proxy.stop()
            }
        }
    }

    /// What the runs did.
    private struct Sum: Sendable {
        var operations = 0
        var kills = 0
    }

    /// An app that is killed again and again, behind something that answers what it likes: what the app had said to be safe has been done in the end,
    /// once. `MILLRACE_RUNS` says how often.
    @Test func `what a killed app had queued is done once in the end, whatever answered meanwhile`() async throws {
        try await AppWorld.with { world in
            try await world.serving {
                let place = FileManager.default.temporaryDirectory.appending(path: "strange-\(UUID().uuidString)")
                defer { try? FileManager.default.removeItem(at: place) }
                try FileManager.default.createDirectory(at: place, withIntermediateDirectories: true)
                // Apps wait most of the time, so several are run at once.
                let sum = try await withThrowingTaskGroup(of: Sum.self) { group in
                    for lane in 0..<Self.lanes {
                        group.addTask {
                            let proxy = try StrangeProxy(to: try #require(world.url.port))
                            defer { proxy.stop() }
                            var sum = Sum()
                            for run in stride(from: lane, to: Self.runs, by: Self.lanes) {
                                try await Self.live(Self.seed + run, proxy, place, world, &sum)
                            }
                            return sum
                        }
                    }
                    return try await group.reduce(into: Sum()) {
                        $0.operations += $1.operations
                        $0.kills += $1.kills
                    }
                }
                print("\(Self.runs) runs, \(sum.operations) operations, \(sum.kills) kills: each was done once")
            }
        }
    }

    private static func live(
        _ seed: Int, _ proxy: StrangeProxy, _ place: URL, _ world: AppWorld, _ sum: inout Sum
    ) async throws {
        var random = SeededRandom(seed)
        let person = "anna-\(seed)"
        let token = place.appending(path: "token-\(seed)")
        try AppWorld.token(of: person).write(to: token, atomically: true, encoding: .utf8)
        let app = AppProgram(proxy: proxy, person: person, token: token, directory: place.appending(path: person))
        var said: Set<String> = []
        for _ in 0...(1 + random.below(3)) {
            let deeds = (0..<random.below(4)).map { _ in deed(&random) }
            proxy.deeds.withLock { $0 = deeds }
            let steps = ["fill", "\(1 + random.below(4))"] + (random.chance(0.9) ? ["sync"] : [])
            let outcome = try await app.run((random.chance(0.1) ? ["register"] : []) + steps)
            sum.kills += outcome.wasKilled ? 1 : 0
            said.formUnion(outcome.ids)
        }
        proxy.deeds.withLock { $0 = [] }
        try await eventually("all is told; MILLRACE_SEED=\(seed) MILLRACE_RUNS=1") {
            try await app.run(["sync"]).lines.last?.hasSuffix(" 0 wait") == true
        }
        sum.operations += said.count
        let done = Set(try await world.owner.column("select id from millrace.sync_done where person = '\(person)'"))
        let moods = try await world.owner.int("select count(*) from millrace.mood where person = '\(person)'")
        #expect(said.isSubset(of: done) && moods == done.count, "MILLRACE_SEED=\(seed) MILLRACE_RUNS=1")
    }

    private static func deed(_ random: inout SeededRandom) -> StrangeProxy.Deed {
        let status = StrangeProxy.statuses[random.below(StrangeProxy.statuses.count)]
        return random.pick([
            (.pass, 1), (.answer(status), 4), (.hide(status), 3), (.cut, 1), (.kill(isDone: false), 2),
            (.kill(isDone: true), 2),
        ])
    }
}

/// The example app as a process.
private struct AppProgram: Sendable {
    let proxy: StrangeProxy
    let person: String
    let token: URL
    let directory: URL

    struct Outcome: Sendable {
        let lines: [String]
        let wasKilled: Bool
        /// Of operations that it said to be on the disk.
        var ids: [String] { lines.filter { UUID(uuidString: $0) != nil }.map { $0.lowercased() } }
    }

    func run(_ steps: [String]) async throws -> Outcome {
        // Reading from a pipe blocks, and the pool of threads is small.
        try await Threads.Thread.run(name: "app-program") { Result { try wait(steps) } }.get()
    }

    private func wait(_ steps: [String]) throws -> Outcome {
        let process = Process()
        process.executableURL = CrashTests.example
        process.arguments = [proxy.url.absoluteString, person, directory.path] + steps
        process.environment = ["APP_TOKEN_FILE": token.path]
        let said = Pipe()
        process.standardOutput = said
        process.standardError = FileHandle.nullDevice
        try process.run()
        proxy.app.withLock { $0 = process.processIdentifier }
        let bytes = said.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        proxy.app.withLock { $0 = 0 }
        let text = String(decoding: bytes, as: UTF8.self)
        // Of a program that was killed, a last line may be a part of one.
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().map(String.init)
        return Outcome(lines: lines, wasKilled: process.terminationReason == .uncaughtSignal)
    }
}
