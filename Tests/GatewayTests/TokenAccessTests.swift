import Foundation
import JSON
import Listeners
import Signatures
import Supervision
import Telemetry
import TestSupport
import Testing

@testable import Gateway

/// An issuer of tokens: its key set can be changed, and taken away.
final class TestIssuer: Sendable {
    private struct State {
        var keys: [(key: SigningKey, id: String)]
        var isAway = false
        var reads = 0
        var gate: Gate?
    }

    private struct Away: Error {}

    private let state: Locked<State>
    let name: String

    init(_ name: String, keys: (SigningKey, String)...) {
        self.name = name
        state = Locked(State(keys: keys.map { (key: $0.0, id: $0.1) }))
    }

    var reads: Int { state.withLock { $0.reads } }

    func publish(_ keys: (SigningKey, String)...) {
        state.withLock { $0.keys = keys.map { (key: $0.0, id: $0.1) } }
    }

    func goAway(_ isAway: Bool = true) { state.withLock { $0.isAway = isAway } }
    func hold(at gate: Gate) { state.withLock { $0.gate = gate } }

    func document() async throws -> [UInt8] {
        try await state.withLock {
            $0.reads += 1
            return $0.gate
        }?.pass()
        let (keys, isAway) = state.withLock { ($0.keys, $0.isAway) }
        guard !isAway else { throw Away() }
        return Array(#"{"keys":[\#(keys.map { $0.key.webKey(id: $0.id).compact }.joined(separator: ","))]}"#.utf8)
    }
}

/// Access with a clock that only the test moves.
struct AccessBench: Sendable {
    let clock = Locked(Date(timeIntervalSince1970: 1_800_000_000))
    let access: GatewayAccess
    let deviceReads = Locked(0)

    init(
        _ issuers: TestIssuer..., devices: [String: String] = [:],
        change: (inout GatewayAccess.Options) -> Void = { _ in }
    ) {
        let (clock, deviceReads) = (clock, deviceReads)
        var options = GatewayAccess.Options()
        options.now = { clock.value }
        options.issuers = issuers.map(\.name)
        options.keySets = issuers.map { .init(url: "https://keys.example/\($0.name)", issuers: [$0.name]) }
        change(&options)
        access = GatewayAccess(
            options, supervisor: Supervisor(Supervisor.Options(), log: .silent), log: .silent,
            fetch: { url in
                try await issuers.first { url == "https://keys.example/\($0.name)" }?.document() ?? []
            },
            deviceClaims: { token in
                deviceReads.add()
                return devices[token].map { Array($0.utf8) }
            })
    }

    func advance(_ seconds: Double) { clock.withLock { $0.addTimeInterval(seconds) } }

    /// Lasts for an hour; `more` are further claims.
    func token(_ key: SigningKey, _ id: String?, by issuer: TestIssuer, sub: String = "ada", more: String = "")
        -> String
    {
        let now = Int(clock.value.timeIntervalSince1970)
        return key.token(
            header: #"{"alg":"ES256","typ":"JWT"\#(id.map { #","kid":"\#($0)""# } ?? "")}"#,
            payload: #"{"iss":"\#(issuer.name)","sub":"\#(sub)","iat":\#(now),"exp":\#(now + 3600)\#(more)}"#)
    }

    func secretToken(_ claims: String, secret: String, head: String = #"{"alg":"HS256","typ":"JWT"}"#) -> String {
        let message = Base64URL.encode(Array(head.utf8)) + "." + Base64URL.encode(Array(claims.utf8))
        return message + "." + Base64URL.encode(HMAC.sha256(Array(message.utf8), key: Array(secret.utf8)))
    }

    func call(_ token: String) async throws -> GatewayCaller {
        try await access.caller(authorization: ["Bearer \(token)"])
    }

    /// nil: the token is taken.
    func refusal(_ token: String) async -> ErrorAnswer? {
        do {
            _ = try await call(token)
            return nil
        } catch {
            return error as? ErrorAnswer
        }
    }
}

@Suite struct TokenAccessTests {
    private let first = SigningKey.newP256()
    private let second = SigningKey.newP256()

    @Test func `an unknown key is asked for once, and not more than once a minute`() async throws {
        let issuer = TestIssuer("https://one", keys: (first, "1"))
        let bench = AccessBench(issuer)
        #expect(try await bench.call(bench.token(first, "1", by: issuer)).subject == "ada")
        #expect(issuer.reads == 1)
        bench.advance(61)
        issuer.publish((first, "1"), (second, "2"))
        let rotated = bench.token(second, "2", by: issuer, sub: "eve")
        #expect(try await bench.call(rotated).subject == "eve" && issuer.reads == 2)
        for number in 0..<20 {
            // Perhaps it was published since.
            let refusal = await bench.refusal(bench.token(second, "unknown \(number)", by: issuer))
            #expect(refusal?.status == 503 && refusal?.headers["Retry-After"] == "60")
        }
        #expect(issuer.reads == 2)
        bench.advance(61)
        let last = await bench.refusal(bench.token(second, "unknown", by: issuer))
        #expect(last?.class == .authentication && last?.message.contains("no key here") == true && issuer.reads == 3)
        // That reading has shown that no key has these ids.
        for number in [19, 0] {
            let refusal = await bench.refusal(bench.token(second, "unknown \(number)", by: issuer))
            #expect(refusal?.class == .authentication && refusal?.headers["Retry-After"] == nil)
        }
        #expect(issuer.reads == 3)
    }

    @Test func `keys that change in an emergency sign nobody out, and are read when many tokens name a new one`()
        async throws
    {
        let issuer = TestIssuer("https://one", keys: (first, "1"))
        let bench = AccessBench(issuer)
        _ = try await bench.call(bench.token(first, "1", by: issuer))
        bench.advance(1)
        issuer.publish((second, "2"))
        let tokens = (0..<5).map { bench.token(second, "2", by: issuer, sub: "person \($0)") }
        // The same token again is one token.
        for number in [0, 0, 0, 0, 0, 1, 2, 3] {
            let refusal = await bench.refusal(tokens[number])
            #expect(refusal?.status == 503 && refusal?.headers["Retry-After"] == "59" && issuer.reads == 1)
        }
        #expect(try await bench.call(tokens[4]).subject == "person 4")
        #expect(try await bench.call(tokens[0]).subject == "person 0")
        #expect(issuer.reads == 2)
        // The key of before is withdrawn, which is certain.
        #expect(await bench.refusal(bench.token(first, "1", by: issuer))?.class == .authentication)
        // Only once: ids can be made up.
        for number in 0..<20 {
            #expect(await bench.refusal(bench.token(second, "3", by: issuer, sub: "\(number)"))?.status == 503)
        }
        #expect(issuer.reads == 2)
        bench.advance(60)
        #expect(await bench.refusal(bench.token(second, "3", by: issuer))?.class == .authentication)
        #expect(issuer.reads == 3)
    }

    @Test func `a token of an issuer that is not known here is refused at once`() async throws {
        let (issuer, stranger) = (TestIssuer("https://one", keys: (first, "1")), TestIssuer("https://two"))
        let bench = AccessBench(issuer)
        _ = try await bench.call(bench.token(first, "1", by: issuer))
        for _ in 0..<3 {
            #expect(await bench.refusal(bench.token(second, "2", by: stranger))?.class == .authentication)
        }
    }

    @Test func `ids that anybody makes up take a bounded room`() {
        var keys = StrangeKeys()
        let now = Date(timeIntervalSince1970: 1_800_000_000)
        for number in 0..<5000 { keys.note("k\(number)", in: [1], at: now) }
        #expect(keys.mayExist("k4999") && !keys.mayExist("k0"))
        keys.note(String(repeating: "k", count: 10_000), in: [1], at: now)
        #expect(!keys.mayExist(String(repeating: "k", count: 10_000)))
    }

    @Test func `all who come with a new key at the same time wait for one answer`() async throws {
        let issuer = TestIssuer("https://one", keys: (first, "1"))
        let gate = Gate()
        issuer.hold(at: gate)
        let bench = AccessBench(issuer)
        let tokens = (0..<50).map { bench.token(first, "1", by: issuer, sub: "person \($0)") }
        let subjects = try await withThrowingTaskGroup(of: String.self) { group in
            for token in tokens { group.addTask { try await bench.call(token).subject } }
            try await eventually("the key set is asked for") { gate.arrivals > 0 }
            gate.open()
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(subjects.count == 50 && issuer.reads == 1)
    }

    @Test func `while the issuer is away known keys go on for a day, and an unknown key is no reason to sign out`()
        async throws
    {
        let issuer = TestIssuer("https://one", keys: (first, "1"))
        let bench = AccessBench(issuer)
        _ = try await bench.call(bench.token(first, "1", by: issuer))
        issuer.goAway()
        bench.advance(7200)
        #expect(try await bench.call(bench.token(first, "1", by: issuer)).subject == "ada")
        let unknown = await bench.refusal(bench.token(second, "2", by: issuer))
        #expect(unknown?.class == .unavailable && unknown?.status == 503)
        #expect(unknown?.headers["Retry-After"] != nil && unknown?.message.contains("keys.example") == true)
        #expect(bench.access.troubles.isEmpty)
        bench.advance(80_000)
        let late = await bench.refusal(bench.token(first, "1", by: issuer))
        #expect(late?.class == .unavailable && bench.access.troubles.first?.contains("more than a day ago") == true)
        issuer.goAway(false)
        bench.advance(61)
        #expect(try await bench.call(bench.token(first, "1", by: issuer)).subject == "ada")
        #expect(bench.access.troubles.isEmpty)
    }

    @Test func `an issuer that never answered leaves callers without an answer, not without a sign-in`() async {
        let issuer = TestIssuer("https://one", keys: (first, "1"))
        issuer.goAway()
        let bench = AccessBench(issuer)
        #expect(await bench.refusal(bench.token(first, "1", by: issuer))?.class == .unavailable)
        #expect(await bench.refusal(bench.token(first, nil, by: issuer))?.class == .unavailable)
        #expect(bench.access.troubles.first?.contains("have not been read yet") == true)
        #expect(await bench.refusal("a.b.c")?.class == .authentication)
    }

    @Test func `a token of a key that was withdrawn is not taken from memory`() async throws {
        let issuer = TestIssuer("https://one", keys: (first, "1"), (second, "2"))
        let bench = AccessBench(issuer)
        let stolen = bench.token(first, "1", by: issuer)
        _ = try await bench.call(stolen)
        issuer.publish((second, "2"))
        bench.advance(61)
        #expect(await bench.refusal(bench.token(second, "3", by: issuer)) != nil)
        #expect(await bench.refusal(stolen)?.message.contains("no key here") == true)  // at once: it was known before
    }

    @Test func `the keys of one issuer sign nothing for another`() async throws {
        let (one, two) = (TestIssuer("https://one", keys: (first, "1")), TestIssuer("https://two", keys: (second, "2")))
        let bench = AccessBench(one, two)
        #expect(try await bench.call(bench.token(first, "1", by: one)).subject == "ada")
        #expect(try await bench.call(bench.token(second, "2", by: two)).subject == "ada")
        #expect(await bench.refusal(bench.token(second, "2", by: one))?.message.contains("another issuer") == true)
    }

    @Test func `a token that was checked before ends when it says so`() async throws {
        let issuer = TestIssuer("https://one", keys: (first, "1"))
        let bench = AccessBench(issuer)
        let token = bench.token(first, "1", by: issuer)
        let caller = try await bench.call(token)
        #expect(caller.expires == bench.clock.value.addingTimeInterval(3600) && caller.device == nil)
        bench.advance(3629)
        #expect(try await bench.call(token) == caller)
        bench.advance(1)
        #expect(await bench.refusal(token)?.message == "the token is refused: it has expired")
    }

    @Test func `the header is one, and names a scheme that is known`() async throws {
        let issuer = TestIssuer("https://one", keys: (first, "1"))
        let bench = AccessBench(issuer)
        let token = bench.token(first, "1", by: issuer)
        for good in ["Bearer \(token)", "bearer \(token)", "BEARER  \(token)"] {
            #expect(try await bench.access.caller(authorization: [good]).subject == "ada")
        }
        let bad = [
            [], ["Bearer \(token)", "Bearer \(token)"], [token], ["Basic \(token)"], ["Bearer"], ["Bearer "], [""],
        ]
        for values in bad {
            let refusal = await #expect(throws: ErrorAnswer.self) {
                try await bench.access.caller(authorization: values)
            }
            #expect(refusal?.status == 401 && refusal?.headers["WWW-Authenticate"]?.hasPrefix("Bearer") == true)
            #expect(refusal?.message.contains(token) == false)
        }
    }

    @Test func `a device token is the database's to know, and its answer counts for ten seconds`() async throws {
        let bench = AccessBench(devices: [
            "dev_1": #"{"sub": "ada", "tenant": "home", "device": "phone"}"#, "dev_2": "{}",
        ])
        func call(_ token: String) async throws -> GatewayCaller {
            try await bench.access.caller(authorization: ["Device \(token)"])
        }
        for _ in 0..<5 {
            let caller = try await call("dev_1")
            #expect(caller.subject == "ada" && caller.device == "phone")
            #expect(String(decoding: caller.claims, as: UTF8.self).contains(#""tenant": "home""#))
        }
        #expect(bench.deviceReads.value == 1)
        bench.advance(10)
        _ = try await call("dev_1")
        #expect(bench.deviceReads.value == 2)
        for bad in ["dev_3", "dev 1", "dev_é", String(repeating: "x", count: 257)] {
            let refusal = await #expect(throws: ErrorAnswer.self) { try await call(bad) }
            #expect(refusal?.class == .authentication, "\(bad)")
        }
        #expect(bench.deviceReads.value == 3)
        let nobody = await #expect(throws: ErrorAnswer.self) { try await call("dev_2") }
        #expect(nobody?.class == .internal)
        // A web token is no device token, and the other way round.
        #expect(await bench.refusal("dev_1")?.class == .authentication)
    }
}
