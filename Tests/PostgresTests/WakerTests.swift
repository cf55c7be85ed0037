import Foundation
import Synchronization
import TestSupport
import Testing

@testable import Postgres

@Suite struct WakerTests {
    private static func path() -> String {
        FileManager.default.temporaryDirectory.appending(path: "waker-\(UUID().uuidString.prefix(8))").path
    }

    private final class Room: Sendable {
        private let news = Mutex<[NotificationHub.News]>([])

        init(_ channels: Set<String>, _ hearing: NotificationHub) {
            hearing.heed(channels) { one in self.news.withLock { $0.append(one) } }
        }

        var heard: [NotificationHub.News] { news.withLock { $0 } }
    }

    @Test func `rooms hear by the waker, are told when it goes, and hear the next one`() async throws {
        let path = Self.path()
        let client = WakerClient(path: path)
        let hub = NotificationHub(ConnectionOptions(location: ""), waker: client)
        let (one, two) = (Room(["a"], hub), Room(["b"], hub))
        let following = Task { await hub.follow() }
        func serving() throws -> (WakerServer, Task<Void, Never>) {
            let server = try WakerServer(path: path)
            return (server, Task { await server.run() })
        }
        var (server, running) = try serving()
        server.began()
        try await eventually("it hears") { hub.isOpen }
        server.said(Notification(channel: "a", payload: "1.2 ready"))
        server.said(Notification(channel: "b", payload: ""))
        try await eventually("each room has its own") { one.heard.count == 2 && two.heard.count == 2 }
        #expect(one.heard == [.began, .said("1.2 ready")] && two.heard == [.began, .said("")])
        client.says(.asleep)
        try await eventually("the waker knows that it sleeps") { [server] in server.workers == (1, 1) }
        client.says(.awake)
        try await eventually("and that it does not") { [server] in server.workers == (1, 0) }
        client.says(.asleep)
        running.cancel()
        await running.value
        try await eventually("it hears no more") { !hub.isOpen }
        (server, running) = try serving()
        try await eventually("it has come back, and says that it sleeps") { [server] in server.workers == (1, 1) }
        #expect(!hub.isOpen)
        server.began()
        try await eventually("it hears again") { hub.isOpen }
        following.cancel()
        await following.value
        #expect(!hub.isOpen)
        running.cancel()
        await running.value
        try? FileManager.default.removeItem(atPath: path)
    }

    @Test func `of new jobs two that sleep are told at once, in turn, and the others when their time comes`() {
        let start = ContinuousClock.now
        func at(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }
        var turns = WakerTurns(pause: .milliseconds(20))
        let all = [1, 2, 3, 4, 5]
        #expect(turns.said("a", asleep: [3, 1, 2, 4], at: at(0)) == [1, 2])
        #expect(turns.said("a", asleep: [3, 4], at: at(1)) == [], "those two find it")
        #expect(turns.said("b", asleep: [3, 4], at: at(1)) == [3, 4], "it is the others' turn")
        #expect(turns.fellAsleep(1) == ["a"], "it may have looked before the second came")
        #expect(turns.fellAsleep(1) == [] && turns.fellAsleep(2) == ["a"] && turns.fellAsleep(2) == [])
        #expect(turns.said("a", asleep: [1, 2, 3, 4], at: at(2)) == [1, 2], "in turn, behind 4")
        turns.isOut(1)
        #expect(turns.said("a", asleep: [2, 3], at: at(3)) == [3], "one that is full takes nothing")
        #expect(turns.settle(among: all, at: at(19)).isEmpty && turns.due == at(20))
        let rest = turns.settle(among: all, at: at(21)).sorted { $0.line < $1.line }
        #expect(rest.map(\.line) == ["a", "b"] && rest.map { $0.to.sorted() } == [[1, 2, 4, 5], [1, 2, 5]])
    }

    @Test func `in a stream the others are told more and more rarely, unless one of them finds something to do`() {
        let start = ContinuousClock.now
        let all = [1, 2, 3, 4]
        /// When the others were told, in milliseconds, with a job in each of a second.
        func told(staysAwake: Int?) -> [Int] {
            var turns = WakerTurns(pause: .milliseconds(20))
            var found: [Int] = []
            for millisecond in 0..<1000 {
                let now = start + .milliseconds(millisecond)
                _ = turns.said("a", asleep: all, at: now)
                let rest = turns.settle(among: all, at: now)
                if !rest.isEmpty { found.append(millisecond) }
                for id in rest.flatMap(\.to) where id != staysAwake { _ = turns.fellAsleep(id) }
            }
            return found
        }
        #expect(told(staysAwake: nil) == [20, 60, 140, 300, 460, 620, 780, 940])
        #expect(told(staysAwake: 4).count > 8, "the second time it is told, it is known to have found something")
        var turns = WakerTurns(pause: .milliseconds(20))
        _ = turns.said("a", asleep: [1], at: start)
        #expect(turns.settle(among: all, at: start + .milliseconds(20)).map(\.to.count) == [3])
        #expect(turns.settle(among: all, at: start + .milliseconds(60)).isEmpty && turns.due == nil)
        #expect(turns.said("a", asleep: [], at: start + .milliseconds(70)) == [])
        #expect(turns.settle(among: all, at: start + .milliseconds(90)).map(\.to.count) == [4], "all are owed it")
    }

    @Test(arguments: [Duration.milliseconds(1), .seconds(3600)])
    func `each worker hears of new jobs once, and of everything else at once`(pause: Duration) async throws {
        let path = Self.path()
        let server = try WakerServer(path: path, pause: pause)
        let running = Task { await server.run() }
        server.began()
        var rooms: [Room] = []
        var tasks: [Task<Void, Never>] = []
        for _ in 0..<4 {
            let client = WakerClient(path: path)
            let hub = NotificationHub(ConnectionOptions(location: ""), waker: client)
            rooms.append(Room(["millrace"], hub))
            client.says(.asleep)
            tasks.append(Task { await hub.follow() })
        }
        let all = rooms
        try await eventually("all sleep") { server.workers == (4, 4) }
        server.said(Notification(channel: "millrace", payload: "7.4 ready"))
        let jobs = pause < .seconds(1) ? 4 : 2
        try await eventually("those hear whose turn it is") {
            all.count { $0.heard.contains(.said("7.4 ready")) } == jobs
        }
        server.said(Notification(channel: "millrace", payload: "limits"))
        try await eventually("all hear what is for everybody") { all.allSatisfy { $0.heard.contains(.said("limits")) } }
        #expect(all.reduce(0) { $0 + $1.heard.count { $0 == .said("7.4 ready") } } == jobs)
        for task in tasks { task.cancel() }
        running.cancel()
        for task in tasks { await task.value }
        await running.value
        try? FileManager.default.removeItem(atPath: path)
    }

    @Test func `a place that is taken is refused, one that a dead waker left is not, and strangers stay out`() throws {
        let path = Self.path()
        let first = try WakerServer(path: path)
        #expect(throws: WakerFailure.self) { _ = try WakerServer(path: path) }
        #expect(WakerClient.answers(at: path))
        #expect(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int == 0o660)
        withExtendedLifetime(first) {}
        let file = Self.path()
        #expect(FileManager.default.createFile(atPath: file, contents: nil))
        #expect(throws: WakerFailure.self) { _ = try WakerServer(path: file) }
        #expect(throws: WakerFailure.self) { _ = try WakerServer(path: "/" + String(repeating: "x", count: 200)) }
        for one in [path, file] { try? FileManager.default.removeItem(atPath: one) }
    }

    @Test func `lines come whole, however they arrive`() throws {
        var lines = WakerLines()
        #expect(lines.add(Array("beg".utf8)) == [])
        #expect(lines.add(Array("an\na b c\nx".utf8)) == ["began", "a b c"])
        #expect(lines.add(Array("\n".utf8)) == ["x"])
        #expect(WakerWord("a b c") == .said(channel: "a", payload: "b c"))
        #expect(WakerWord("began") == .began && WakerWord("ended") == .ended && WakerWord("x") == nil)
        #expect(WakerWord.said(channel: "a", payload: "b\nc").line == "a b c\n")
        #expect(lines.add([UInt8](repeating: 0, count: WakerLines.longest + 1)) == nil)
    }
}
