import Digests
import Encodings
import Faults
import Listeners
import Postgres
import Telemetry

/// How fast one may call. Nil: as fast as one likes.
package struct GatewayRates: Sendable, Equatable {
    package var subject: GatewayRate? = GatewayRate(perSecond: 20, burst: 100)
    /// Of a person: what pushes and long lists carry out. Two full pushes at once, so a phone that comes back after a week gets through.
    package var operations: GatewayRate? = GatewayRate(perSecond: 20, burst: 1000)
    package var address: GatewayRate? = GatewayRate(perSecond: 200, burst: 1000)
    /// Of some functions, for each person.
    package var functions: [String: GatewayRate] = [:]

    package init() {}

    static func key(_ kind: String, _ name: String) -> String {
        kind + ":" + Hexadecimal.text(SHA256Digest.of(Array(name.utf8)).prefix(16))
    }
}

/// Takes tokens for requests. Owns the leases of this process.
actor GatewayLimits {
    typealias Want = RateLeases.Want

    private let pool: Pool
    private let log: Log
    private let now: @Sendable () -> Duration
    private var leases = RateLeases()
    private var complained: Duration?
    /// Buckets that are being asked, and those who wait for what comes of it.
    private var asking: [String: [CheckedContinuation<Bool, Never>]] = [:]

    init(pool: Pool, log: Log, now: @escaping @Sendable () -> Duration) {
        self.pool = pool
        self.log = log
        self.now = now
    }

    /// Throws when the bucket is known to be empty; takes nothing.
    func check(_ want: Want) throws(GatewayProblem) {
        guard want.tokens > 0, let wait = leases.wait(for: want.key, at: now()) else { return }
        throw Self.refusal(want, wait)
    }

    /// Takes the tokens of all, or of none.
    /// - Returns: the headers that say how many are left.
    func take(_ wants: [Want]) async throws -> [Header] {
        let wants = wants.filter { $0.tokens > 0 }
        // Others may use what was just asked for.
        for _ in 0..<Self.mostLooks {
            switch leases.use(wants, at: now()) {
            case .granted(let left): return Self.headers(wants, left)
            case .refused(let want, let wait): throw Self.refusal(want, wait)
            case .asks(let refills):
                // Without its table nobody is refused: a check-in must not fail for that.
                guard await askOnce(refills) else { return [] }
            }
        }
        guard let want = wants.first else { return [] }
        throw Self.refusal(want, .seconds(1))
    }

    /// Takes tokens for what has been given already; those that are not there are owed, and the next calls pay them first.
    func owe(_ wants: [Want]) {
        for want in wants where want.tokens > 0 { leases.owe(want, at: now()) }
    }

    private static let mostLooks = 10

    /// A bucket that is being asked already is not asked by a second connection: its row has one turn anyway. False: it cannot be asked.
    private func askOnce(_ refills: [RateLeases.Refill]) async -> Bool {
        if let busy = refills.first(where: { asking[$0.key] != nil }) {
            return await withCheckedContinuation { asking[busy.key]?.append($0) }
        }
        for refill in refills { asking[refill.key] = [] }
        let isTold = await ask(refills)
        for waiter in refills.flatMap({ asking.removeValue(forKey: $0.key) ?? [] }) { waiter.resume(returning: isTold) }
        return isTold
    }

    private func ask(_ refills: [RateLeases.Refill]) async -> Bool {
        do {
            let granted = try await pool.withConnection { connection throws(PostgresError) in
                try await connection.query(
                    "select t.key, t.granted, t.wait_s from millrace.gateway_take($1, $2, $3, $4) t",
                    [
                        .texts(refills.map(\.key)), .float8s(refills.map(\.rate.perSecond)),
                        .float8s(refills.map(\.rate.burst)), .int4s(refills.map { Int32(clamping: $0.tokens) }),
                    ], deadline: .seconds(2)
                ) { row throws(PostgresError) in
                    (key: try row.string(0), granted: try row.int(1), wait: row.optionalDouble(2) ?? 0)
                }
            }
            for row in granted {
                leases.add(
                    row.key, tokens: Int(clamping: row.granted), wait: .seconds(min(max(row.wait, 0), 86_400)),
                    at: now())
            }
            return true
        } catch {
            if complained.map({ now() - $0 > .seconds(60) }) ?? true {
                complained = now()
                log.warning("the limits of calls cannot be read; nobody is refused", [("error", "\(error)")])
            }
            return false
        }
    }

    private static func refusal(_ want: Want, _ wait: Duration) -> GatewayProblem {
        let seconds = max(1, Int((wait / .seconds(1)).rounded(.up)))
        var problem = GatewayProblem(
            .throttled, "too many requests of this \(want.policy == "address" ? "address" : "person")",
            field: want.policy, hint: "try again after \(seconds) s", retryAfter: seconds)
        problem.headers += [policies([want]), Header("RateLimit", "\"\(want.policy)\";r=0;t=\(seconds)")]
        return problem
    }

    /// Of the person, and of the function: the address may be one that many share.
    private static func headers(_ wants: [Want], _ left: [Int]) -> [Header] {
        let shown = zip(wants, left).filter { $0.0.policy != "address" }
        guard !shown.isEmpty else { return [] }
        let limits = shown.map { "\"\($0.0.policy)\";r=\($0.1);t=\($0.0.rate.window)" }
        return [policies(shown.map(\.0)), Header("RateLimit", limits.joined(separator: ", "))]
    }

    private static func policies(_ wants: [Want]) -> Header {
        Header(
            "RateLimit-Policy",
            wants.map { "\"\($0.policy)\";q=\(Int($0.rate.burst));w=\($0.rate.window)" }.joined(separator: ", "))
    }
}
