import FoundationEssentials
import Glibc
import Synchronization
import Threads

/// Resend as it behaves, in the shape of its published contract: keys of 24 hours, rates, quotas, batches, its errors, and the ways a
/// network fails. Bodies are read as they come and never held.
package final class FakeResend: Sendable {
    struct State {
        var script: ResendScript
        var records = ResendRecords()
        var random: FakeRandom
        var server: RawServer?
    }

    package let port: Int
    let state: Mutex<State>
    let postman = ResendPostman()

    package init(_ script: ResendScript = ResendScript(), port: Int = 0) throws {
        state = Mutex(State(script: script, random: FakeRandom(script.seed)))
        // The place of the port is taken before anybody knows it.
        let relay = Relay()
        let server = try RawServer(port: port) { relay.fake?.serve($0) }
        self.port = server.port
        relay.set(self)
        state.withLock { $0.server = server }
        postman.start { [weak self] in self?.script ?? ResendScript() }
    }

    /// The server begins before there is a fake to serve for it.
    private final class Relay: Sendable {
        private let kept = Mutex<FakeResend?>(nil)
        var fake: FakeResend? { kept.withLock { $0 } }
        func set(_ fake: FakeResend) { kept.withLock { $0 = fake } }
    }

    package var url: String { "http://127.0.0.1:\(port)" }
    package var script: ResendScript { state.withLock { $0.script } }
    package var accepted: [AcceptedMail] { state.withLock { $0.records.accepted } }
    package var figures: Figures { state.withLock { Figures($0.records) } }
    package var events: ResendPostman.Figures { postman.figures }

    package func change(_ change: @Sendable (inout ResendScript) -> Void) throws {
        let (before, after) = state.withLock { state -> (ResendScript.Outage, ResendScript.Outage) in
            let before = state.script.outage
            change(&state.script)
            return (before, state.script.outage)
        }
        if before != .closed, after == .closed { state.withLock { $0.server }?.stop() }
        guard before == .closed, after != .closed else { return }
        for attempt in 0... {
            do {
                let server = try RawServer(port: port) { self.serve($0) }
                state.withLock { $0.server = server }
                return
            } catch  where attempt < 3000 {
                usleep(10_000)  // the old socket is closed by its own thread
            }
        }
    }

    package func stop() {
        postman.stop()
        state.withLock { $0.server }?.stop()
    }

    package struct Figures: Sendable, Codable {
        package var requests: Int
        package var accepted: Int
        package var replayed: Int
        package var lost: Int
        package var answered: [Int: Int]
        package var perSecond: [Int: Int]

        init(_ records: ResendRecords) {
            requests = records.requests
            accepted = records.accepted.count
            replayed = records.replayed
            lost = records.lost
            answered = records.answered
            perSecond = records.perSecond
        }
    }

    var now: Double { Date().timeIntervalSince1970 + script.aheadSeconds }

    func serve(_ connection: RawConnection) {
        while let head = connection.readHead() {
            guard let request = FakeRequest(head) else { return }
            let script = script
            switch script.outage {
            case .reset: return connection.reset()
            case .closed: return
            case .none, .key, .quota, .broken, .gateway, .silent: break
            }
            let scan = Reading()
            guard connection.read(exactly: request.length, { scan.add($0) }) else { return }
            if script.outage == .silent { return connection.waitForEnd() }
            if request["user-agent"] == nil {
                connection.answer("error code: 1010", status: "403 Forbidden")
                continue
            }
            let (within, left) = state.withLock {
                $0.records.enter(rate: script.rate, window: script.windowSeconds, now: Date().timeIntervalSince1970)
            }
            var headers = ""
            if script.rate > 0 {
                headers = "ratelimit-limit: \(script.rate)\r\nratelimit-remaining: \(left)\r\nratelimit-reset: 1\r\n"
            }
            if script.latencyMilliseconds > 0 { usleep(UInt32(script.latencyMilliseconds * 1000)) }
            let answer: ResendRecords.Answer?
            if !within {
                headers += "retry-after: 1\r\n"
                answer = ResendRecords.problem(429, "rate_limit_exceeded", "Too many requests.")
            } else {
                answer = respond(to: request, scan, script)
            }
            guard let answer else {
                state.withLock { $0.records.noteLost() }
                return connection.reset()
            }
            let used = state.withLock { state in
                state.records.note(answer.status)
                return state.records.usedToday
            }
            headers += "x-resend-daily-quota: \(used)\r\ncontent-type: application/json\r\n"
            guard
                connection.answer(
                    answer.body, status: "\(answer.status) \(Self.reason(answer.status))", headers: headers)
            else { return }
        }
    }

    final class Reading {
        private var json = JSONScan()
        private var isBroken = false
        private let hash = BodyHash()
        private(set) var count = 0

        func add(_ bytes: [UInt8]) {
            count += bytes.count
            hash.add(bytes)
            guard !isBroken else { return }
            do { try json.feed(bytes) } catch { isBroken = true }
        }

        func digest() -> [UInt8] { hash.end() }
        func value() -> ScannedJSON? { isBroken ? nil : try? json.end() }
    }

    private static func reason(_ status: Int) -> String {
        switch status {
        case 200: "OK"
        case 401: "Unauthorized"
        case 403: "Forbidden"
        case 404: "Not Found"
        case 409: "Conflict"
        case 422: "Unprocessable Entity"
        case 429: "Too Many Requests"
        case 503: "Service Unavailable"
        default: "Error"
        }
    }
}

/// The same numbers for the same seed (splitmix64).
struct FakeRandom: RandomNumberGenerator {
    private var state: UInt64
    init(_ seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func happens(_ share: Double) -> Bool { share > 0 && Double.random(in: 0..<1, using: &self) < share }
}
